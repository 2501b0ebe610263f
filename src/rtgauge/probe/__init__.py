# SPDX-License-Identifier: MIT
"""A module a probe: its parameters, how the engine is called, what its series are."""
