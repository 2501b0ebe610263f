# SPDX-License-Identifier: MIT
"""Finds the commit that made a machine slower: the search, its folder, and the decision on each commit."""
