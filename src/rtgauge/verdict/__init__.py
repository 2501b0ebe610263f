# SPDX-License-Identifier: MIT
"""Judges records: finds the verdict on a requirement, and the advice of a decision flowchart."""
