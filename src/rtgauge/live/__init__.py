# SPDX-License-Identifier: MIT
"""The live page: a small server sends a run's state to browsers."""
