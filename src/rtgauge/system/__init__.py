# SPDX-License-Identifier: MIT
"""Reads a target's state (facts) and what changed during a step, and derives doubts (marks) from both."""
