# SPDX-License-Identifier: MIT
"""Writes records in formats that other programs read. Each format has a module."""
