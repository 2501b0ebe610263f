# SPDX-License-Identifier: MIT
"""Analyses task sets under fixed priorities, measures them, and shows both."""
