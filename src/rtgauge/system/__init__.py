# SPDX-License-Identifier: MIT
"""Reads what a target is (facts) and what changed on it during a step; derives doubts from that (marks)."""
