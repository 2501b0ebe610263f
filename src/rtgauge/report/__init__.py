# SPDX-License-Identifier: MIT
"""Figures, tables, the terminal's summary and the page: what a record says to people."""
