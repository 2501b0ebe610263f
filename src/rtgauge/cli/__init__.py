# SPDX-License-Identifier: MIT
"""The command line: a module a command, each parses its options, calls, and prints."""

import gc
import os

os.environ.setdefault(
    "PYDANTIC_DISABLE_PLUGINS", "__all__"
)  # it would look for them in everything that is installed
gc.set_threshold(
    100_000
    # imports make many objects that stay: to look through them again and again takes a fourteenth of a short
    # command
)
