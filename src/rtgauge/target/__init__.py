# SPDX-License-Identifier: MIT
"""A machine that is measured, local or over SSH: starts the engine, changes settings, moves files."""
