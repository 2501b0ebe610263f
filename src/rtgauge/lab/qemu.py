# SPDX-License-Identifier: MIT
"""QEMU's command line for a guest."""

from __future__ import annotations

import platform
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rtgauge.errors import InputError, MeasureError

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge.lab.guest import Guest
    from rtgauge.lab.image import Image
    from rtgauge.lab.kernel_image import Architecture

Accelerator = Literal["tcg", "kvm"]
PROGRAMS = {"x86_64": "qemu-system-x86_64", "aarch64": "qemu-system-aarch64"}
PACKAGES = {"x86_64": "qemu-system-x86", "aarch64": "qemu-system-arm"}
ONE_THREAD = "tcg,thread=single"
"""With a thread for each emulated x86 processor QEMU 7.2 now and then ran code that the kernel had just changed (`Oops: int3`)."""
STEADY_CLOCK = "tsc=nowatchdog"
"""An emulated TSC is as good as the other emulated clocks: where the host is busy, the kernel would take it for unstable and change the clock in the middle
of a measurement."""
CONSOLES = {"x86_64": "ttyS0", "aarch64": "ttyAMA0"}
PROCESSORS: dict[tuple[Architecture, Accelerator], str] = {
    # Five levels of page tables and the Arm's own pointer authentication cost an emulator time and no guest needs them.
    ("x86_64", "tcg"): "max,la57=off",
    ("x86_64", "kvm"): "host",
    ("aarch64", "tcg"): "max,pauth-impdef=on",
    ("aarch64", "kvm"): "host",
}
# No guest needs system management mode; with it QEMU 7.2 now and then crashed as several emulated processors started.
MACHINES = {"x86_64": "q35,smm=off", "aarch64": "virt,gic-version=max"}
TOPOLOGY = {"x86_64": "4,cores=2,threads=2", "aarch64": "4"}
MEMORY_MIB = 1024
SMP = r"[0-9]{1,3}(,(sockets|dies|clusters|cores|threads|cpus|maxcpus)=[0-9]{1,3}){0,6}"
LONGEST_APPEND = 1500
LONGEST_SOCKET = 100
"""Bytes of a Unix socket's path, less than the kernel's 107."""


@dataclass(frozen=True)
class BootOptions:
    """How a guest is booted. `append`: words for the kernel's command line; `smp`: processors as QEMU's -smp has them; None: the guest's own."""

    append: str = ""
    smp: str | None = None
    memory_mib: int = MEMORY_MIB
    port: int | None = None
    accelerator: Accelerator | None = None


def check_append(text: str) -> str:
    """Words for a kernel's command line. Raises InputError for what none can hold."""
    if len(text) > LONGEST_APPEND or not text.isprintable():
        raise InputError(f"a kernel's command line is one line of at most {LONGEST_APPEND} plain characters")
    return text


def program(architecture: Architecture) -> str:
    """Path of QEMU. Raises MeasureError where it is missing."""
    path = shutil.which(PROGRAMS[architecture])
    if path is None:
        raise MeasureError(f"the program {PROGRAMS[architecture]} is missing, which runs the lab's guests: apt-get install {PACKAGES[architecture]}")
    return path


def _plain(path: Path) -> str:
    """A file in QEMU's options, where a comma ends a value."""
    return str(path).replace(",", ",,")


def _monitor(folder: Path) -> list[str]:
    """QEMU's own control, for whoever may look into the folder: a press of the power button, which is a GPIO line of an Arm guest, comes from there."""
    path = folder / "qmp"
    if len(str(path).encode()) > LONGEST_SOCKET:
        return []
    return ["-chardev", f"socket,id=monitor,path={_plain(path)},server=on,wait=off", "-mon", "chardev=monitor,mode=control"]


def emulates_x86(guest: Guest, accelerator: Accelerator) -> bool:
    """Whether the guest has a TSC that QEMU computes."""
    return guest.architecture == "x86_64" and accelerator == "tcg"


def command(guest: Guest, image: Image, options: BootOptions, *, folder: Path, port: int, accelerator: Accelerator) -> list[str]:
    """The whole command line; QEMU goes into the background when the machine is set up, and writes what it says into `folder`."""
    smp = options.smp or TOPOLOGY[guest.architecture]
    if not re.fullmatch(SMP, smp):
        raise InputError(f"processors '{smp[:80]}': write a number or QEMU's own form, such as 4,cores=2,threads=2")
    own = [f"console={CONSOLES[guest.architecture]}", "loglevel=5", "panic=-1", *([STEADY_CLOCK] if emulates_x86(guest, accelerator) else [])]
    words = [*own, guest.append, check_append(options.append)]
    return [
        program(guest.architecture),
        *("-name", f"rtgauge-{guest.name}"),
        *("-machine", MACHINES[guest.architecture]),
        *("-accel", ONE_THREAD if emulates_x86(guest, accelerator) else accelerator),
        *("-cpu", PROCESSORS[guest.architecture, accelerator]),
        *("-smp", smp),
        *("-m", f"{options.memory_mib}M"),
        *("-nodefaults", "-no-user-config", "-display", "none"),
        *("-kernel", str(image.kernel)),
        *("-initrd", str(image.initrd)),
        *("-append", " ".join(word for word in words if word)),
        *("-drive", f"file={_plain(image.programs)},format=raw,if=none,id=programs,readonly=on"),
        *("-device", "virtio-blk-pci,drive=programs"),
        *("-drive", f"file={_plain(folder / 'disk')},format=raw,if=none,id=kept"),
        *("-device", "virtio-blk-pci,drive=kept"),
        *("-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{port}-:22"),
        *("-device", "virtio-net-pci,netdev=net,romfile="),
        *("-device", "virtio-rng-pci"),
        *("-chardev", f"file,id=console,path={_plain(folder / 'console.log')}"),
        *("-serial", "chardev:console"),
        *_monitor(folder),
        *("-pidfile", str(folder / "pid")),
        "-daemonize",
    ]


def same_architecture(architecture: Architecture) -> bool:
    """Whether this machine's processor is of the guest's kind."""
    return platform.machine() in {"x86_64": ("x86_64", "amd64"), "aarch64": ("aarch64", "arm64")}[architecture]
