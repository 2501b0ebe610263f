# SPDX-License-Identifier: MIT
"""Finds and stops running guests, and reads their consoles."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Self

from rtgauge.errors import InputError, MeasureError
from rtgauge.program_run import run_program
from rtgauge.record.files import write_whole
from rtgauge.target.kind import NotUpError
from rtgauge_ext.lab import paths
from rtgauge_ext.lab.guest import BootedGuest, Guest, find_guest, forget
from rtgauge_ext.lab.paths import CONSOLE, console_end, folder_of
from rtgauge_ext.lab.ssh import SSH_S, ssh_command

POWER_OFF_S = 10.0
KILL_S = 5.0
MOST_CONSOLE_BYTES = 1 << 20


def console_of(name: str) -> Path:
    """Return the path of the guest's console log, which begins at the last boot."""
    return folder_of(name) / CONSOLE


def process_of(name: str) -> int | None:
    """Return the pid of the guest's QEMU; None if it does not run or another process now has this pid."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((folder_of(name) / "pid").read_text())
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if os.fsencode(folder_of(name) / "pid") in arguments:
            return pid
    return None


def find_running(name: str) -> BootedGuest | None:
    """Return the running guest; None if it does not run."""
    pid = process_of(name)
    try:
        running = BootedGuest(**json.loads((folder_of(name) / "running.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return running if pid is not None and running.pid == pid else None


def keep(running: BootedGuest) -> None:
    """Save `running` for `find_running`."""
    write_whole(folder_of(running.name) / "running.json", (json.dumps(asdict(running)) + "\n").encode())


def all_running() -> Iterator[BootedGuest]:
    """Yield every running guest."""
    parent = paths.home() / "machines"
    for folder in sorted(parent.iterdir()) if parent.is_dir() else []:
        running = find_running(folder.name)
        if running is not None:
            yield running


def run_in(
    running: BootedGuest, script: str, timeout_s: float = SSH_S
) -> subprocess.CompletedProcess[str] | None:
    """Run a script in the guest's shell. Return None on a timeout. Raises MeasureError if ssh is missing."""
    try:
        return run_program([*ssh_command(running), script], timeout_s=timeout_s, new_session=True)
    except FileNotFoundError:
        raise MeasureError("ssh is not installed: apt-get install openssh-client") from None
    except subprocess.TimeoutExpired:
        return None


def _gone(name: str, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while process_of(name) is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def stop(name: str) -> bool:
    """Shut the guest down, or kill QEMU if the guest does not answer. Return False if it was not running.

    Raises MeasureError if QEMU does not end.
    """
    if process_of(name) is None:
        return False
    running = find_running(name)
    if running is None or run_in(running, "poweroff") is None or not _gone(name, POWER_OFF_S):
        kill(name)
    for file in ("running.json", "pid"):
        (folder_of(name) / file).unlink(missing_ok=True)
    return True


def kill(name: str) -> None:
    """Kill the guest's QEMU. Raises MeasureError if it does not end."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        pid = process_of(name)
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        if _gone(name, KILL_S):
            return
    raise MeasureError(
        f"QEMU (process {process_of(name)}) does not end; kill it yourself: kill -9 {process_of(name)}"
    )


def cut_power(running: BootedGuest) -> None:
    """Reset the guest as in a power cut, which loses unwritten data. The guest reboots by itself."""
    run_in(running, "echo b >/proc/sysrq-trigger", 2.0)
    if running.serial:  # later commands share the connection and would wait for the earlier boot
        *ssh, host = ssh_command(running)
        with contextlib.suppress(subprocess.TimeoutExpired):
            run_program([*ssh, "-O", "exit", host], timeout_s=SSH_S)


def end_of_console(name: str) -> bytes | None:
    """Return the end of the guest's console, at most `MOST_CONSOLE_BYTES`; None if it cannot be read."""
    with contextlib.suppress(OSError):
        return console_end(folder_of(name), MOST_CONSOLE_BYTES)
    return None


def last_console_lines(name: str) -> str:
    """Return the last lines of the guest's console as one line, for a message."""
    text = (end_of_console(name) or b"").decode(errors="replace")
    plain = [re.sub(r"\x1b\[[0-9;]*[A-Za-z]|[^\x20-\x7e]", "", line).strip() for line in text.splitlines()]
    return " | ".join([line[:160] for line in plain if line][-5:]) or "nothing"


def running_guest(name: str) -> BootedGuest:
    """Return the running guest. Raises InputError if it does not run."""
    running = find_running(find_guest(name).name)
    if running is None:
        raise InputError(f"lab:{name} is not running; boot it with: rtgauge lab boot {name}")
    return running


def remove(guest: Guest) -> list[str]:
    """Remove a guest's images and disk, and the guest itself if the user added it. Return what was removed.

    Raises InputError if it runs.
    """
    from rtgauge_ext.lab.image import remove_images

    if process_of(guest.name) is not None:
        raise InputError(f"lab:{guest.name} is running; stop it with: rtgauge lab stop {guest.name}")
    removed: list[str] = []
    if remove_images(guest.name):
        removed.append("its image")
    if folder_of(guest.name).is_dir():
        shutil.rmtree(folder_of(guest.name))
        removed.append("its disk")
    if forget(guest):
        removed.append("the added guest")
    return removed


class BootError(NotUpError):
    """The guest was booted but does not answer."""

    _problem = _last_lines = ""

    @classmethod
    def of(cls, guest: str, problem: str) -> Self:
        """Make the error for a guest, with the end of its console."""
        last_lines = last_console_lines(guest)
        error = cls(_message(problem, console_of(guest), last_lines))
        error.target, error.console, error._problem, error._last_lines = (
            f"lab:{guest}",
            end_of_console(guest),
            problem,
            last_lines,
        )
        return error

    def with_console(self, console: Path) -> str:
        """Return the message with the path of a copy of the console."""
        return _message(self._problem, console, self._last_lines)


def _message(problem: str, console: Path, last_lines: str) -> str:
    return f"{problem}; its console output is in {console} and ends with: {last_lines}"
