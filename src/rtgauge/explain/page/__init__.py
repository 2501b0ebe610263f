# SPDX-License-Identifier: MIT
"""The culprits, the worst latency's sentence and its figure, for the page and the terminal."""
