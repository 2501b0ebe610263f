# SPDX-License-Identifier: MIT
"""Makes loads: interference during a measurement. Each load is a module."""
