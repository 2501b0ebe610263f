# SPDX-License-Identifier: MIT
"""Calculates from records: comparison, selection, confidence, rare latencies, frequencies."""
