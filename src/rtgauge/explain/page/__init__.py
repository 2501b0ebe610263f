# SPDX-License-Identifier: MIT
"""Shows the culprits and the worst latency on the page and in the terminal."""
