# SPDX-License-Identifier: MIT
"""Measurers of steps with an instrument on the line."""
