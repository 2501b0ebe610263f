# SPDX-License-Identifier: MIT
"""Measures a plan's steps on its targets, and writes the record."""
