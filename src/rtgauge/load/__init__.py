# SPDX-License-Identifier: MIT
"""Loads: interference beside a probe. A module a load."""
