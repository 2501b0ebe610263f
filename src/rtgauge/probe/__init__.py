# SPDX-License-Identifier: MIT
"""The probes, a module each: parameters, the engine's command line, and the series that it yields."""
