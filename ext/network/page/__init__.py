# SPDX-License-Identifier: MIT
"""Shows where the time of a cycle goes, on the page and in the terminal."""
