# SPDX-License-Identifier: MIT
"""Makes loads, which interfere with a measurement. Each load is a module."""
