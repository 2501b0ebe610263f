# SPDX-License-Identifier: MIT
"""Calculates how often a task can run (Brown & Martin 2010, Adam et al. 2021)."""
