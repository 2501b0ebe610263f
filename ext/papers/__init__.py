# SPDX-License-Identifier: MIT
"""Repeats the experiments of papers, and gives their advice."""
