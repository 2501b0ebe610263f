# SPDX-License-Identifier: MIT
"""Calculates from tire records: real-fast curves, hard and soft maps, the cost model."""
