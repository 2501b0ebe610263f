# SPDX-License-Identifier: MIT
"""Computes results from records: comparisons, choices, confidence bounds, rare latencies, frequencies."""
