# SPDX-License-Identifier: MIT
"""Builds, boots and stops virtual machines with real kernels."""
