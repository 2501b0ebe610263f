# SPDX-License-Identifier: MIT
"""The commands, end to end, on this machine."""
