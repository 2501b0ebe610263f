# SPDX-License-Identifier: MIT
"""Finds what a latency was spent on, ranks the culprits over a run, and joins spikes of several CPUs."""
