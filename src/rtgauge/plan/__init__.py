# SPDX-License-Identifier: MIT
"""Reads plan files and presets, and makes ordered lists of steps from them."""
