# SPDX-License-Identifier: MIT
"""Presents a comparison: tables in the terminal, figures, a page."""
