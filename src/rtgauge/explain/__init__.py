# SPDX-License-Identifier: MIT
"""Explains outliers: reads the kernel's trace ring, finds the causes of a latency, and ranks the culprits."""
