# SPDX-License-Identifier: MIT
"""Controls a measured machine, local or over SSH: starts the engine, changes settings, moves files."""
