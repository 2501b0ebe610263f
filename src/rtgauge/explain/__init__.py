# SPDX-License-Identifier: MIT
"""Explains outliers: reads the kernel's trace ring, finds what a latency was spent on, ranks the culprits."""
