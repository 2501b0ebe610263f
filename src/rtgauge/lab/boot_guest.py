# SPDX-License-Identifier: MIT
"""Boots a guest and waits until it answers; boots it again with another kernel command line, and as it was."""

from __future__ import annotations

import fcntl
import re
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Self, cast

from rtgauge.errors import InputError, MeasureError
from rtgauge.lab import paths
from rtgauge.lab.accelerator import choose
from rtgauge.lab.disk import make_empty_disk
from rtgauge.lab.guest import find_guest
from rtgauge.lab.image import image_of
from rtgauge.lab.paths import folder_of
from rtgauge.lab.qemu import TOPOLOGY, BootOptions, command
from rtgauge.lab.running_guests import Running, console_of, end_of_console, find_running, keep, kill, last_words, process_of, running_guest, stop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rtgauge.lab.guest import Guest
    from rtgauge.lab.image import Image
    from rtgauge.lab.qemu import Accelerator

DISK_MIB = 2048
READY = re.compile(rb"rtgauge-lab: ready (ssh-ed25519 [A-Za-z0-9+/=]{40,200})\r?\n")
PANIC = b"Kernel panic - not syncing"
SLOWEST_BOOT_S = 180.0
"""A machine that computes much else takes long to emulate another one."""
PORT_TRIES = 5
TAKEN = "Could not set up host forwarding rule"
NO_MEMORY = "cannot set up guest memory"
LITTLE_MIB = 512
ROOM_MIB = 128
"""What QEMU needs for itself, about."""


class BootError(MeasureError):
    """The guest was booted and does not answer."""

    guest = ""
    console: bytes | None = None
    """The end of what it wrote: another boot begins a new file."""
    _what = _ends = ""

    @classmethod
    def of(cls, guest: str, what: str) -> Self:
        """`what` happened to it, and where its console is at this moment."""
        ends = last_words(guest)
        error = cls(_told(what, console_of(guest), ends))
        error.guest, error.console, error._what, error._ends = guest, end_of_console(guest), what, ends
        return error

    def told(self, console: Path) -> str:
        """The same with another place where its console is."""
        return _told(self._what, console, self._ends)


def _told(what: str, console: Path, ends: str) -> str:
    return f"{what}; its console is in {console} and ends with: {ends}"


class QemuEndedError(BootError):
    """QEMU was there and is gone."""


def boot(guest: Guest, image: Image, options: BootOptions, say: Callable[[str], None], *, or_running: bool = False) -> Running:
    """Boot a guest and wait until its SSH server answers. `or_running`: one that runs already will do. Raises InputError, MeasureError."""
    name, folder = guest.name, paths.private(folder_of(guest.name))
    with (folder / "lock").open("w") as lock:
        # who wants the same guest at the same time waits until it is up
        fcntl.flock(lock, fcntl.LOCK_EX)
        running = find_running(name)
        if running is not None and or_running:
            return running
        if running is not None:
            raise InputError(f"lab:{name} runs already (process {running.pid}): rtgauge lab stop {name} ends it")
        kill(name)  # what a boot that was itself killed has left
        return _boot(guest, image, options, say)


def _boot(guest: Guest, image: Image, options: BootOptions, say: Callable[[str], None]) -> Running:
    name, folder = guest.name, folder_of(guest.name)
    _check_memory(name, options.memory_mib)
    accelerator = options.accelerator or choose(guest, image, say)
    disk = folder / "disk"
    if not disk.exists():
        new = folder / "disk.new"
        make_empty_disk(new, DISK_MIB)
        new.replace(disk)
    began = time.monotonic()
    port, key = _come_up(guest, image, options, accelerator, say)
    (folder / "known_hosts").write_text(f"rtgauge-lab-{name} {key}\n")
    running = Running(
        name=name,
        pid=process_of(name) or 0,
        port=port,
        accelerator=accelerator,
        append=options.append,
        smp=options.smp or TOPOLOGY[guest.architecture],
        release=image.release,
        boot_s=round(time.monotonic() - began, 1),
        memory_mib=options.memory_mib,
        asked_port=options.port,
    )
    keep(running)
    return running


def boot_again(guest: Guest, image: Image, options: BootOptions, say: Callable[[str], None]) -> Running:
    """Boot a guest that may run, in order: for another kernel command line. Raises InputError, MeasureError."""
    stop(guest.name)
    return boot(guest, image, options, say)


def _come_up(guest: Guest, image: Image, options: BootOptions, accelerator: Accelerator, say: Callable[[str], None]) -> tuple[int, str]:
    """The port and the host key of the guest, which is up. QEMU itself can crash, which says nothing of the guest: then once more. Raises MeasureError."""
    for last in (False, True):
        port = _start(guest, image, options, accelerator)
        try:
            return port, _wait_until_ready(guest.name, SLOWEST_BOOT_S)
        except QemuEndedError as error:
            if last:
                raise
            say(f"{error}; once more")
        except BaseException:
            kill(guest.name)
            raise
    raise AssertionError


def _no_memory(name: str, why: str) -> MeasureError:
    return MeasureError(f"there is no memory for the guest: {why}; end something, or give it less: rtgauge lab boot {name} --memory {LITTLE_MIB}")


def _check_memory(name: str, wanted_mib: int) -> None:
    with open("/proc/meminfo") as file:  # noqa: PTH123 - a file of the kernel
        found = re.search(r"^MemAvailable:\s+([0-9]+) kB", file.read(), re.MULTILINE)
    if found is not None and int(found[1]) // 1024 < wanted_mib + ROOM_MIB:
        raise _no_memory(name, f"it wants {wanted_mib} MiB, and {int(found[1]) // 1024} MiB are free")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _start(guest: Guest, image: Image, options: BootOptions, accelerator: Accelerator) -> int:
    """Start QEMU; gives the port. Raises MeasureError with what QEMU says."""
    folder = folder_of(guest.name)
    tries = 1 if options.port is not None else PORT_TRIES
    said = ""
    for _ in range(tries):
        port = options.port or _free_port()
        console_of(guest.name).unlink(missing_ok=True)
        words = command(guest, image, options, folder=folder, port=port, accelerator=accelerator)
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode == 0:
            return port
        said = done.stderr
        if TAKEN in said and options.port is not None:
            raise MeasureError(f"port {port} is taken: name another one (--port), or leave it out and a free one is taken")
        if TAKEN not in said:
            break
    lines = [line for line in said.strip().splitlines() if "warning" not in line.lower()]
    last = lines[-1][-300:] if lines else "it says nothing"
    if NO_MEMORY in said:
        raise _no_memory(guest.name, f"QEMU says '{last}'")
    raise MeasureError(f"QEMU does not start lab:{guest.name}: {last}")


def _wait_until_ready(name: str, timeout_s: float) -> str:
    """The guest's host key, from its console: nobody else writes there. Raises MeasureError."""
    deadline = time.monotonic() + timeout_s
    while True:
        ended = process_of(name) is None
        try:
            said = console_of(name).read_bytes()
        except FileNotFoundError:
            said = b""
        ready = READY.search(said)
        if ready is not None:
            return ready[1].decode()
        if PANIC in said:
            raise BootError.of(
                name, f"the kernel of lab:{name} panicked as it booted (take back what --append gave it, or build it anew: rtgauge lab build {name} --fresh)"
            )
        if ended:
            raise QemuEndedError.of(name, f"QEMU ended while lab:{name} booted (it was killed, or is at fault itself: boot it again)")
        if time.monotonic() > deadline:
            raise BootError.of(
                name, f"lab:{name} did not come up within {timeout_s:g} s (where this machine is busy with something else, end that and boot it again)"
            )
        time.sleep(0.05)


def ready_guest(name: str) -> Running:
    """The guest's machine, booted where it does not run. Raises InputError where there is no image, MeasureError where it does not come up."""
    guest = find_guest(name)
    running = find_running(name)
    if running is not None:
        return running
    image = image_of(guest)
    _say(f"lab:{name} does not run: booting it")
    running = boot(guest, image, BootOptions(), _say, or_running=True)
    _say(f"lab:{name} was booted in {running.boot_s} s and goes on running; rtgauge lab stop {name} ends it")
    return running


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


class Reboots:
    """A guest that runs now."""

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        """`say` is told what takes long. Raises InputError for a guest that does not run."""
        self._guest = find_guest(name)
        self._image = image_of(self._guest)
        self._say = say
        self._found = running_guest(name)

    @property
    def append(self) -> str:
        """The words that it was booted with when it was found."""
        return self._found.append

    def boot(self, append: str) -> None:
        """Boot it with these words; processors, memory and port as it was found. Raises MeasureError where it does not come up."""
        found = self._found
        # what runs there runs with an accelerator that works
        accelerator = cast("Accelerator", found.accelerator)
        options = BootOptions(append=append, smp=found.smp, memory_mib=found.memory_mib, port=found.asked_port, accelerator=accelerator)
        boot_again(self._guest, self._image, options, self._say)

    def console(self) -> bytes:
        """The end of what it wrote on its console since it was booted last; empty where that cannot be read."""
        return end_of_console(self._guest.name) or b""

    def leave(self) -> None:
        """Booted with the words that it was found with. Raises MeasureError where it does not come up."""
        now = find_running(self._guest.name)
        if now is None or now.append != self._found.append:
            self.boot(self._found.append)
