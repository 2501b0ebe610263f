# SPDX-License-Identifier: MIT
"""The tire of Garre et al.

(2014): the state file, analysis, the search for the largest tire, tables and figures.
"""
