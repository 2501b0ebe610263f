# SPDX-License-Identifier: MIT
"""Presents a store: histories in words, as tables and figures, and the site."""
