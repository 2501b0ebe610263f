# SPDX-License-Identifier: MIT
"""rtgauge on a machine to log in to, and what it leaves there."""

from __future__ import annotations

import os
import time
from typing import Any

from tests.support.cli import CommandResult, invoke
from tests.support.machine import Machine


def over_ssh(machine: Machine, *words: object, **options: Any) -> CommandResult:
    """rtgauge with an `ssh` that knows the machine."""
    return invoke(
        *words, env={"PATH": f"{machine.client()}:{os.environ['PATH']}"} | options.pop("env", {}), **options
    )


def left_on(machine: Machine) -> str:
    """What a run has left there: folders, and processes of its engine.

    The guard may still be putting things back after the run has ended: it is waited for.
    """
    session = f"rtgauge-{'[0-9a-f]' * 16}*"
    folders = f"ls -d /tmp/{session} /var/tmp/{session} /root/{session} 2>/dev/null"
    # Other machines of this kind, of tests that run at the same time, have mounts of their own.
    ours = '[ "$(readlink $p/ns/mnt)" = "$(readlink /proc/$$/ns/mnt)" ]'
    engines = "readlink $p/exe | grep 'rtgauge-................/engine'"
    processes = f'for p in /proc/[0-9]*; do found=$({engines}) && {ours} && echo "$found"; done'
    deadline = time.monotonic() + 60
    while left := machine.run(f"{folders}; {processes}"):
        if time.monotonic() > deadline:
            break
        time.sleep(0.2)
    return left
