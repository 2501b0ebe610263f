# SPDX-License-Identifier: MIT
"""What a guest boots from: a kernel and a first root file system, kept by what went into them."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from rtgauge.errors import MeasureError
from rtgauge.lab import places
from rtgauge.lab.cpio import CpioWriter
from rtgauge.lab.guest import SUITE
from rtgauge.lab.kernel import bootable
from rtgauge.lab.key import public_key
from rtgauge.lab.modules import WANTED, find_modules, write_modules
from rtgauge.lab.packages import fetch
from rtgauge.lab.userland import FILES, PACKAGES, PROGRAMS, write_userland

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from rtgauge.lab.guest import Architecture, Guest

KERNEL_TOOLS = "tiny-initramfs"
"""Debian's kernel packages ask for something that makes an initramfs; this is the smallest, and it is not used."""
BUILDING = ".build-"
PASSWD = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
GROUP = "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n"


@dataclass(frozen=True)
class Image:
    """A built image: its folder, and the kernel's release as its package names it."""

    folder: Path
    release: str

    @property
    def kernel(self) -> Path:
        """What QEMU takes as `-kernel`."""
        return self.folder / "kernel"

    @property
    def initrd(self) -> Path:
        """What QEMU takes as `-initrd`."""
        return self.folder / "initrd"


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _listing(path: Path | None) -> list[Any]:
    """What tells one state of the user's own files from another."""
    if path is None:
        return []
    files = sorted(one for one in path.rglob("*") if one.is_symlink() or one.is_file()) if path.is_dir() else [path]
    return [[str(one), one.lstat().st_size, one.lstat().st_mtime_ns] for one in files]


def _guest_file(name: str) -> bytes:
    return (resources.files("rtgauge.lab") / "guest_files" / name).read_bytes()


def _sources() -> list[Any]:
    """The parts of rtgauge that make an image."""
    own = resources.files("rtgauge.lab")
    return [hashlib.sha256((own / name).read_bytes()).hexdigest() for name in ("image.py", "modules.py", "kernel.py", "guest_files/init", "guest_files/inittab")]


def _place(guest: Guest) -> Path:
    made_of = [guest.architecture, guest.package, _listing(guest.kernel), _listing(guest.modules), _listing(guest.overlay), public_key(), _sources()]
    return places.cache() / "images" / f"{guest.name}-{_digest([SUITE, *made_of])}"


def find_image(guest: Guest) -> Image | None:
    """The image of a guest, None where it is not built yet or was made of something else than there is now."""
    folder = _place(guest)
    try:
        about = json.loads((folder / "about.json").read_text())
        return Image(folder, str(about["release"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def _building(parent: Path) -> Generator[Path]:
    """A folder that is gone afterwards, whatever happens; one build at a time, and what a killed one has left is removed first."""
    parent.mkdir(parents=True, exist_ok=True)
    with (parent / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise MeasureError("another image of the lab is being built at this moment: wait for it") from None
        for left in parent.glob(f"{BUILDING}*"):
            shutil.rmtree(left, ignore_errors=True)
        folder = places.private(parent / f"{BUILDING}{next(tempfile._get_candidate_names())}")  # type: ignore[attr-defined]
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _userland(architecture: Architecture, folder: Path, say: Callable[[str], None], *, fresh: bool) -> Path:
    """The archive with the programs, shared by all guests of an architecture."""
    sources = hashlib.sha256((resources.files("rtgauge.lab") / "userland.py").read_bytes()).hexdigest()
    place = places.cache() / "userland" / f"{architecture}-{_digest([SUITE, PACKAGES, PROGRAMS, FILES, sources])}.cpio"
    if place.is_file() and not fresh:
        return place
    say(f"programs for {architecture}: {', '.join(PACKAGES)}")
    tree = fetch(PACKAGES, architecture, places.private(folder / "userland"), say)
    place.parent.mkdir(parents=True, exist_ok=True)
    new = folder / "userland.cpio"
    with new.open("wb") as file:
        write_userland(tree, file)
    shutil.rmtree(tree)
    new.replace(place)
    return place


def _own_part(guest: Guest, found: dict[str, Path], wanted: list[str], file: Any) -> None:
    """What differs between the guests: modules, settings, the key, the overlay."""
    cpio = CpioWriter(file)
    write_modules(found, wanted, cpio)
    cpio.file("init", _guest_file("init"), 0o755)
    cpio.link("usr/bin/sh", "busybox")
    cpio.file("etc/inittab", _guest_file("inittab"))
    cpio.file("etc/passwd", PASSWD.encode())
    cpio.file("etc/group", GROUP.encode())
    cpio.file("etc/shells", b"/bin/sh\n")
    cpio.link("etc/os-release", "../usr/lib/os-release")
    cpio.file("etc/hostname", f"{guest.name}\n".encode())
    cpio.file("etc/hosts", f"127.0.0.1 localhost {guest.name}\n".encode())
    cpio.folder("root", 0o700)
    cpio.folder("root/.ssh", 0o700)
    cpio.file("root/.ssh/authorized_keys", public_key().encode(), 0o600)
    if guest.overlay is not None:
        cpio.tree(guest.overlay)
    cpio.close()


def build(guest: Guest, say: Callable[[str], None], *, fresh: bool = False) -> Image:
    """The image of a guest, built where it is missing, or (`fresh`) again with Debian's newest packages. Raises MeasureError, InputError."""
    image = find_image(guest)
    if image is not None and not fresh:
        return image
    place = _place(guest)
    with _building(place.parent) as folder:
        userland = _userland(guest.architecture, folder, say, fresh=fresh)
        if guest.package is not None:
            say(f"kernel: {guest.package}")
            tree = fetch([guest.package, KERNEL_TOOLS], guest.architecture, places.private(folder / "kernel-package"), say)
            kernel = sorted((tree / "boot").glob("vmlinuz-*"))[-1]
            release, found, wanted = kernel.name.removeprefix("vmlinuz-"), find_modules(tree / "usr/lib/modules"), list(WANTED)
        else:
            assert guest.kernel is not None  # noqa: S101 - a guest has a package or a kernel
            kernel, release = guest.kernel, guest.kernel.name
            found = find_modules(guest.modules) if guest.modules is not None else {}
            wanted = [*(name for name in WANTED if name in found), *found]
        say("putting the image together")
        new = places.private(folder / "image")
        bootable(kernel, guest.architecture, new / "kernel")
        with (new / "initrd").open("wb") as file:
            file.write(userland.read_bytes())
            _own_part(guest, found, wanted, file)
        (new / "about.json").write_text(json.dumps({"release": release, "package": guest.package, "suite": SUITE}) + "\n")
        old = [one for one in place.parent.glob(f"{guest.name}-????????????????") if one.is_dir()]
        for one in old:
            shutil.rmtree(one)
        new.rename(place)
    return Image(place, release)
