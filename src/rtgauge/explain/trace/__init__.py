# SPDX-License-Identifier: MIT
"""Reads events from the formats and pages of the kernel's trace ring."""
