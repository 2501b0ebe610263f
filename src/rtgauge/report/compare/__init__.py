# SPDX-License-Identifier: MIT
"""What a comparison looks like: tables in the terminal, figures, a page."""
