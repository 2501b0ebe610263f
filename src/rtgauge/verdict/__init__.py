# SPDX-License-Identifier: MIT
"""Judges records: a requirement and its verdict, and a decision flowchart and its advice."""
