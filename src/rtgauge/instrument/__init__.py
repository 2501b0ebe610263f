# SPDX-License-Identifier: MIT
"""Measures from outside: the instrument (firmware/), EVL's latmon, oscilloscopes and logic analysers."""
