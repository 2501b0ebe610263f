# SPDX-License-Identifier: MIT
"""Checks the settings of a machine against rules."""
