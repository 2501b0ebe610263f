# SPDX-License-Identifier: MIT
"""Tables and figures of the tire for the page and the terminal."""
