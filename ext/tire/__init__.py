# SPDX-License-Identifier: MIT
"""The tire of Garre et al. (2014): state file, analysis, search for the largest tire, tables and figures."""
