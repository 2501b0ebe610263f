# SPDX-License-Identifier: MIT
"""The ways to measure a step."""
