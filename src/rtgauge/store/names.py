# SPDX-License-Identifier: MIT
"""Columns that tables and rows share, apart from both: SQLAlchemy takes long to import."""

from __future__ import annotations

from fractions import Fraction

FIGURES = ("min_ns", "p50_ns", "p95_ns", "p99_ns", "p99_9_ns", "p99_99_ns", "max_ns")
INTERVALS = {
    "p50": Fraction(1, 2),
    "p99": Fraction(99, 100),
    "p99_9": Fraction(999, 1000),
    "p99_99": Fraction(9999, 10000),
}
"""Quantiles of which the interval is kept, and the share of samples that do not exceed each."""
