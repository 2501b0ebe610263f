# SPDX-License-Identifier: MIT
"""Loads: interference during a measurement. Each load is a module."""
