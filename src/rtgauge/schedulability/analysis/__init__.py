# SPDX-License-Identifier: MIT
"""Calculates worst-case response times, bounds, margins and the timeline of a task set."""
