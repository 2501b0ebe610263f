# SPDX-License-Identifier: MIT
"""Guests that run: who they are, how they are reached, how they end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rtgauge.errors import InputError, MeasureError
from rtgauge.lab import paths
from rtgauge.lab.guest import find_guest, forget
from rtgauge.lab.image import remove_images
from rtgauge.lab.paths import folder_of
from rtgauge.lab.qemu import MEMORY_MIB
from rtgauge.lab.ssh import SSH_S, ssh_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rtgauge.lab.guest import Guest

POWER_OFF_S = 10.0
KILL_S = 5.0
MOST_CONSOLE_BYTES = 1 << 20


@dataclass(frozen=True)
class Running:
    """A guest that was booted: QEMU's process, the port on the loopback interface that leads to its SSH server, how it was booted."""

    name: str
    pid: int
    port: int
    accelerator: str
    append: str
    smp: str
    release: str
    boot_s: float
    memory_mib: int = MEMORY_MIB
    asked_port: int | None = None
    """The port where one was asked for."""


def console_of(name: str) -> Path:
    """All that the guest wrote on its console since it was booted last."""
    return folder_of(name) / "console.log"


def process_of(name: str) -> int | None:
    """The process id of QEMU where it runs this guest's machine; a number that is somebody else's by now is none."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((folder_of(name) / "pid").read_text())
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if os.fsencode(folder_of(name) / "pid") in words:
            return pid
    return None


def find_running(name: str) -> Running | None:
    """The guest's machine, None where it does not run."""
    pid = process_of(name)
    try:
        running = Running(**json.loads((folder_of(name) / "running.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return running if pid is not None and running.pid == pid else None


def keep(running: Running) -> None:
    """Write down how it is reached."""
    place = folder_of(running.name) / "running.json"
    new = place.with_suffix(".new")
    new.write_text(json.dumps(asdict(running)) + "\n")
    new.replace(place)


def all_running() -> Iterator[Running]:
    """Every guest whose machine runs."""
    parent = paths.home() / "machines"
    for folder in sorted(parent.iterdir()) if parent.is_dir() else []:
        running = find_running(folder.name)
        if running is not None:
            yield running


def run_in(running: Running, script: str, timeout_s: float = SSH_S) -> subprocess.CompletedProcess[str] | None:
    """Run a constant script in the guest's shell; None where it does not end in time."""
    try:
        return subprocess.run(
            [*ssh_command(running.name, running.port), script],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError:
        raise MeasureError("the program ssh is missing on this machine: install it (apt-get install openssh-client)") from None
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
    """Switch the guest off, in order where it answers; False: it did not run. Raises MeasureError where QEMU does not end."""
    if process_of(name) is None:
        return False
    running = find_running(name)
    if running is None or run_in(running, "poweroff") is None or not _gone(name, POWER_OFF_S):
        kill(name)
    for left in ("running.json", "pid"):
        (folder_of(name) / left).unlink(missing_ok=True)
    return True


def kill(name: str) -> None:
    """Switch it off as a power cut does. Raises MeasureError where QEMU does not end."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        pid = process_of(name)
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        if _gone(name, KILL_S):
            return
    raise MeasureError(f"QEMU (process {process_of(name)}) does not end: look for it with ps, and end it by hand")


def cut_power(running: Running) -> None:
    """Begin anew at once, as after a power cut: what was not written to the disk is lost. The machine boots again by itself."""
    run_in(running, "echo b >/proc/sysrq-trigger", 2.0)


def end_of_console(name: str) -> bytes | None:
    """The end of what the guest wrote on its console, at most `MOST_CONSOLE_BYTES`; None where that cannot be read."""
    try:
        with console_of(name).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - MOST_CONSOLE_BYTES))
            return file.read()
    except OSError:
        return None


def last_words(name: str, lines: int = 5) -> str:
    """The end of the guest's console, for a message."""
    try:
        text = console_of(name).read_text(errors="replace")
    except OSError:
        return "nothing"
    plain = [re.sub(r"\x1b\[[0-9;]*[A-Za-z]|[^\x20-\x7e]", "", line).strip() for line in text.splitlines()]
    return " | ".join([line[:160] for line in plain if line][-lines:]) or "nothing"


def running_guest(name: str) -> Running:
    """The guest's machine. Raises InputError where it does not run."""
    running = find_running(find_guest(name).name)
    if running is None:
        raise InputError(f"lab:{name} does not run: rtgauge lab boot {name}")
    return running


def remove(guest: Guest) -> list[str]:
    """Remove what was built for a guest, its disk, and the guest itself where it is the user's own; says what. Raises InputError where it runs."""
    if process_of(guest.name) is not None:
        raise InputError(f"lab:{guest.name} runs: rtgauge lab stop {guest.name}")
    gone: list[str] = []
    if remove_images(guest.name):
        gone.append("its image")
    if folder_of(guest.name).is_dir():
        shutil.rmtree(folder_of(guest.name))
        gone.append("its disk")
    if forget(guest):
        gone.append("what was added")
    return gone
