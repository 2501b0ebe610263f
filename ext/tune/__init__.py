# SPDX-License-Identifier: MIT
"""Tries settings from the audit's rules on a machine, and keeps the ones that a measurement proves."""
