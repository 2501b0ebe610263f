# SPDX-License-Identifier: MIT
"""How long tests wait for something that comes."""

PATIENCE_S = 400.0
"""Only a bound on a test that hangs: the machine may be busy, or measured by another test that is waited for.
"""
