# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Runs of task sets for engine/tests/run.sh, which sets folder, policy and the options that all runs take.
# Real-time only: what may not be that is tested by the refusals.
if [ "$policy" = fifo ]; then
	for execution in wall cpu; do
		engine "$folder" taskset --go --duration-ns 300000000 --warm-up-ns 50000000 --timeline-ns 40000000 \
			--execution "$execution" --tasks "0 90 10000000 1000000 10000000 0 a
0 80 20000000 4000000 20000000 0 b" "$@"
	done
fi
