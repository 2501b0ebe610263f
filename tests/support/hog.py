# SPDX-License-Identifier: MIT
"""A task that holds a CPU."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
print(flush=True)
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
end = time.monotonic() + 60
while time.monotonic() < end:
    pass
"""


@contextlib.contextmanager
def hog(cpu: int) -> Iterator[int]:
    """A task of the highest priority on this CPU, which ends by itself if the test is killed. Its pid."""
    with subprocess.Popen([sys.executable, "-c", HOG, str(cpu)], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()
