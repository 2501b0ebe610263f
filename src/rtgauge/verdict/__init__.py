# SPDX-License-Identifier: MIT
"""Judges records: a requirement and its verdict, the decision flowchart and its advice."""
