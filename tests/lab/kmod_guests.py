# SPDX-License-Identifier: MIT
"""Guests with rtgauge's kernel modules: eight kernels, 6.1 and 6.12, stock and PREEMPT_RT, x86-64 and
arm64.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tarfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rtgauge_ext.lab.headers import CROSS, HeadersTree, headers_tree, unpack
from rtgauge_ext.lab.kernel_image import bootable
from rtgauge_ext.lab.modules import BASE_MODULES, find_modules, with_needs
from rtgauge_ext.lab.packages import DEBIAN
from rtgauge_ext.lab.paths import cache
from tests.support.cli import COMMAND, environment, good, rtgauge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge_ext.lab.kernel_image import Architecture
    from tests.lab.conftest import Lab

KMOD = Path(__file__).parents[2] / "kmod"
MODULES = ("rtgauge_core", "rtgauge_wire", "rtgauge_periodic", "rtgauge_response")
"""In the order in which they are loaded."""
OLD = "bookworm"
OLD_KERNEL_NEEDS = "tiny-initramfs"
GUEST_FOLDER = "/tmp/kmod"
COMMAND_S = 300
OWN_SOURCES = os.environ.get("RTGAUGE_KMOD_KERNEL", "")
"""The sources of a kernel of one's own, built: the tests run on it too (`-k own`)."""
BEGUN = "rtgauge-test: a test begins"
SCRIPT_ENDED = "rtgauge-test: a script ended: "
COMPLAINT = re.compile(
    r"BUG|WARNING|Oops|Call Trace|stall|lockup|hung|scheduling while atomic|refcount|INFO:|irq .*nobody cared"
)


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
    def preempt_rt(self) -> bool:
        return bool(self.flavour)

    @property
    def _tree(self) -> HeadersTree:
        return headers_tree(self.architecture, print, suite=self.suite)

    @property
    def _release(self) -> str:
        """As its headers have it."""
        (release,) = [release for release in self._tree.releases() if ("-rt-" in release) == self.preempt_rt]
        return release

    def make(self, into: Path, words: Sequence[str]) -> tuple[list[Path], str]:
        """The modules for this kernel, built into a folder, and the output of make."""
        return self._tree.make(self._release, KMOD, into, words)

    def _known(self, lab: Lab) -> bool:
        return self.guest in {
            guest["name"] for guest in json.loads(good(rtgauge("lab", "list", "--json", env=lab.env)).stdout)
        }

    def add(self, lab: Lab) -> None:
        """Make the guest known to the lab, where it is none of its own: Debian 12's kernels, as kernels of
        the user's own.
        """
        if self.suite != OLD or self._known(lab):
            return
        place = cache() / "headers" / f"kernels-{self.suite}-{self.architecture}"
        if not place.is_dir():
            place.parent.mkdir(parents=True, exist_ok=True)
            images = [f"linux-image{flavour}-{DEBIAN[self.architecture]}" for flavour in ("", "-rt")]
            unpack([*images, OLD_KERNEL_NEEDS], self.suite, self.architecture, place)
        folder = lab.home / self.guest
        (folder / "modules").mkdir(parents=True)
        bootable(place / "boot" / f"vmlinuz-{self._release}", self.architecture, folder / "kernel")
        for name, content in with_needs(
            find_modules(place / "lib/modules" / self._release), BASE_MODULES
        ).items():
            (folder / "modules" / f"{name}.ko").write_bytes(content)
        words = [
            "--kernel",
            folder / "kernel",
            "--modules",
            folder / "modules",
            *(["--arm64"] if self.architecture == "aarch64" else []),
        ]
        good(rtgauge("lab", "add", self.guest, *words, env=lab.env))


@dataclass(frozen=True)
class OwnKernel(Kernel):
    """One that was built here for x86-64, from a tree of sources, with all built in that a guest of the lab
    needs: for KASAN, lockdep and their like.
    """

    sources: Path

    def __str__(self) -> str:
        return "own"

    @property
    def preempt_rt(self) -> bool:
        return "CONFIG_PREEMPT_RT=y" in (self.sources / ".config").read_text()

    def make(self, into: Path, words: Sequence[str]) -> tuple[list[Path], str]:
        folder = into / "build"
        shutil.copytree(KMOD, folder, ignore=shutil.ignore_patterns("*.o", "*.ko", "*.mod*", ".*"))
        completed = subprocess.run(
            ["make", "-C", str(self.sources), f"M={folder}", *words, "modules"],
            capture_output=True,
            text=True,
            check=True,
        )
        modules = sorted(Path(shutil.copy(path, into)) for path in folder.glob("*.ko"))
        shutil.rmtree(folder)
        return modules, completed.stdout + completed.stderr

    def add(self, lab: Lab) -> None:
        if not self._known(lab):
            good(
                rtgauge(
                    "lab", "add", self.guest, "--kernel", self.sources / "arch/x86/boot/bzImage", env=lab.env
                )
            )


KERNELS = [
    Kernel(f"{name}{flavour}{ending}", architecture, flavour, suite)
    for name, suite in (("debian", "trixie"), ("debian12", OLD))
    for ending, architecture in (("", "x86_64"), ("-arm64", "aarch64"))
    for flavour in ("", "-rt")
]
BUILT_ONLY = [Kernel("debian-riscv64", "riscv64", "", "trixie")]
if OWN_SOURCES:
    KERNELS.append(OwnKernel("own", "x86_64", "", "own", Path(OWN_SOURCES)))


def build_test_program(architecture: Architecture, place: Path) -> None:
    """The program that speaks with the modules, static, for a guest."""
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-Wno-sign-compare", "-static"]
    subprocess.run(
        [f"{CROSS[architecture]}gcc", *flags, "-o", str(place), str(KMOD / "test/kmod_test.c")], check=True
    )


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
        samples = [
            Sample(*map(int, words[1:6]), times=tuple(map(int, words[6:])))
            for words in lines
            if words[:1] == ["sample"]
        ]
        statuses = [
            {key: int(value) for key, _, value in (word.partition("=") for word in words[1:])}
            for words in lines
            if words[:1] == ["status"]
        ]
        return cls(sorted(samples, key=lambda sample: sample.number), statuses[-1])


class KmodGuest:
    """A guest with the modules and the test program in it. It is booted when it is needed: also again, if a
    test failed in it.
    """

    def __init__(self, lab: Lab, kernel: Kernel, folder: Path) -> None:
        self.lab, self.kernel = lab, kernel
        self._connection: subprocess.Popen[str] | None = None
        self._archive = folder / "kmod.tar"
        modules, _ = kernel.make(folder, ["-s"])
        build_test_program(kernel.architecture, folder / "kmod_test")
        with tarfile.open(self._archive, "w", format=tarfile.GNU_FORMAT) as archive:
            for path in (*modules, folder / "kmod_test"):
                archive.add(path, path.name)
        kernel.add(lab)

    def _connected(self) -> subprocess.Popen[str]:
        """A shell in the guest, which stays open for all scripts: a new connection takes an emulated guest
        seconds.
        """
        if self.lab.up != self.kernel.guest:
            self.close()
            self.lab.boot(self.kernel.guest)
            unpack_here = f"mkdir {GUEST_FOLDER} && tar -x -C {GUEST_FOLDER}"
            with self._archive.open() as file:
                good(rtgauge("lab", "shell", self.kernel.guest, unpack_here, env=self.lab.env, stdin=file))
        if self._connection is None or self._connection.poll() is not None:
            words = [*COMMAND, "lab", "shell", self.kernel.guest, "sh"]
            self._connection = subprocess.Popen(
                words, env=environment(**self.lab.env), stdin=-1, stdout=-1, text=True
            )
        return self._connection

    def shell(self, script: str, timeout_s: float = COMMAND_S) -> str:
        """What a script prints that runs among the modules; it has to end well."""
        connection = self._connected()
        assert connection.stdin is not None
        assert connection.stdout is not None
        errors_file = f"{GUEST_FOLDER}/errors"
        run = f"sh -c {shlex.quote(f'cd {GUEST_FOLDER}; {script}')} </dev/null 2>{errors_file}"
        line = f"{run}; echo '{SCRIPT_ENDED}'$?; cat {errors_file}; echo '{SCRIPT_ENDED}'"
        print(line, file=connection.stdin, flush=True)
        give_up = threading.Timer(timeout_s, connection.kill)
        give_up.start()
        try:
            printed, status = self._until_ended(connection)
            errors, _ = self._until_ended(connection)
        finally:
            give_up.cancel()
        return good(subprocess.CompletedProcess(script, int(status), printed, errors)).stdout

    def _until_ended(self, connection: subprocess.Popen[str]) -> tuple[str, str]:
        """What the guest prints until the next line that ends with SCRIPT_ENDED, and what follows that word."""
        assert connection.stdout is not None
        lines: list[str] = []
        for line in connection.stdout:
            before, ended, rest = line.partition(SCRIPT_ENDED)
            lines.append(before)
            if ended:
                return "".join(lines), rest
        raise AssertionError(
            f"the connection to {self.kernel.guest} ended: {connection.wait()}\n{''.join(lines)}"
        )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.kill()
            self._connection.communicate()
            self._connection = None

    def load(self, *parameters: str) -> None:
        """Load all modules, the wire with its parameters."""
        words = {"rtgauge_wire": shlex.join(parameters)}
        self.shell(
            " && ".join(
                [
                    *(f"insmod {module}.ko {words.get(module, '')}" for module in MODULES),
                    f"echo {BEGUN} >/dev/kmsg",
                ]
            )
        )

    def unload(self) -> list[str]:
        """Remove the modules that are there; lines of the kernel log since they were loaded that report a
        fault.
        """
        script = 'for module; do if grep -q "^$module " /proc/modules; then rmmod $module || exit 1; fi; done'
        log = (
            self.shell(f"set -- {shlex.join(reversed(MODULES))}; {script}; dmesg")
            .rpartition(BEGUN)[2]
            .splitlines()
        )
        return [line for line in log if COMPLAINT.search(line)]
