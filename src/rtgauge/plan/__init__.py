# SPDX-License-Identifier: MIT
"""What to measure: plan files and presets become an ordered list of steps."""
