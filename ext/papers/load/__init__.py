# SPDX-License-Identifier: MIT
"""The loads of Brown & Martin (2010)."""
