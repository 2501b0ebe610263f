# SPDX-License-Identifier: MIT
"""A loop that waits for a point of a grid of 1 ms, as control programs do, until it is ended."""

import time

PERIOD_NS = 1_000_000

release_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
while True:
    release_ns += PERIOD_NS
    rest_ns = release_ns - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    if rest_ns > 0:
        time.sleep(rest_ns / 1e9)
