# SPDX-License-Identifier: MIT
"""The command line: a module a command, each parses its options, calls, and prints."""

import os

os.environ.setdefault(
    "PYDANTIC_DISABLE_PLUGINS", "__all__"
)  # it would look for them in everything that is installed
