# SPDX-License-Identifier: MIT
"""Stalls a CPU in known ways, and checks the explanations of its latencies."""
