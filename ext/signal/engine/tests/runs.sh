# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Runs on signal paths for engine/tests/run.sh, which sets folder and policy.
# Both ends are this engine's: the other one is a process of its own.
for probe in 'periodic' 'periodic --timer timerfd --path loop:pipe' 'response --interval-max-ns 500000' 'response --interval-ns 500000 --path loop:udp'; do
	# shellcheck disable=SC2086 # a probe with its options
	engine "$folder" $probe --go --count 100 --warm-up-ns 20000000 --policy "$policy" --memory-lock off
done
for probe in periodic response; do
	engine "$folder" "$probe" --go --role slave --path udp:127.0.0.1:17115 --duration-ns 100000000 --policy "$policy" --memory-lock off
done
