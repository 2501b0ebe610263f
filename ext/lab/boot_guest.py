# SPDX-License-Identifier: MIT
"""Boots guests, waits until they answer, and reboots them with other kernel parameters."""

from __future__ import annotations

import fcntl
import re
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from rtgauge.errors import InputError, MeasureError
from rtgauge.program_run import run_program
from rtgauge.user_cache import private_folder
from rtgauge_ext.lab.accelerator import choose
from rtgauge_ext.lab.disk import make_empty_disk
from rtgauge_ext.lab.guest import Guest, find_guest
from rtgauge_ext.lab.image import Image, image_of, write_initrd_with
from rtgauge_ext.lab.paths import INITRD, console_end, folder_of, open_lock
from rtgauge_ext.lab.qemu import Accelerator, BootOptions, command, cpus, with_engines
from rtgauge_ext.lab.running_guests import (
    BootedGuest,
    BootError,
    console_of,
    end_of_console,
    find_running,
    keep,
    kill,
    process_of,
    run_in,
    running_guest,
    stop,
)
from rtgauge_ext.lab.ssh import key_on, trust

DISK_MIB = 2048
PANIC = b"Kernel panic - not syncing"
SLOWEST_BOOT_S = 180.0
"""The longest time that a boot may take. Emulation on a busy machine is slow."""
PORT_TRIES = 5
TAKEN = re.compile("Could not set up host forwarding rule|Address already in use")
NO_MEMORY = "cannot set up guest memory"
LITTLE_MIB = 512
ROOM_MIB = 128
"""The approximate memory of QEMU itself."""


class QemuEndedError(BootError):
    """QEMU ended while the guest booted."""


def boot(
    guest: Guest,
    image: Image,
    options: BootOptions,
    notify: Callable[[str], None],
    *,
    or_running: bool = False,
) -> BootedGuest:
    """Boot a guest and wait until its SSH server answers.

    `or_running`: accept a running guest instead of raising InputError. Raises MeasureError if the guest does
    not come up.
    """
    name, folder = guest.name, private_folder(folder_of(guest.name))
    with open_lock(folder / "lock") as lock:
        # a second caller waits until the guest is up
        fcntl.flock(lock, fcntl.LOCK_EX)
        running = find_running(name)
        if running is not None and or_running:
            return running
        if running is not None:
            raise InputError(
                f"lab:{name} is already running (process {running.pid}); stop it with: rtgauge lab "
                f"stop {name}"
            )
        kill(name)  # a killed boot may have left a QEMU
        return _boot(guest, image, options, notify)


def _boot(guest: Guest, image: Image, options: BootOptions, notify: Callable[[str], None]) -> BootedGuest:
    name, folder = guest.name, folder_of(guest.name)
    _check_memory(name, options.memory_mib)
    smp = cpus(guest, options)
    accelerator = options.accelerator or ("tcg" if options.icount else choose(guest, image, notify))
    if options.icount and accelerator != "tcg":
        raise InputError("--icount works only with an emulated processor; leave out --accel kvm")
    disk = folder / "disk"
    if not guest.serial and not disk.exists():
        with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as aside:
            new = Path(aside) / "disk"
            make_empty_disk(new, DISK_MIB)
            new.replace(disk)
    if with_engines(guest, options):
        write_initrd_with(image, options.engines, folder / INITRD)
    start = time.monotonic()
    port, key = _start_and_wait(guest, image, options, accelerator, notify)
    trust(folder, key)
    running = BootedGuest(
        name=name,
        pid=process_of(name) or 0,
        port=port,
        accelerator=accelerator,
        append=options.append,
        smp=smp,
        release=image.release,
        boot_s=round(time.monotonic() - start, 1),
        memory_mib=options.memory_mib,
        asked_port=options.port,
        icount=options.icount,
        serial=guest.serial,
    )
    keep(running)
    if guest.serial:
        _open_line(running)
    return running


def _open_line(running: BootedGuest) -> None:
    """Open the connection that all others share (`ssh_options`). A Ctrl-C in the terminal does not end it.

    Raises BootError if the guest does not answer.
    """
    completed = run_in(running, "true", SLOWEST_BOOT_S)
    if completed is None or completed.returncode:
        problem = f"lab:{running.name} does not answer on its second serial line; stop it and boot it again"
        error = BootError.of(
            running.name,
            f"{problem} ({completed.stderr.strip()[-200:]})"
            if completed is not None and completed.stderr.strip()
            else problem,
        )
        kill(running.name)
        raise error


def boot_again(
    guest: Guest, image: Image, options: BootOptions, notify: Callable[[str], None]
) -> BootedGuest:
    """Shut the guest down if it runs, and boot it with other options. Raises MeasureError as `boot` does."""
    stop(guest.name)
    return boot(guest, image, options, notify)


def _start_and_wait(
    guest: Guest, image: Image, options: BootOptions, accelerator: Accelerator, notify: Callable[[str], None]
) -> tuple[int, str]:
    """Start the guest and wait until it is up; retry if QEMU crashes. Return its port and its host key.

    Raises MeasureError if the guest does not come up.
    """
    for last in (False, True):
        port = _start(guest, image, options, accelerator)
        try:
            return port, _wait_until_ready(guest.name, SLOWEST_BOOT_S)
        except QemuEndedError as error:
            if last:
                raise
            notify(f"{error}; trying once more")
        except BaseException:
            kill(guest.name)
            raise
    raise AssertionError


def _no_memory(name: str, reason: str) -> MeasureError:
    return MeasureError(
        f"there is not enough memory for the guest: {reason}; stop other programs, or give the guest less: "
        f"rtgauge lab boot {name} --memory {LITTLE_MIB}"
    )


def _check_memory(name: str, needed_mib: int) -> None:
    with open("/proc/meminfo") as file:  # noqa: PTH123 - a file of the kernel
        available = re.search(r"^MemAvailable:\s+([0-9]+) kB", file.read(), re.MULTILINE)
    if available is not None and int(available[1]) // 1024 < needed_mib + ROOM_MIB:
        free_mib = int(available[1]) // 1024
        raise _no_memory(name, f"it needs {needed_mib} MiB, but only {free_mib} MiB are free")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _start(guest: Guest, image: Image, options: BootOptions, accelerator: Accelerator) -> int:
    """Start QEMU and return the guest's port. Raises MeasureError with QEMU's message."""
    folder = folder_of(guest.name)
    tries = 1 if options.port is not None else PORT_TRIES
    errors = ""
    for _ in range(tries):
        port = options.port or _free_port()
        console_of(guest.name).unlink(missing_ok=True)
        arguments = command(guest, image, options, folder=folder, port=port, accelerator=accelerator)
        completed = run_program(arguments)
        if completed.returncode == 0:
            return port
        errors = completed.stderr
        taken = TAKEN.search(errors) is not None
        if taken and options.port is not None:
            raise MeasureError(
                f"port {port} is in use: choose another port with --port, or leave --port out to let "
                "rtgauge choose a free one"
            )
        if not taken:
            break
    lines = [line for line in errors.strip().splitlines() if "warning" not in line.lower()]
    last = lines[-1][-300:] if lines else "no message"
    if NO_MEMORY in errors:
        raise _no_memory(guest.name, f"QEMU says '{last}'")
    raise MeasureError(f"QEMU cannot start lab:{guest.name}: {last}")


def _wait_until_ready(name: str, timeout_s: float) -> str:
    """Wait for the guest's host key on its console, and return it. Raises MeasureError after the timeout."""
    deadline = time.monotonic() + timeout_s
    while True:
        ended = process_of(name) is None
        try:
            console = console_end(folder_of(name))
        except FileNotFoundError:
            console = b""
        key = key_on(console)
        if key is not None:
            return key
        if PANIC in console:
            raise BootError.of(
                name,
                f"the kernel of lab:{name} panicked while booting; if you gave parameters with --append, "
                f"remove them, otherwise rebuild the image: rtgauge lab build {name} --fresh",
            )
        if ended:
            raise QemuEndedError.of(
                name, f"QEMU was killed or crashed while lab:{name} booted; boot the guest again"
            )
        if time.monotonic() > deadline:
            raise BootError.of(
                name,
                f"lab:{name} did not come up within {timeout_s:g} s; if this machine is busy, stop other "
                "programs and boot the guest again",
            )
        time.sleep(0.05)


def ready_guest(name: str, engines: Callable[[], tuple[Path, ...]]) -> BootedGuest:
    """Return the running guest; boot it first if necessary.

    `engines` returns `BootOptions.engines`, and is called only for a boot. Raises InputError if there is no
    image, MeasureError if the guest does not boot.
    """
    guest = find_guest(name)
    running = find_running(name)
    if running is not None:
        return running
    image = image_of(guest)
    _notify(f"lab:{name} is not running, so rtgauge boots it")
    running = boot(
        guest, image, BootOptions(engines=engines() if guest.serial else ()), _notify, or_running=True
    )
    _notify(
        f"lab:{name} booted in {running.boot_s} s and keeps running; stop it with: rtgauge lab stop {name}"
    )
    return running


def _notify(text: str) -> None:
    sys.stderr.write(f"{text}\n")


class GuestReboots:
    """Reboots a running guest with other kernel parameters, and at the end with the original parameters."""

    def __init__(self, name: str, engines: tuple[Path, ...], notify: Callable[[str], None]) -> None:
        """Find the running guest. `engines`: as in `BootOptions`. Raises InputError if it is not running."""
        self._guest = find_guest(name)
        self._engines = engines
        self._image = image_of(self._guest)
        self._notify = notify
        self._original = running_guest(name)

    @property
    def append(self) -> str:
        """The guest's original kernel parameters."""
        return self._original.append

    def boot(self, append: str) -> None:
        """Reboot the guest with these kernel parameters and its original CPUs, memory and port.

        Raises MeasureError if the guest does not boot.
        """
        original = self._original
        # the accelerator is known to work: the guest runs with it
        accelerator = cast("Accelerator", original.accelerator)
        options = BootOptions(
            append=append,
            smp=original.smp,
            memory_mib=original.memory_mib,
            port=original.asked_port,
            accelerator=accelerator,
            icount=original.icount,
            engines=self._engines,
        )
        boot_again(self._guest, self._image, options, self._notify)

    def console(self) -> bytes:
        """Return the end of the guest's console since the last boot; empty if the console cannot be read."""
        return end_of_console(self._guest.name) or b""

    def leave(self) -> None:
        """Reboot the guest with its original kernel parameters, unless it already runs with them.

        Raises MeasureError if the guest does not boot.
        """
        running = find_running(self._guest.name)
        if running is None or running.append != self._original.append:
            self.boot(self._original.append)
