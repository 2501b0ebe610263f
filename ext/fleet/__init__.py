# SPDX-License-Identifier: MIT
"""Runs the same jobs (`run` and `gate`) on all boards of a fleet, until each board is done or put aside."""
