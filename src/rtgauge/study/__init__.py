# SPDX-License-Identifier: MIT
"""Procedures that look at results before they go on: the papers' whole experiments."""
