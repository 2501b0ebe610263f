# SPDX-License-Identifier: MIT
"""Judges records: a requirement and its verdict, and the decision flowchart with its advice."""
