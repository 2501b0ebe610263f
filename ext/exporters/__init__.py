# SPDX-License-Identifier: MIT
"""Writes records in the formats of other tools."""
