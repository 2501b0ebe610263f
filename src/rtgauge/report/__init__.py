# SPDX-License-Identifier: MIT
"""Presents a record to people: figures, tables, the terminal's summary, and the HTML page."""
