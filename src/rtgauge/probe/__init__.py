# SPDX-License-Identifier: MIT
"""The probes, one module each: parameters, the engine's command line, and the measured series."""
