# SPDX-License-Identifier: MIT
"""The command `rtgauge store` and its subcommands."""
