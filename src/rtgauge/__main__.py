# SPDX-License-Identifier: MIT
"""Makes `python -m rtgauge` the same as the command `rtgauge`."""

from rtgauge.cli.main import main

main()
