# SPDX-License-Identifier: MIT
"""Builds a guest's boot image (kernel, initramfs, disk of programs), cached under its sources' digest."""

from __future__ import annotations

import fcntl
import hashlib
import json
import secrets
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from rtgauge.errors import InputError, MeasureError
from rtgauge.target.ssh_folder import ENGINES
from rtgauge.user_cache import check_private, private_folder
from rtgauge_ext.lab import paths
from rtgauge_ext.lab.cpio import CpioWriter
from rtgauge_ext.lab.disk import make_disk_of, unpack_disk
from rtgauge_ext.lab.guest import NEWEST, SUITE, Guest
from rtgauge_ext.lab.kernel_image import Architecture, bootable
from rtgauge_ext.lab.modules import BASE_MODULES, find_modules, with_needs
from rtgauge_ext.lab.packages import fetch, suites_with
from rtgauge_ext.lab.paths import INITRD
from rtgauge_ext.lab.ssh import public_key
from rtgauge_ext.lab.userland import FILES, PACKAGES, PROGRAMS, packages_of, pick

KERNEL_TOOLS: Mapping[Architecture, str] = {
    "x86_64": "tiny-initramfs",
    "aarch64": "tiny-initramfs",
    "riscv64": "initramfs-tools",
}
"""The smallest initramfs generator that Debian has. Its kernel packages depend on one, so it is fetched but
not used.
"""
SOURCES = ("image.py", "kernel_image.py", "guest_files/init", "guest_files/inittab", "guest_files/serve-line")
BUILDING = ".build-"
SERIAL_LINE = "ttyS1"
CONFIG, VMLINUZ, VMLINUX, MODULES = "config-", "vmlinuz-", "vmlinux-", "usr/lib/modules"
KERNEL, ABOUT, USR, BUSYBOX = "kernel", "about.json", "usr.ext4", "busybox"
ACCOUNTS = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
GROUP = "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n"


class KernelFiles(NamedTuple):
    """A kernel's release, its file, and the file of its configuration, if there is one."""

    release: str
    path: Path
    configuration: Path | None


@dataclass(frozen=True)
class Image:
    """A built image: its folder and the kernel's release."""

    folder: Path
    release: str

    @property
    def kernel(self) -> Path:
        """The kernel for QEMU's `-kernel`."""
        return self.folder / KERNEL

    @property
    def initrd(self) -> Path:
        """The initial RAM disk for QEMU's `-initrd`."""
        return self.folder / INITRD

    @property
    def programs(self) -> Path:
        """The disk that the guest mounts as /usr."""
        return self.folder / USR


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _listing(path: Path | None) -> list[Any]:
    """Return path, size and modification time of the user's files, so that the digest changes with them."""
    if path is None:
        return []
    files = (
        sorted(entry for entry in path.rglob("*") if entry.is_symlink() or entry.is_file())
        if path.is_dir()
        else [path]
    )
    return [[str(file), file.lstat().st_size, file.lstat().st_mtime_ns] for file in files]


def _guest_file(name: str) -> bytes:
    return (resources.files("rtgauge_ext.lab") / "guest_files" / name).read_bytes()


def _sources() -> list[Any]:
    """Return digests of the parts of rtgauge that determine an image."""
    own = resources.files("rtgauge_ext.lab")
    return [hashlib.sha256((own / name).read_bytes()).hexdigest() for name in SOURCES]


def _userland_place(architecture: Architecture) -> Path:
    sources = hashlib.sha256((resources.files("rtgauge_ext.lab") / "userland.py").read_bytes()).hexdigest()
    return (
        paths.cache() / "userland" / f"{architecture}-{_digest([SUITE, PACKAGES, PROGRAMS, FILES, sources])}"
    )


def _place(guest: Guest) -> Path:
    made_of = [
        _userland_place(guest.architecture).name,
        guest.package,
        guest.version,
        guest.suite,
        guest.append,
        guest.serial,
        _listing(guest.kernel),
        _listing(guest.modules),
        _listing(guest.overlay),
        public_key(),
        _sources(),
    ]
    return paths.cache() / "images" / f"{guest.name}-{_digest([SUITE, *made_of])}"


def find_image(guest: Guest) -> Image | None:
    """Return the image of a guest; None if there is none or its sources have changed."""
    folder = _place(guest)
    try:
        about = json.loads((folder / ABOUT).read_text())
        return Image(check_private(folder), str(about["release"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def _building(parent: Path, notify: Callable[[str], None]) -> Generator[Path]:
    """Yield a temporary folder. Builds run one at a time. Leftovers of killed builds are removed first."""
    private_folder(parent)
    with paths.open_lock(parent / ".lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            notify("another image is being built; waiting until it is finished")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in parent.glob(f"{BUILDING}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        folder = private_folder(parent / f"{BUILDING}{secrets.token_hex(4)}")
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _replace(place: Path, new: Path) -> None:
    """Move `new` to `place`, and remove earlier builds with other digests."""
    private_folder(place.parent)
    for old in place.parent.glob(f"{place.name.rpartition('-')[0]}-*"):
        shutil.rmtree(old)
    new.rename(place)


def _userland(
    architecture: Architecture, folder: Path, notify: Callable[[str], None], *, fresh: bool
) -> Path:
    """Return the folder with the disk of programs and BusyBox, shared by all guests of an architecture."""
    place = _userland_place(architecture)
    if (place / USR).is_file() and not fresh:
        return check_private(place)
    packages = packages_of(architecture)
    notify(f"programs for {architecture}: {', '.join(packages)}")
    tree = fetch(packages, architecture, private_folder(folder / "userland"), notify)
    picked, new = folder / "picked", private_folder(folder / "new")
    pick(tree, picked, architecture)
    make_disk_of(picked / "usr", new / USR)
    shutil.copyfile(picked / "usr/bin" / BUSYBOX, new / BUSYBOX)
    _replace(place, new)
    return place


def kernel_in(tree: Path) -> KernelFiles:
    """Return the kernel in Debian's unpacked packages: in /boot or, since Debian 14, in the modules' folder.

    Raises MeasureError if there is none.
    """
    files = [(name, path) for name in (VMLINUX, VMLINUZ) for path in (tree / "boot").glob(f"{name}*")]
    kernels = {path.name.removeprefix(name): path for name, path in files}  # riscv64 has a vmlinux
    kernels |= {path.parent.name: path for path in (tree / MODULES).glob("*/vmlinuz")}
    if not kernels:
        raise MeasureError("the packages do not contain a kernel, neither in /boot nor in /usr/lib/modules")
    release = max(kernels)
    places = (tree / "boot" / f"{CONFIG}{release}", tree / MODULES / release / "config")
    return KernelFiles(release, kernels[release], next((path for path in places if path.is_file()), None))


def _kernel_package(
    guest: Guest, package: str, folder: Path, notify: Callable[[str], None], *, fresh: bool
) -> Path:
    """Return the folder with Debian's kernel, its configuration and the needed modules, unpacked."""
    chosen = "".join(f"_{word}" for word in (guest.suite, guest.version) if word)
    place = paths.cache() / "kernels" / f"{package}{chosen}-{_digest([SUITE, BASE_MODULES, CONFIG])}"
    if place.is_dir() and not fresh:
        return check_private(place)
    notify(f"kernel: {package}{f' ({guest.about})' if chosen else ''}")
    suite = suites_with(guest.suite) if chosen else SUITE
    newest = guest.version in ("", NEWEST)
    pin = "release *" if newest else f"version {guest.version.replace('-rc', '~rc')}*"
    packages, into = [package, KERNEL_TOOLS[guest.architecture]], private_folder(folder / "package")
    tree = fetch(packages, guest.architecture, into, notify, suite, pin if chosen else "")
    kernel = kernel_in(tree)
    # Debian's release of a candidate of 7.3 is 7.3-amd64, and of a kernel 7.3.4 is 7.3.4+deb13-amd64
    names = (guest.version, f"{guest.version.partition('-rc')[0]}-")
    if not newest and not kernel.release.startswith(names):
        raise MeasureError(
            f"Debian's suites {suite} do not contain a kernel {guest.version}: name another version (such as "
            f"{kernel.release.partition('+')[0].partition('-')[0]}), or --kernel newest"
        )
    new = private_folder(folder / "new-kernel")
    shutil.copy(kernel.path, new / f"{VMLINUZ}{kernel.release}")
    if kernel.configuration is not None:
        shutil.copy(kernel.configuration, new / f"{CONFIG}{kernel.release}")
    for name, content in with_needs(find_modules(tree / MODULES), BASE_MODULES).items():
        (new / f"{name}.ko").write_bytes(content)
    _replace(place, new)
    return place


def _write_initrd(
    guest: Guest, userland: Path, modules: Mapping[str, bytes], configuration: Path | None, file: BinaryIO
) -> None:
    """Write BusyBox, modules, the kernel's configuration (for the audit), settings, the ssh key, the overlay
    and, without a disk, all programs.
    """
    cpio = CpioWriter(file)
    if configuration is not None:
        cpio.file(f"boot/{configuration.name}", configuration.read_bytes())
    for name, content in modules.items():
        cpio.file(f"modules/{name}.ko", content)
    files = {
        "modules.list": "".join(f"/modules/{name}.ko\n" for name in modules),
        "passwd": ACCOUNTS,
        "group": GROUP,
        "shells": "/bin/sh\n",
        "hostname": f"{guest.name}\n",
        "hosts": f"127.0.0.1 localhost {guest.name}\n",
    }
    for name, text in files.items():
        cpio.file(f"etc/{name}", text.encode())
    cpio.file(
        "etc/inittab", _guest_file("inittab") + (b"::respawn:/etc/serve-line\n" if guest.serial else b"")
    )
    cpio.file("init", _guest_file("init"), 0o755)
    cpio.file("bin/busybox", (userland / BUSYBOX).read_bytes(), 0o755)
    for link, points_to in (
        ("sbin", "bin"),
        ("lib", "usr/lib"),
        ("lib64", "usr/lib64"),
        ("etc/os-release", "../usr/lib/os-release"),
    ):
        cpio.link(link, points_to)
    cpio.folder("root", 0o700)
    cpio.folder("root/.ssh", 0o700)
    cpio.file("root/.ssh/authorized_keys", public_key().encode(), 0o600)
    if guest.serial:
        cpio.file("etc/serial-line", f"{SERIAL_LINE}\n".encode())
        cpio.file("etc/serve-line", _guest_file("serve-line"), 0o755)
        with tempfile.TemporaryDirectory() as unpacked:
            unpack_disk(userland / USR, Path(unpacked))
            cpio.tree(Path(unpacked), "usr")
    if guest.overlay is not None:
        cpio.tree(guest.overlay)
    cpio.close()


def build(guest: Guest, notify: Callable[[str], None], *, fresh: bool = False) -> Image:
    """Return the image of a guest. Build it if missing; with `fresh`, rebuild it with Debian's newest
    packages. `notify` gets progress messages.

    Raises MeasureError if the image cannot be built.
    """
    image = find_image(guest)
    if image is not None and not fresh:
        return image
    place = _place(guest)
    with _building(place.parent, notify) as folder:
        if not fresh and (image := find_image(guest)) is not None:  # another process built this image
            return image
        userland = _userland(guest.architecture, folder, notify, fresh=fresh)
        if guest.package is not None:
            package = _kernel_package(guest, guest.package, folder, notify, fresh=fresh)
            kernel = next(package.glob(f"{VMLINUZ}*"))
            release, modules, base_modules = kernel.name.removeprefix(VMLINUZ), package, BASE_MODULES
            configuration = next(package.glob(f"{CONFIG}*"), None)
        else:
            assert guest.kernel is not None  # noqa: S101 - a guest has a package or a kernel
            kernel, release, modules, base_modules = guest.kernel, guest.kernel.name, guest.modules, ()
            configuration = None
        notify("building the image")
        new = private_folder(folder / "image")
        bootable(kernel, guest.architecture, new / KERNEL)
        available = find_modules(modules) if modules is not None else {}
        with (new / INITRD).open("wb") as file:
            _write_initrd(
                guest, userland, with_needs(available, [*base_modules, *available]), configuration, file
            )
        (new / USR).hardlink_to(userland / USR)
        (new / ABOUT).write_text(
            json.dumps({"release": release, "package": guest.package, "suite": guest.suite or SUITE}) + "\n"
        )
        remove_images(guest.name)
        new.rename(place)
    return Image(place, release)


def write_initrd_with(image: Image, engines: Iterable[Path], place: Path) -> None:
    """Write the image's initial RAM disk and, in a second archive, the engines to `place`. Raises OSError."""
    with place.open("wb") as file:
        file.write(image.initrd.read_bytes())
        cpio = CpioWriter(file)
        for content in {engine.read_bytes() for engine in engines}:
            cpio.file(f"{ENGINES}/{hashlib.sha256(content).hexdigest()}", content, 0o755)
        cpio.close()


def remove_images(name: str) -> bool:
    """Remove the images of a guest. Return False if there were none."""
    candidates = (paths.cache() / "images").glob(f"{name}-*")
    images = [
        folder
        for folder in candidates
        if folder.name.removeprefix(f"{name}-").isalnum() and len(folder.name) == len(name) + 17
    ]
    for folder in images:
        shutil.rmtree(folder)
    return images != []


def image_of(guest: Guest) -> Image:
    """Return the image of a guest. Raises InputError if there is none."""
    image = find_image(guest)
    if image is None:
        raise InputError(f"lab:{guest.name} is not built; build it with: rtgauge lab build {guest.name}")
    return image
