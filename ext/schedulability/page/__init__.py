# SPDX-License-Identifier: MIT
"""Shows a task set's tables and timeline, on the page and in the terminal."""
