# SPDX-License-Identifier: MIT
"""Finds the causes of a latency, ranks the culprits of a run, and joins spikes on several CPUs."""
