# SPDX-License-Identifier: MIT
"""Tables and the timeline of a task set for the page and the terminal."""
