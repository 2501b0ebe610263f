# SPDX-License-Identifier: MIT
"""Reads plan files and presets, and makes an ordered list of steps from them."""
