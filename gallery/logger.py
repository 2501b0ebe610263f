# SPDX-License-Identifier: MIT
"""A program that writes its log in one go, for 2 ms every 50 ms. Its priority is too high."""

import time
from pathlib import Path

Path("/proc/self/comm").write_text("logger", encoding="ascii")
while True:
    end = time.monotonic() + 0.002
    while time.monotonic() < end:
        pass
    time.sleep(0.048)
