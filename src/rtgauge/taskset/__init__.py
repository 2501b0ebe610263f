# SPDX-License-Identifier: MIT
"""A set of periodic tasks as people write it: what `sched` analyses and the probe `taskset` runs."""
