# SPDX-License-Identifier: MIT
"""The tables and figures of the probes on a signal path."""
