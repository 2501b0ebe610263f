# SPDX-License-Identifier: MIT
"""Boards that a labgrid coordinator manages."""
