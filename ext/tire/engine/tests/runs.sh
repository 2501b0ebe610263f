# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Runs of the tire for engine/tests/run.sh, which sets folder and policy.
for solver in 'serial' 'halo --threads 3' 'semaphore --threads 3' 'semaphore --threads 2 --free-running'; do
	for period in 0 2000000; do
		# shellcheck disable=SC2086 # a solver with its threads
		engine "$folder" tire --go --solver $solver --nodes 1000 --period-ns $period --duration-ns 100000000 --warm-up-ns 20000000 \
			--policy "$policy" --memory-lock off
	done
done
