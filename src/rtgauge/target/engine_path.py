# SPDX-License-Identifier: MIT
"""Finds the engine for this machine, and finds or builds engines for targets of other architectures."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from rtgauge.errors import MeasureError
from rtgauge.extension import registered
from rtgauge.program_run import run_program
from rtgauge.user_cache import cache_folder, check_private, private_folder

PACKAGE = Path(__file__).resolve().parent.parent
NAME = "rtgauge-engine"
MACHINES = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "armv7l": "armhf",
    "armv8l": "armhf",
    "riscv64": "riscv64",
    "loongarch64": "loongarch64",
}
"""Maps the output of `uname -m` to the architecture."""
COMPILERS = {
    "x86_64": "x86_64-linux-gnu-gcc",
    "aarch64": "aarch64-linux-gnu-gcc",
    "armhf": "arm-linux-gnueabihf-gcc",
    "riscv64": "riscv64-linux-gnu-gcc",
    "loongarch64": "python-zig",
}
PACKAGES = {
    "x86_64": "gcc-x86-64-linux-gnu",
    "aarch64": "gcc-aarch64-linux-gnu",
    "armhf": "gcc-arm-linux-gnueabihf",
    "riscv64": "gcc-riscv64-linux-gnu",
    "loongarch64": "ziglang",
}
OF_PYPI = frozenset({"ziglang"})
"""Packages that Debian does not have."""
BUILD_S = 300


def cokernel_path(machine: str, runtime: str) -> Path:
    """Return where the engine for a co-kernel (`runtime`, e.g. cobalt) is, if there is one.

    It is $RTGAUGE_ENGINE_COBALT, $RTGAUGE_ENGINE_RTAI, ..., or the package's. `machine`: the target's
    `uname -m`.
    """
    named = os.environ.get(f"RTGAUGE_ENGINE_{runtime.upper()}")
    if named:
        return Path(named)
    architecture = MACHINES.get(machine)
    own = architecture == MACHINES.get(platform.machine())
    return PACKAGE / "bin" / (f"{NAME}-{runtime}" if own else f"{NAME}-{runtime}-{architecture}")


def engine_path() -> Path:
    """Return the path of the engine for this machine: $RTGAUGE_ENGINE, or else the package's.

    Raises MeasureError if it is missing.
    """
    named = os.environ.get("RTGAUGE_ENGINE")
    path = Path(named) if named else PACKAGE / "bin" / NAME
    if not named and not path.exists():  # a wheel for all architectures has no native engine
        path = PACKAGE / "bin" / f"{NAME}-{MACHINES.get(platform.machine(), platform.machine())}"
    if not os.access(path, os.X_OK):
        where = f"the package lacks {path}; install rtgauge again as you installed it, or set RTGAUGE_ENGINE"
        if named:
            where = f"RTGAUGE_ENGINE names {path}, which cannot be run; unset it, or set it to an engine"
        raise MeasureError(f"the engine is missing: {where}")
    return path


def engine_hash(machine: str, runtime: str) -> str | None:
    """Return the SHA-256, in hexadecimal, of the engine that runs on a target with this `uname -m`, for a
    runtime: linux or a co-kernel. None if it cannot be read, for example because it was removed while
    measuring.
    """
    try:
        return _sha256(engine_for(machine) if runtime == "linux" else cokernel_path(machine, runtime))
    except (MeasureError, OSError):
        return None


@cache
def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def installed_engines() -> tuple[Path, ...]:
    """Return the paths of this machine's engines: for Linux and, if installed, for each co-kernel.

    Raises MeasureError if the engine for Linux is missing.
    """
    others = (cokernel_path(platform.machine(), runtime) for runtime in registered("runtimes"))
    return (engine_path(), *(path for path in others if os.access(path, os.X_OK)))


def engine_for(machine: str) -> Path:
    """Return the path of the engine for a target with this `uname -m`.

    It is this machine's engine, one from the package, or one from the user's cache, built when first needed.
    Raises MeasureError if the architecture has none, or if it cannot be built here.
    """
    architecture = MACHINES.get(machine)
    if architecture is None:
        shown = "".join(c if c.isprintable() else "?" for c in machine[:40])
        raise MeasureError(
            f"the target's architecture is {shown}, but rtgauge has engines only for x86-64 (x86_64), arm64 "
            "(aarch64), armhf (armv7l), riscv64 and loongarch64"
        )
    if architecture == MACHINES.get(platform.machine()):
        return engine_path()
    shipped = PACKAGE / "bin" / f"{NAME}-{architecture}"
    if os.access(shipped, os.X_OK):
        return shipped
    source = _source(architecture)
    built = cache_folder("engines") / _fingerprint(source) / f"{NAME}-{architecture}"
    if not os.access(built, os.X_OK):
        _build(source, architecture, built)
    return check_private(built)


def _source(architecture: str) -> Path:
    """Return the folder with the engine's sources, from the package or the checkout."""
    for folder in (PACKAGE / "source", PACKAGE.parent.parent):
        if (folder / "meson.build").is_file() and (
            folder / "engine" / "cross" / f"{architecture}.ini"
        ).is_file():
            return folder
    raise MeasureError(
        f"this rtgauge has neither an engine for {architecture} nor the sources to build one; install it "
        "again from the wheel or the packages, or run it from a checkout"
    )


def _fingerprint(source: Path) -> str:
    """Return a hash of everything that the engine is built from. A changed source is built again."""
    digest = hashlib.sha256()
    files = [
        source / "meson.build",
        source / "meson.options",
        source / "kmod" / "rtgauge_kmod.h",
        *(path for path in (source / "engine").rglob("*") if path.suffix in {".c", ".h", ".build", ".ini"}),
        *(path for path in source.glob("ext/*/engine/**/*") if path.suffix in {".c", ".h"}),
    ]
    for path in sorted(files):
        digest.update(str(path.relative_to(source)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _build(source: Path, architecture: str, place: Path) -> None:
    """Build with Debian's cross compiler, or Zig's. Raises MeasureError if it is missing or fails."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    packages = {COMPILERS[architecture]: PACKAGES[architecture], "meson": "meson", "ninja": "ninja-build"}
    missing = [package for program, package in packages.items() if shutil.which(program, path=path) is None]
    if missing:
        sources = (("apt-get install", set(missing) - OF_PYPI), ("pip install", OF_PYPI & set(missing)))
        commands = [f"{command} {' '.join(sorted(names))}" for command, names in sources if names]
        raise MeasureError(
            f"the package does not contain an engine for {architecture}, and programs to build one are "
            f"missing; run: {' && '.join(commands)}"
        )
    try:
        private_folder(place.parent)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=".build-") as folder:
            cross = source / "engine" / "cross" / f"{architecture}.ini"
            options = ["--buildtype=release", "-Db_lto=true", "--cross-file", str(cross)]
            for command in (
                ["meson", "setup", folder, str(source), *options],
                ["ninja", "-C", folder, f"engine/{NAME}"],
            ):
                environment = {**os.environ, "PATH": path}
                environment.pop("MAKEFLAGS", None)  # of a make above, whose job server is not ours
                completed = run_program(command, environment=environment, timeout_s=BUILD_S)
                if completed.returncode:
                    messages = (completed.stdout + completed.stderr).strip().splitlines()
                    raise MeasureError(
                        f"the engine for {architecture} could not be built "
                        f"({messages[-1] if messages else 'no message'}); see all messages with: "
                        f"{' '.join(command)}"
                    )
            built = Path(folder) / "engine" / NAME
            built.chmod(0o755)
            built.replace(place)
    except OSError as error:
        raise MeasureError(
            f"the engine for {architecture} cannot be kept in {place.parent} ({error.strerror}); set "
            f"XDG_CACHE_HOME to another folder"
        ) from None
    except subprocess.TimeoutExpired:
        raise MeasureError(
            f"building the engine for {architecture} did not end within {BUILD_S} s; try again when the "
            f"machine is less busy"
        ) from None
