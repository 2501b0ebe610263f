# SPDX-License-Identifier: MIT
"""Views from outside: the instrument (firmware/), EVL's latmon, oscilloscopes and logic analysers."""
