# SPDX-License-Identifier: MIT
"""The command line. Each command is a module that parses its options, calls the rest of rtgauge, and
prints.
"""

import gc
import os

# Imports make some 60,000 objects that stay: looking for garbage among them takes 6 % of a short command.
gc.set_threshold(100_000)
os.environ.setdefault(
    "PYDANTIC_DISABLE_PLUGINS", "__all__"
)  # otherwise it would search everything that is installed
