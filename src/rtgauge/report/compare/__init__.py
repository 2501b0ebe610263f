# SPDX-License-Identifier: MIT
"""Presents a comparison as tables in the terminal, figures, and a page."""
