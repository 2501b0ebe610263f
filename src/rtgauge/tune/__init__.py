# SPDX-License-Identifier: MIT
"""Tries the settings of the audit's rules on a machine, and keeps the ones that a measurement proves."""
