# SPDX-License-Identifier: MIT
"""Advises how to implement a task, by a flowchart (Brown & Martin 2010)."""
