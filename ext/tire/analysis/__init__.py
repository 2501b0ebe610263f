# SPDX-License-Identifier: MIT
"""Analyses records of the tire: real-fast curves, hard and soft maps, the cost model."""
