# SPDX-License-Identifier: MIT
"""Measures a plan on its targets and writes the record."""
