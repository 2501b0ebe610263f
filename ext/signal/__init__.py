# SPDX-License-Identifier: MIT
"""The probes on a signal path: a task that toggles a line, and a task that answers on one."""
