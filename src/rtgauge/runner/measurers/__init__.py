# SPDX-License-Identifier: MIT
"""The ways to measure a step with more than one engine or with another tool."""
