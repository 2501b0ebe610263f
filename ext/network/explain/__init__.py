# SPDX-License-Identifier: MIT
"""Explains late answers by the kernel's events."""
