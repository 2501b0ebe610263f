# SPDX-License-Identifier: MIT
"""Finds or builds rtgauge's kernel modules (kmod/) for a target's kernel, and copies them to the target."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import rtgauge
from rtgauge.system.loadable_modules import OWN, ModuleKernel, NoModules
from rtgauge.target.kind import guest_kind, name_in_scheme
from rtgauge.user_cache import cache_folder, check_private, private_folder
from rtgauge_ext.signal.module_file import STRIP, module_content, module_information

if TYPE_CHECKING:
    from rtgauge.target.target_protocol import Target

PACKAGE = Path(rtgauge.__file__).resolve().parent
ABI = "1"
"""RTGAUGE_KMOD_ABI of kmod/rtgauge_kmod.h. The engine also compares it with the loaded modules."""
CORE = "rtgauge_core"
BUILD_S = 300.0
INSTALLED = ("updates/dkms", "updates", "extra")
"""Folders below /lib/modules/RELEASE that DKMS and `make modules_install` use."""
BUILD = """
folder=$(mktemp -d) && cd "$folder" && tar -xf "$1" && make -C "$2" M="$folder" modules 2>&1 && {
	! command -v strip >/dev/null || strip --strip-debug ./*.ko 2>/dev/null
	cp ./*.ko "$3"
}
status=$?
rm -rf "$folder"
exit $status
"""


def modules_for(target: Target, names: Sequence[str], notify: Callable[[str], None]) -> list[str]:
    """Return the paths, on the target, of these modules for its kernel.

    rtgauge looks in the folder $RTGAUGE_KMOD, then among the target's installed modules (DKMS), then among
    modules built before. Otherwise it builds them, with the headers on the target or, for a guest, on
    this machine. `notify` gets progress messages.

    Raises NoModules, with cause and remedy, if all of this fails.
    """
    kernel = ModuleKernel.of(target)
    given = os.environ.get(OWN)
    if given:
        own = _own(Path(given), kernel, names)
        return [target.put(own[name]) for name in names]
    installed = _installed(target, kernel, names)
    if installed is not None:
        return [installed[name] for name in names]
    sources = source_folder()
    place = cache_folder("kmod") / f"{kernel.release[:64]}-{_fingerprint(sources, kernel)}"
    if not all((place / f"{name}.ko").is_file() for name in names):
        notify(f"building the kernel modules for {kernel.release}")
        _build(target, kernel, sources, place, notify)
        missing = [name for name in names if not (place / f"{name}.ko").is_file()]
        if missing:
            raise NoModules(
                f"{missing[0]} cannot be built for the kernel {kernel.release}",
                "see what each module needs in docs/kmod.md",
            )
    return [target.put(check_private(place / f"{name}.ko")) for name in names]


def _own(folder: Path, kernel: ModuleKernel, names: Sequence[str]) -> dict[str, Path]:
    """Return the modules in a folder. Raises NoModules if one is missing or for another kernel or ABI."""
    rebuild = (
        f"build the modules for this kernel with: make -C kmod KDIR=HEADERS (the headers of {kernel.release})"
    )
    place = folder / kernel.release if (folder / kernel.release).is_dir() else folder
    files = {name: place / f"{name}.ko" for name in names}
    for path in files.values():
        if not path.is_file():
            raise NoModules(f"{OWN} names {folder}, but {place} has no {path.name}", rebuild)
        words = module_information(module_content(path))
        built_for, abi = words.get("vermagic", "").partition(" ")[0], words.get("rtgauge_abi", "")
        if abi != ABI:
            raise NoModules(f"{path} has ABI {abi or '(none)'}, but this rtgauge uses ABI {ABI}", rebuild)
        if built_for != kernel.release:
            raise NoModules(
                f"{path} was built for the kernel {built_for} (vermagic), but this is {kernel.release}",
                rebuild,
            )
    return files


def _installed(target: Target, kernel: ModuleKernel, names: Sequence[str]) -> dict[str, str] | None:
    """Return these modules below /lib/modules, if all exist and have this ABI."""
    folders = [f"/lib/modules/{kernel.release}/{name}" for name in INSTALLED]
    listed = target.read(folders)
    for folder in folders:
        present = listed.entries(folder)
        for ending in (".ko", ".ko.xz", ".ko.zst", ".ko.gz"):
            files = {name: f"{folder}/{name}{ending}" for name in names}
            complete = all(f"{name}{ending}" in present for name in names)
            if complete and _abi(target, f"{folder}/{CORE}{ending}") == ABI:
                return files
    return None


def _abi(target: Target, path: str) -> str:
    modinfo = target.which("modinfo")
    return "" if modinfo is None else target.run([modinfo, "-F", "rtgauge_abi", path], 10.0).stdout.strip()


def source_folder() -> Path:
    """Return the folder of the modules' sources, in the package or checkout. Raises NoModules if missing."""
    for folder in (PACKAGE / "source" / "kmod", PACKAGE.parent.parent / "kmod"):
        if (folder / "Kbuild").is_file():
            return folder
    raise NoModules(
        "the package does not contain the sources of the kernel modules",
        "install rtgauge again as you installed it",
    )


def _sources(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix in {".c", ".h"} or path.name in {"Kbuild", "Makefile"}
    )


def _fingerprint(sources: Path, kernel: ModuleKernel) -> str:
    """Return a hash of sources, kernel and build. If one of them changes, the modules are built again."""
    words = (kernel.release, kernel.version, kernel.machine, BUILD, *STRIP)
    digest = hashlib.sha256("".join(f"{word}\0" for word in words).encode())
    for path in _sources(sources):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _build(
    target: Target, kernel: ModuleKernel, sources: Path, place: Path, notify: Callable[[str], None]
) -> None:
    """Build into `place`, which appears only when complete. Raises NoModules if building fails."""
    private_folder(place.parent)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".build-") as name:
        folder = Path(name)
        headers = f"/lib/modules/{kernel.release}/build"
        if target.read([f"{headers}/Makefile"]).exists(f"{headers}/Makefile"):
            _build_there(target, headers, sources, folder)
        elif (guests := guest_kind(target.name)) is not None:
            guests.build_modules(name_in_scheme(target.name), kernel.release, sources, folder, notify)
        else:
            raise NoModules(
                f"the headers of the kernel {kernel.release} are not installed on {target.name}",
                f"apt-get install linux-headers-{kernel.release} make gcc",
            )
        built = folder / "built"
        built.mkdir(mode=0o700)
        for path in folder.glob("*.ko"):
            path.chmod(0o600)
            path.rename(built / path.name)
        shutil.rmtree(place, ignore_errors=True)
        built.rename(place)


def _build_there(target: Target, headers: str, sources: Path, folder: Path) -> None:
    """Build on the target, with its own headers, and copy the modules into `folder`."""
    for program in ("make", "tar"):
        if target.which(program) is None:
            raise NoModules(
                f"{target.name} lacks the program {program}, which building the kernel modules needs",
                "apt-get install make gcc tar",
            )
    archive = folder / "rtgauge-kmod.tar"
    archive.write_bytes(_archive(sources))
    words = ["sh", "-c", BUILD, "sh", target.put(archive), headers, target.files_folder(folder)]
    completed = target.run(words, BUILD_S)
    if completed.returncode:
        output = completed.stdout.splitlines()
        lines = [line for line in output if "error" in line.lower()] or output[-1:] or ["no message"]
        raise NoModules(
            f"the kernel modules could not be built on {target.name} ({lines[0].strip()[:200]})",
            "run make -C kmod there to see all messages; docs/kmod.md lists the kernels on which the modules "
            "were tested",
        )
    target.fetch(folder)


def _archive(sources: Path) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for path in _sources(sources):
            archive.add(path, path.name)
    return content.getvalue()
