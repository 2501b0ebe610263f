# SPDX-License-Identifier: MIT
"""Measures from outside with the instrument (firmware/), EVL's latmon, oscilloscopes and logic analysers."""
