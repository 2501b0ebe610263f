# SPDX-License-Identifier: MIT
"""Analyses tire records: real-fast curves, hard and soft maps, the cost model."""
