# SPDX-License-Identifier: MIT
"""Builds kernel modules for Debian kernels with make, in a chroot with kernel headers and a compiler."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

from rtgauge.errors import MeasureError
from rtgauge.program_run import run_program
from rtgauge.system.loadable_modules import OWN, NoModules
from rtgauge.user_cache import check_private, private_folder
from rtgauge_ext.lab import paths
from rtgauge_ext.lab.guest import SUITE, built_in, find_guest
from rtgauge_ext.lab.image import build
from rtgauge_ext.lab.kernel_image import Architecture
from rtgauge_ext.lab.packages import DEBIAN, fetch_archive
from rtgauge_ext.lab.qemu import same_architecture
from rtgauge_ext.signal.module_file import STRIP

FLAVOURS = ("", "-rt")
NO_RT = frozenset({"riscv64"})
"""The architectures for which Debian has no PREEMPT_RT kernel."""
TOOLS = (
    "base-files",
    "coreutils",
    "dash",
    "diffutils",
    "findutils",
    "gawk",
    "grep",
    "make",
    "perl",
    "sed",
    "sparse",
)
"""Programs that the kernel's makefiles call, except the compiler. sparse is for `C=2`."""
CROSS = {
    "x86_64": "x86_64-linux-gnu-",
    "aarch64": "aarch64-linux-gnu-",
    "riscv64": "riscv64-linux-gnu-",
}
KERNEL_ARCH = {"x86_64": "x86", "aarch64": "arm64", "riscv64": "riscv"}
COMPILER = re.compile(r"\$\(CROSS_COMPILE\)(gcc-[0-9]+)")
IN_TREE = 'mount --rbind /dev "$0/dev" && exec chroot "$0" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/ "$@"'


class BuiltModules(NamedTuple):
    """The modules that make built, and its output."""

    modules: list[Path]
    output: str


@dataclass(frozen=True)
class HeadersTree:
    """Headers of a Debian release's stock and PREEMPT_RT kernels, and a compiler that runs here."""

    folder: Path
    architecture: Architecture

    def releases(self) -> list[str]:
        """Return the kernels' releases in the form of `uname -r`."""
        ending = DEBIAN[self.architecture]
        return sorted(
            path.name.removeprefix("linux-headers-")
            for path in (self.folder / "usr/src").glob(f"linux-headers-*-{ending}")
        )

    def make(self, release: str, sources: Path, into: Path, words: Sequence[str] = ()) -> BuiltModules:
        """Build the modules in `sources`, a folder with a Kbuild, and copy them to the folder `into`.

        `words`: further arguments of make. Several processes may build at the same time. If make fails,
        raises MeasureError with the end of its output.
        """
        if release not in self.releases():
            raise MeasureError(
                f"the image lacks the headers of kernel {release}; it has only the headers of "
                f"{', '.join(self.releases())}"
            )
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="build-") as name:
            place = Path(name)
            shutil.copytree(
                sources,
                place,
                ignore=shutil.ignore_patterns("*.o", "*.ko", "*.mod*", ".*", "test"),
                dirs_exist_ok=True,
            )
            output = self._make(release, place, words)
            modules = sorted(Path(shutil.copy(path, into)) for path in place.glob("*.ko"))
            return BuiltModules(modules, output)

    def _make(self, release: str, place: Path, words: Sequence[str]) -> str:
        """Build the modules in `place`, a folder of the tree, and return make's output."""
        (self.folder / "dev").mkdir(exist_ok=True)
        namespaces = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
        target = [f"ARCH={KERNEL_ARCH[self.architecture]}", f"CROSS_COMPILE={CROSS[self.architecture]}"]
        folders = ["-C", f"/usr/src/linux-headers-{release}", f"M=/{place.name}"]
        make = ["make", *folders, *target, *words, "modules"]
        output = self._run(release, namespaces, make)
        modules = [f"/{place.name}/{path.name}" for path in place.glob("*.ko")]
        program, *words = STRIP
        strip = [f"{CROSS[self.architecture]}{program}", *words, *modules]
        return output + self._run(release, namespaces, strip)

    def _run(self, release: str, namespaces: Sequence[str], command: Sequence[str]) -> str:
        """Run a command in the tree and return its output. Raises MeasureError if it fails."""
        completed = run_program([*namespaces, "sh", "-c", IN_TREE, str(self.folder), *command])
        output = completed.stdout + completed.stderr
        if completed.returncode:
            raise MeasureError(f"cannot build the modules for {release}: {output[-2000:]}")
        return output


def unpack(packages: Sequence[str], suite: str, architecture: Architecture, place: Path) -> None:
    """Unpack packages of a Debian release and their dependencies over the folder `place`.

    Raises MeasureError if they cannot be fetched.
    """
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        archive = fetch_archive(packages, suite, architecture, Path(folder), lambda _: None)
        place.mkdir(exist_ok=True)
        # tarfile is unsuitable, because a symbolic link of one package can be a folder in another
        options = ("--exclude=./dev", "--keep-directory-symlink", "--no-same-owner")
        subprocess.run(
            ["tar", "-C", str(place), *options, "-xf", str(archive)], check=True, stdin=subprocess.DEVNULL
        )


def _unpack_tree(suite: str, architecture: Architecture, new: Path) -> None:
    """Unpack headers of the target's architecture, and tools that run on this machine, into `new`."""
    flavours = FLAVOURS[:1] if architecture in NO_RT else FLAVOURS
    headers = [f"linux-headers{flavour}-{DEBIAN[architecture]}" for flavour in flavours]
    if same_architecture(architecture):
        unpack([*TOOLS, *headers], suite, architecture, new)
        return
    host: Architecture = "x86_64" if same_architecture("x86_64") else "aarch64"
    foreign = new.with_name(f"{new.name}-foreign")
    unpack(headers, suite, architecture, foreign)
    new.mkdir()
    shutil.copytree(foreign / "usr/src", new / "usr/src", symlinks=True)
    shutil.rmtree(foreign)
    folders = sorted((new / "usr/src").glob(f"linux-headers-*-{DEBIAN[architecture]}"))
    # `scripts` links into the package of build programs, which must have the host's architecture
    programs = {(folder / "scripts").readlink().parts[-2] for folder in folders}
    compilers = {
        match[1]
        for folder in folders
        if (match := COMPILER.search((folder / ".kernelvariables").read_text()))
    }
    ending = CROSS[architecture].rstrip("-")
    unpack(
        [*TOOLS, *programs, *(f"{compiler}-{ending.replace('_', '-')}" for compiler in compilers)],
        suite,
        host,
        new,
    )


def _fetch_tree(suite: str, architecture: Architecture, place: Path) -> None:
    """Fetch the tree, and replace `place` with it."""
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".new-") as folder:
        new = place.parent / folder / "tree"  # `folder` is an absolute path
        _unpack_tree(suite, architecture, new)
        # the packages' scripts would make these links, but are not run
        for link, points_to in (("usr/bin/awk", "gawk"), ("bin/sh", "dash")):
            if not (new / link).exists():
                (new / link).symlink_to(points_to)
        new.chmod(0o755)
        shutil.rmtree(place, ignore_errors=True)
        new.rename(place)


def headers_tree(
    architecture: Architecture, notify: Callable[[str], None], *, suite: str = SUITE, fresh: bool = False
) -> HeadersTree:
    """Return the tree for a Debian release. Fetch it if it is missing, or if `fresh` asks for the newest.

    Raises MeasureError if it cannot be fetched.
    """
    place = paths.cache() / "headers" / f"{suite}-{architecture}"
    if place.is_dir() and not fresh:
        return HeadersTree(check_private(place), architecture)
    private_folder(place.parent)
    with paths.open_lock(place.parent / ".lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if fresh or not place.is_dir():
            notify(f"headers and compiler: {suite}, {architecture}")
            _fetch_tree(suite, architecture, place)
    return HeadersTree(place, architecture)


def headers_for_guests(architecture: Architecture, notify: Callable[[str], None]) -> HeadersTree:
    """Return the tree for the built-in guests' kernels; missing guests are built first.

    If the tree lacks a guest's kernel, both are fetched again. Raises MeasureError if this fails.
    """
    guests = [guest for guest in built_in().values() if guest.architecture == architecture]
    tree = headers_tree(architecture, notify)
    if any(build(guest, notify).release not in tree.releases() for guest in guests):
        tree = headers_tree(architecture, notify, fresh=True)
    for guest in guests:
        if build(guest, notify).release not in tree.releases():
            build(guest, notify, fresh=True)
    return tree


def build_modules(
    name: str, release: str, sources: Path, folder: Path, notify: Callable[[str], None]
) -> None:
    """Build the modules in `sources` for the guest's kernel `release` into `folder`.

    Raises NoModules, with cause and remedy, if that is impossible.
    """
    architecture = find_guest(name).architecture
    none = NoModules(
        f"Debian does not provide headers for the kernel {release} of lab:{name}",
        f"rebuild the guest with Debian's newest kernel (rtgauge lab build {name} --fresh) or, for your own "
        f"kernel, name the folder with the modules ({OWN}=DIR)",
    )
    if not release.endswith(f"-{DEBIAN[architecture]}"):
        raise none  # not a kernel of Debian: to fetch its headers would take minutes, for nothing
    try:
        tree = headers_tree(architecture, notify)
        if release not in tree.releases():
            tree = headers_tree(architecture, notify, fresh=True)
        if release not in tree.releases():
            raise none
        tree.make(release, sources, folder)
    except NoModules:
        raise
    except MeasureError as error:
        raise NoModules("the kernel modules for the guest could not be built", str(error)) from None


if __name__ == "__main__":
    # The Makefile calls this to fetch the tree that builds modules for guests of an architecture (x86_64,
    # aarch64).
    import sys

    headers_for_guests(cast("Architecture", sys.argv[1]), print)
