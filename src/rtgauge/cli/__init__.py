# SPDX-License-Identifier: MIT
"""The command line. Each command is a module that parses options, calls the rest of rtgauge, and prints."""

import os

os.environ.setdefault(
    "PYDANTIC_DISABLE_PLUGINS", "__all__"
)  # otherwise pydantic searches all installed packages
