# SPDX-License-Identifier: MIT
"""What a task set is, and the file that describes it."""
