# SPDX-License-Identifier: MIT
"""Computes worst-case response times, margins and the timeline of a task set."""
