# SPDX-License-Identifier: MIT
"""Guests with rtgauge's kernel modules: eight kernels, 6.1 and 6.12, stock and PREEMPT_RT, x86-64 and arm64."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rtgauge.lab.headers import CROSS, HeadersTree, headers_tree, unpack
from rtgauge.lab.kernel_image import bootable
from rtgauge.lab.modules import WANTED, find_modules, with_needs
from rtgauge.lab.packages import DEBIAN
from rtgauge.lab.paths import cache
from tests.e2e.cli import good, rtgauge

if TYPE_CHECKING:
    from rtgauge.lab.kernel_image import Architecture
    from tests.lab.conftest import Lab

KMOD = Path(__file__).parents[2] / "kmod"
MODULES = ("rtgauge_core", "rtgauge_wire", "rtgauge_periodic", "rtgauge_response")
"""In the order in which they are loaded."""
OLD = "bookworm"
OLD_KERNEL_NEEDS = "tiny-initramfs"
GUEST_FOLDER = "/tmp/kmod"
COMMAND_S = 120
BEGUN = "rtgauge-test: a test begins"
COMPLAINT = re.compile(r"BUG|WARNING|Oops|Call Trace|stall|lockup|hung|scheduling while atomic|refcount|INFO:|irq .*nobody cared")


@dataclass(frozen=True)
class Kernel:
    """A guest's kernel."""

    guest: str
    architecture: Architecture
    flavour: str
    suite: str

    def __str__(self) -> str:
        return f"{self.suite}{self.flavour}-{self.architecture}"

    @property
    def tree(self) -> HeadersTree:
        return headers_tree(self.architecture, print, suite=self.suite)

    @property
    def release(self) -> str:
        """As its headers have it."""
        (release,) = [one for one in self.tree.releases() if ("-rt-" in one) == bool(self.flavour)]
        return release


KERNELS = [
    Kernel(f"{name}{flavour}{ending}", architecture, flavour, suite)
    for name, suite in (("debian", "trixie"), ("debian12", OLD))
    for ending, architecture in (("", "x86_64"), ("-arm64", "aarch64"))
    for flavour in ("", "-rt")
]


def add_old_kernel(lab: Lab, kernel: Kernel) -> None:
    """Debian 12's kernel as a kernel of the user's own: the lab's guests are of Debian 13."""
    place = cache() / "headers" / f"kernels-{kernel.suite}-{kernel.architecture}"
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        images = [f"linux-image{flavour}-{DEBIAN[kernel.architecture]}" for flavour in ("", "-rt")]
        unpack([*images, OLD_KERNEL_NEEDS], kernel.suite, kernel.architecture, place)
    folder = lab.home / kernel.guest
    (folder / "modules").mkdir(parents=True)
    bootable(place / "boot" / f"vmlinuz-{kernel.release}", kernel.architecture, folder / "kernel")
    for name, content in with_needs(find_modules(place / "lib/modules" / kernel.release), WANTED).items():
        (folder / "modules" / f"{name}.ko").write_bytes(content)
    words = ["--kernel", folder / "kernel", "--modules", folder / "modules", *(["--arm64"] if kernel.architecture == "aarch64" else [])]
    good(rtgauge("lab", "add", kernel.guest, *words, env=lab.env))


def build_test_program(architecture: Architecture, place: Path) -> None:
    """The program that speaks with the modules, static, for a guest."""
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-Wno-sign-compare", "-static"]
    subprocess.run([f"{CROSS[architecture]}gcc", *flags, "-o", str(place), str(KMOD / "test/kmod_test.c")], check=True)


@dataclass(frozen=True)
class Sample:
    """A sample as the test program prints it."""

    number: int
    cpu: int
    line: int
    made_by: int
    flags: int
    times: tuple[int, ...]


@dataclass(frozen=True)
class Measured:
    """What a measurement printed: its samples in the order of their numbers, and its last status."""

    samples: list[Sample]
    status: dict[str, int]

    @classmethod
    def of(cls, text: str) -> Measured:
        lines = [line.split() for line in text.splitlines()]
        samples = [Sample(*map(int, words[1:6]), times=tuple(map(int, words[6:]))) for words in lines if words[:1] == ["sample"]]
        statuses = [{key: int(value) for key, _, value in (word.partition("=") for word in words[1:])} for words in lines if words[:1] == ["status"]]
        return cls(sorted(samples, key=lambda sample: sample.number), statuses[-1])


class KmodGuest:
    """A guest that is up, with the modules and the test program in it."""

    def __init__(self, lab: Lab, kernel: Kernel, folder: Path) -> None:
        self.lab, self.kernel = lab, kernel
        modules, _ = kernel.tree.make(kernel.release, KMOD, ["-s"])
        build_test_program(kernel.architecture, folder / "kmod_test")
        if kernel.suite == OLD:
            add_old_kernel(lab, kernel)
        lab.boot(kernel.guest)
        files = [str(path) for path in (*modules, folder / "kmod_test")]
        archive = subprocess.run(
            ["tar", "-c", *(word for path in files for word in ("-C", str(Path(path).parent), Path(path).name))], check=True, stdout=-1
        ).stdout
        place = folder / "kmod.tar"
        place.write_bytes(archive)
        with place.open() as file:
            good(rtgauge("lab", "shell", kernel.guest, f"mkdir {GUEST_FOLDER} && tar -x -C {GUEST_FOLDER}", env=lab.env, stdin=file))

    def shell(self, script: str, timeout_s: float = COMMAND_S) -> str:
        """What a script prints that runs among the modules; it has to end well."""
        return good(rtgauge("lab", "shell", self.kernel.guest, f"cd {GUEST_FOLDER}; {script}", env=self.lab.env, timeout=timeout_s)).stdout

    def load(self, *parameters: str) -> None:
        """Load all modules, the wire with its parameters."""
        words = {"rtgauge_wire": shlex.join(parameters)}
        self.shell(" && ".join([*(f"insmod {module}.ko {words.get(module, '')}" for module in MODULES), f"echo {BEGUN} >/dev/kmsg"]))

    def unload(self) -> list[str]:
        """Remove the modules that are there; what the kernel said since they were loaded that it should not have to say."""
        script = 'for module; do if grep -q "^$module " /proc/modules; then rmmod $module || exit 1; fi; done'
        said = self.shell(f"set -- {shlex.join(reversed(MODULES))}; {script}; dmesg").rpartition(BEGUN)[2].splitlines()
        return [line for line in said if COMPLAINT.search(line)]
