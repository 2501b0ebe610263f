# SPDX-License-Identifier: MIT
"""Tests pass under `nohup make test &` too: what they start does not inherit ignored or blocked signals."""

from __future__ import annotations

import signal
import subprocess
import sys

SCRIPT = """
import signal, subprocess
for number in (signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
from tests.support.signals import give_children_defaults
give_children_defaults()
signal.raise_signal(signal.SIGHUP)  # still ignored here
print(subprocess.check_output(["grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"], text=True))
"""


def test_children_begin_with_default_dispositions() -> None:
    completed = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    masks = {
        name: int(value, 16)
        for name, value in (line.split(":") for line in completed.stdout.split("\n") if line)
    }
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        assert not masks["SigIgn"] & 1 << number - 1
        assert not masks["SigBlk"] & 1 << number - 1
