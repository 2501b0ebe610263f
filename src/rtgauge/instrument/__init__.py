# SPDX-License-Identifier: MIT
"""Views from outside: the measuring instrument (firmware/), EVL's latmon, files of oscilloscopes and logic
analysers.
"""
