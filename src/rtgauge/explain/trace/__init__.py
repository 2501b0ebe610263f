# SPDX-License-Identifier: MIT
"""Reads formats and pages of the kernel's trace ring into events."""
