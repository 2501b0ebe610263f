# SPDX-License-Identifier: MIT
"""Tells what ran before the machine crashed, hung or was reset, from the kernel's persistent trace ring."""
