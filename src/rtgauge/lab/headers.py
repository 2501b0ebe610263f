# SPDX-License-Identifier: MIT
"""What builds kernel modules for a Debian kernel: its headers and its own compiler, in a tree that make runs in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.errors import MeasureError
from rtgauge.lab import paths
from rtgauge.lab.guest import SUITE
from rtgauge.lab.packages import DEBIAN, KEYRING, MIRROR
from rtgauge.lab.qemu import same_architecture

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rtgauge.lab.kernel_image import Architecture

FLAVOURS = ("", "-rt")
TOOLS = ("base-files", "coreutils", "dash", "diffutils", "findutils", "gawk", "grep", "make", "perl", "sed", "sparse")
"""What the kernel's makefiles call beside the compiler; sparse for `C=2`."""
CROSS = {"x86_64": "x86_64-linux-gnu-", "aarch64": "aarch64-linux-gnu-"}
KERNEL_ARCH = {"x86_64": "x86", "aarch64": "arm64"}
COMPILER = re.compile(r"\$\(CROSS_COMPILE\)(gcc-[0-9]+)")
IN_TREE = 'mount --rbind /dev "$0/dev" && exec chroot "$0" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/ "$@"'


@dataclass(frozen=True)
class HeadersTree:
    """Headers of the stock and the PREEMPT_RT kernel of a Debian release, and a compiler for them that runs on this machine."""

    folder: Path
    architecture: Architecture

    def releases(self) -> list[str]:
        """The kernels' releases, as `uname -r` gives them."""
        ending = DEBIAN[self.architecture]
        return sorted(path.name.removeprefix("linux-headers-") for path in (self.folder / "usr/src").glob(f"linux-headers-*-{ending}"))

    def make(self, release: str, sources: Path, words: Sequence[str] = ()) -> tuple[list[Path], str]:
        """Build the modules in `sources` (a folder with a Kbuild) for one kernel, with `words` for make; the modules, and what make said.

        The modules lie in the tree, until the next call for this kernel. Raises MeasureError with what make said.
        """
        if release not in self.releases():
            raise MeasureError(f"there are no headers for the kernel {release}, but for {', '.join(self.releases())}: rtgauge lab build NAME --fresh")
        place = self.folder / f"build-{release}"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(sources, place, ignore=shutil.ignore_patterns("*.o", "*.ko", "*.mod*", ".*", "test"))
        (self.folder / "dev").mkdir(exist_ok=True)
        namespaces = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
        target = [f"ARCH={KERNEL_ARCH[self.architecture]}", f"CROSS_COMPILE={CROSS[self.architecture]}"]
        make = ["make", "-C", f"/usr/src/linux-headers-{release}", f"M=/{place.name}", *target, *words, "modules"]
        done = subprocess.run(
            [*namespaces, "sh", "-c", IN_TREE, str(self.folder), *make], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        if done.returncode:
            raise MeasureError(f"the modules could not be built for {release}: {said[-2000:]}")
        return sorted(place.glob("*.ko")), said


def unpack(packages: Sequence[str], suite: str, architecture: Architecture, place: Path) -> None:
    """Unpack packages of a Debian release, and all that they need, into the folder `place`, over what is there. Raises MeasureError."""
    command = ["mmdebstrap", "--variant=extract", f"--architectures={DEBIAN[architecture]}", f"--include={','.join(packages)}"]
    command += [f"--keyring={KEYRING}"] if os.path.exists(KEYRING) else []  # noqa: PTH110 - a name, not a path of ours
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        archive = f"{folder}/packages.tar"
        command += [suite, archive, os.environ.get("RTGAUGE_LAB_MIRROR", MIRROR)]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env={**os.environ, "TMPDIR": folder})
        except FileNotFoundError:
            raise MeasureError("the program mmdebstrap is missing: apt-get install mmdebstrap debian-archive-keyring") from None
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("E: ")] or done.stderr.splitlines()[-1:]
            raise MeasureError(f"Debian's packages could not be fetched: {'; '.join(errors[:2])[:300]}; is there a network?")
        place.mkdir(exist_ok=True)
        # tar, for what is a symbolic link to a folder in one package and a folder in another
        words = ["tar", "-C", str(place), "--exclude=./dev", "--keep-directory-symlink", "--no-same-owner", "-xf", archive]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL)


def _unpack_tree(suite: str, architecture: Architecture, new: Path) -> None:
    """Headers of the target's architecture, and tools that run here."""
    headers = [f"linux-headers{flavour}-{DEBIAN[architecture]}" for flavour in FLAVOURS]
    if same_architecture(architecture):
        unpack([*TOOLS, *headers], suite, architecture, new)
        return
    host: Architecture = "x86_64" if architecture == "aarch64" else "aarch64"
    foreign = new.with_name(f"{new.name}-foreign")
    unpack(headers, suite, architecture, foreign)
    new.mkdir()
    shutil.copytree(foreign / "usr/src", new / "usr/src", symlinks=True)
    shutil.rmtree(foreign)
    folders = sorted((new / "usr/src").glob(f"linux-headers-*-{DEBIAN[architecture]}"))
    # the links name the package of the programs that the headers call, which are of the host's architecture
    programs = {(folder / "scripts").readlink().parts[-2] for folder in folders}
    compilers = {found[1] for folder in folders if (found := COMPILER.search((folder / ".kernelvariables").read_text()))}
    ending = CROSS[architecture].rstrip("-")
    unpack([*TOOLS, *programs, *(f"{compiler}-{ending.replace('_', '-')}" for compiler in compilers)], suite, host, new)


def headers_tree(architecture: Architecture, say: Callable[[str], None], *, suite: str = SUITE, fresh: bool = False) -> HeadersTree:
    """The tree for a Debian release, fetched where it is missing, or (`fresh`) again with the newest packages. Raises MeasureError."""
    place = paths.cache() / "headers" / f"{suite}-{architecture}"
    if not place.is_dir() or fresh:
        say(f"headers and compiler: {suite}, {architecture}")
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=".new-") as folder:
            new = place.parent / folder / "tree"  # `folder` is absolute
            _unpack_tree(suite, architecture, new)
            # what the packages' own scripts would have set up
            for link, points_to in (("usr/bin/awk", "gawk"), ("bin/sh", "dash")):
                if not (new / link).exists():
                    (new / link).symlink_to(points_to)
            shutil.rmtree(place, ignore_errors=True)
            new.rename(place)
    return HeadersTree(place, architecture)
