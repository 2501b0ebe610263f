# SPDX-License-Identifier: MIT
"""Computes worst-case response times, bounds, margins and the timeline of a task set."""
