# SPDX-License-Identifier: MIT
"""Serves the live page: a small server sends a run's state to browsers."""
