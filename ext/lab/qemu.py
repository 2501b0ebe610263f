# SPDX-License-Identifier: MIT
"""Makes QEMU's command line for a guest."""

from __future__ import annotations

import platform
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rtgauge.errors import InputError, MeasureError
from rtgauge_ext.lab.guest import MEMORY_MIB, Guest
from rtgauge_ext.lab.kernel_image import Architecture
from rtgauge_ext.lab.paths import INITRD

if TYPE_CHECKING:
    from rtgauge_ext.lab.image import Image

Accelerator = Literal["tcg", "kvm"]
PROGRAMS = {
    "x86_64": "qemu-system-x86_64",
    "aarch64": "qemu-system-aarch64",
    "riscv64": "qemu-system-riscv64",
}
PACKAGES = {
    "x86_64": "qemu-system-x86",
    "aarch64": "qemu-system-arm",
    "riscv64": "qemu-system-misc opensbi",
}
ONE_THREAD = "tcg,thread=single"
"""With one thread per emulated x86 CPU, QEMU 7.2 occasionally ran code that the kernel had just patched
(`Oops: int3`).
"""
STEADY_CLOCK = "tsc=nowatchdog"
"""On a busy host, the guest's kernel would find the emulated TSC unstable and change the clock source during
a measurement. The other emulated clocks are no better.
"""
UNCHECKED_TIMER = "no_timer_check"
"""On a busy host, no interrupt of the emulated timer comes while the kernel checks it. The kernel would panic
("IO-APIC + timer doesn't work").
"""
SAME_ADDRESSES = "norandmaps"
"""With random addresses, QEMU translates a program again at each start, and keeps every translation with the
program's page of memory. QEMU 7.2 searches all translations at each write to such a page. After some 20
minutes of tests and a power cut, the kernel could not unpack itself over this memory.
"""
ICOUNT_SHIFT = 2
"""With an instruction clock, an instruction takes 2 ** shift ns (QEMU's manual, "TCG Instruction Counting").
"""
ICOUNT_PARAMETER = "rtgauge.icount"
"""Shows the clock in the guest's facts. The kernel ignores parameters of unknown modules."""
CONSOLES = {"x86_64": "ttyS0", "aarch64": "ttyAMA0", "riscv64": "ttyS0"}
PROCESSORS: dict[tuple[Architecture, Accelerator], str] = {
    # Five-level page tables and architected pointer authentication are slow to emulate, and no guest needs
    # them.
    ("x86_64", "tcg"): "max,la57=off",
    ("x86_64", "kvm"): "host",
    ("aarch64", "tcg"): "max,pauth-impdef=on",
    ("aarch64", "kvm"): "host",
    ("riscv64", "tcg"): "rv64",
    ("riscv64", "kvm"): "host",
}
# No guest needs system management mode, with which QEMU 7.2 occasionally crashed while starting several
# emulated CPUs.
MACHINES = {"x86_64": "q35,smm=off", "aarch64": "virt,gic-version=max", "riscv64": "virt"}
TOPOLOGY = {"x86_64": "4,cores=2,threads=2", "aarch64": "4", "riscv64": "4"}
SMP = r"[0-9]{1,3}(,(sockets|dies|clusters|cores|threads|cpus|maxcpus)=[0-9]{1,3}){0,6}"
LONGEST_APPEND = 1500
LONGEST_SOCKET = 100
"""The most bytes allowed in a Unix socket's path. The kernel's limit is 107."""


@dataclass(frozen=True)
class BootOptions:
    """How to boot a guest. `append`: kernel parameters; `smp`: CPUs for QEMU's -smp. None is the default."""

    append: str = ""
    smp: str | None = None
    memory_mib: int = MEMORY_MIB
    port: int | None = None
    accelerator: Accelerator | None = None
    icount: bool = False
    """Whether the guest's clock counts instructions."""
    engines: tuple[Path, ...] = ()
    """Engines to put into the image of a guest that has only serial lines, because transferring an engine
    over them takes a minute.
    """


def check_append(text: str) -> str:
    """Return the kernel parameters. Raises InputError if they are too long or unprintable."""
    if len(text) > LONGEST_APPEND or not text.isprintable():
        raise InputError(
            f"give the kernel parameters as one line of at most {LONGEST_APPEND} printable characters"
        )
    return text


def program(architecture: Architecture) -> str:
    """Return the path of QEMU. Raises MeasureError if it is not installed."""
    path = shutil.which(PROGRAMS[architecture])
    if path is None:
        raise MeasureError(
            f"{PROGRAMS[architecture]}, which runs the lab's guests, is not installed: apt-get install "
            f"{PACKAGES[architecture]}"
        )
    return path


def _escaped(path: Path) -> str:
    """Return a path for QEMU's options, with each comma doubled."""
    return str(path).replace(",", ",,")


def _monitor(folder: Path) -> list[str]:
    """Return the options for QEMU's monitor socket. Tests use it to press an Arm guest's power button."""
    path = folder / "qmp"
    if len(str(path).encode()) > LONGEST_SOCKET:
        return []
    socket = f"socket,id=monitor,path={_escaped(path)},server=on,wait=off"
    return ["-chardev", socket, "-mon", "chardev=monitor,mode=control"]


def _virtio(image: Image, folder: Path, port: int) -> list[str]:
    """Return the options for two disks and a network."""
    return [
        *("-drive", f"file={_escaped(image.programs)},format=raw,if=none,id=programs,readonly=on"),
        *("-device", "virtio-blk-pci,drive=programs"),
        *("-drive", f"file={_escaped(folder / 'disk')},format=raw,if=none,id=kept"),
        *("-device", "virtio-blk-pci,drive=kept"),
        *("-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{port}-:22"),
        *("-device", "virtio-net-pci,netdev=net,romfile="),
        *("-device", "virtio-rng-pci"),
    ]


def _serial_line(port: int) -> list[str]:
    """Return the options for a second serial line at `port`."""
    socket = f"socket,id=line,host=127.0.0.1,port={port},server=on,wait=off"
    return ["-chardev", socket, "-serial", "chardev:line"]


def with_engines(guest: Guest, options: BootOptions) -> bool:
    """Return whether the guest boots the initial RAM disk in its own folder, which has engines."""
    return guest.serial and options.engines != ()


def cpus(guest: Guest, options: BootOptions) -> str:
    """Return the guest's CPUs for -smp. The default is 1 with an instruction clock, which makes CPUs take
    turns.
    """
    return options.smp or ("1" if options.icount else TOPOLOGY[guest.architecture])


def emulates_x86(guest: Guest, accelerator: Accelerator) -> bool:
    """Return whether the guest has an emulated TSC."""
    return guest.architecture == "x86_64" and accelerator == "tcg"


def command(
    guest: Guest, image: Image, options: BootOptions, *, folder: Path, port: int, accelerator: Accelerator
) -> list[str]:
    """Return QEMU's command line. QEMU will daemonize and put console, monitor socket and pid into `folder`.

    Raises InputError if `options` has wrong CPUs or kernel parameters, MeasureError if QEMU is not installed.
    """
    smp = cpus(guest, options)
    if not re.fullmatch(SMP, smp):
        raise InputError(f"--smp '{smp[:80]}': give a number or QEMU's notation, e.g. 4,cores=2,threads=2")
    defaults = [
        f"console={CONSOLES[guest.architecture]}",
        "loglevel=5",
        "panic=-1",
        *([STEADY_CLOCK, UNCHECKED_TIMER] if emulates_x86(guest, accelerator) else []),
        *([SAME_ADDRESSES] if accelerator == "tcg" else []),
    ]
    if options.icount:
        defaults.append(f"{ICOUNT_PARAMETER}={ICOUNT_SHIFT}")
    parameters = [*defaults, guest.append, check_append(options.append)]
    return [
        program(guest.architecture),
        *("-name", f"rtgauge-{guest.name}"),
        *("-machine", MACHINES[guest.architecture]),
        *("-accel", ONE_THREAD if emulates_x86(guest, accelerator) or options.icount else accelerator),
        *(("-icount", f"shift={ICOUNT_SHIFT}") if options.icount else ()),
        *("-cpu", PROCESSORS[guest.architecture, accelerator]),
        *("-smp", smp),
        *("-m", f"{options.memory_mib}M"),
        *("-nodefaults", "-no-user-config", "-display", "none"),
        *("-kernel", str(image.kernel)),
        *("-initrd", str(folder / INITRD if with_engines(guest, options) else image.initrd)),
        *("-append", " ".join(parameter for parameter in parameters if parameter)),
        *("-chardev", f"file,id=console,path={_escaped(folder / 'console.log')}"),
        *("-serial", "chardev:console"),
        *(_serial_line(port) if guest.serial else _virtio(image, folder, port)),
        *_monitor(folder),
        *("-pidfile", str(folder / "pid")),
        "-daemonize",
    ]


def same_architecture(architecture: Architecture) -> bool:
    """Return whether this machine has this architecture."""
    aliases = {"x86_64": "amd64", "aarch64": "arm64"}
    return platform.machine() in {architecture, aliases.get(architecture)}
