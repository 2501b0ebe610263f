# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Runs of a loop with a far end for engine/tests/run.sh, which sets folder and policy. This machine's kernel answers.
for receive in block poll; do
	engine "$folder" path --go --path icmp:127.0.0.1 --count 200 --warm-up-ns 20000000 --receive "$receive" --policy "$policy" --memory-lock off
done
