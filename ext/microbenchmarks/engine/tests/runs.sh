# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Runs of the microbenchmarks for engine/tests/run.sh, which sets folder and policy.
for probe in switch preempt 'semaphore --method mutex' 'semaphore --method condition'; do
	# shellcheck disable=SC2086 # a probe with its options
	engine "$folder" $probe --go --duration-ns 100000000 --policy "$policy" --memory-lock off
done
