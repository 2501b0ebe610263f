# SPDX-License-Identifier: MIT
"""Writes records in formats that other programs read, a module per format."""
