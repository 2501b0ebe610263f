# SPDX-License-Identifier: MIT
"""`python -m rtgauge` is the command `rtgauge`."""

from rtgauge.cli.main import main

main()
