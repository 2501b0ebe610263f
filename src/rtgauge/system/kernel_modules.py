# SPDX-License-Identifier: MIT
"""Finds or builds rtgauge's kernel modules (kmod/) for a target's kernel, and copies them to the target.

The runner inserts them.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rtgauge.system.deployment.apply import Refused
from rtgauge.system.module_file import STRIP, module_content, module_information
from rtgauge.target.kind import guest_kind, name_in_scheme
from rtgauge.user_cache import cache_folder, check_private, private_folder

if TYPE_CHECKING:
    from rtgauge.target.target import Target

PACKAGE = Path(__file__).resolve().parent.parent
ABI = "1"
"""RTGAUGE_KMOD_ABI of kmod/rtgauge_kmod.h. The engine also compares it with the loaded modules."""
CORE = "rtgauge_core"
OWN = "RTGAUGE_KMOD"
"""The variable for a folder of modules built elsewhere, in subfolders by release for several kernels."""
BUILD_S = 300.0

RELEASE = "/proc/sys/kernel/osrelease"
VERSION = "/proc/version"
LIST = "/proc/modules"
DISABLED = "/proc/sys/kernel/modules_disabled"
ENFORCED = "/sys/module/module/parameters/sig_enforce"
LOCKDOWN = "/sys/kernel/security/lockdown"
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


class NoModules(Refused):
    """The modules cannot be used on this kernel. The message has the cause and the remedy."""

    what = "kernel modules"

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, f"{reason}; {remedy}")
        self.remedy = remedy


@dataclass(frozen=True)
class ModuleKernel:
    """The properties of a target's kernel that decide which modules it can load."""

    release: str
    version: str
    machine: str
    signed_only: bool

    @classmethod
    def of(
        cls, target: Target, instead: str = "measure in user space over a path other than wire"
    ) -> ModuleKernel:
        """Read the properties from the target. Raises NoModules if its kernel can load no module at all.

        `instead`: what the user can do without modules.
        """
        files = target.read([RELEASE, VERSION, LIST, DISABLED, ENFORCED, LOCKDOWN])
        if files.error(LIST) is not None:
            raise NoModules(
                "this kernel cannot load modules",
                f"{instead}, or boot a kernel with CONFIG_MODULES",
            )
        if files.text(DISABLED) == "1":
            raise NoModules(
                "kernel.modules_disabled is 1, so no module can be loaded until the next boot",
                "reboot, and load the modules before kernel.modules_disabled is set",
            )
        lockdown = files.text(LOCKDOWN) or ""
        locked_down = any(word in lockdown for word in ("[integrity]", "[confidentiality]"))
        return cls(
            files.text(RELEASE) or "",
            files.text(VERSION) or "",
            target.machine,
            signed_only=locked_down or files.text(ENFORCED) == "Y",
        )


def modules_for(target: Target, names: Sequence[str], say: Callable[[str], None]) -> list[str]:
    """Return the paths, on the target, of these modules for its kernel.

    rtgauge looks in the folder $RTGAUGE_KMOD, then among the target's installed modules (DKMS), then among
    modules built before. Otherwise it builds them, with the headers on the target or, for a guest, on
    this machine. `say` gets progress messages.

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
        say(f"building the kernel modules for {kernel.release}")
        _build(target, kernel, sources, place, say)
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
        "the package has no sources of the kernel modules", "install rtgauge again (pip install .)"
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
    target: Target, kernel: ModuleKernel, sources: Path, place: Path, say: Callable[[str], None]
) -> None:
    """Build into `place`, which appears only when complete. Raises NoModules if building fails."""
    private_folder(place.parent)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".build-") as name:
        folder = Path(name)
        headers = f"/lib/modules/{kernel.release}/build"
        if target.read([f"{headers}/Makefile"]).exists(f"{headers}/Makefile"):
            _build_there(target, headers, sources, folder)
        elif (guests := guest_kind(target.name)) is not None:
            guests.build_modules(name_in_scheme(target.name), kernel.release, sources, folder, say)
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
    done = target.run(words, BUILD_S)
    if done.returncode:
        output = done.stdout.splitlines()
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


def refusal(error: str, file: str, kernel: ModuleKernel) -> NoModules:
    """Return the error that explains why the kernel refused the module `file`. `error`: the name of the errno
    of finit_module(2).
    """
    name = file.rpartition("/")[2].partition(".")[0]
    rtais = name.startswith("rtai_")
    whose = "RTAI's own instructions" if rtais else "docs/kmod.md"
    folder = "" if rtais else f" and name their folder: {OWN}=DIR (docs/kmod.md)"
    sign = f"sign the modules with a key that is enrolled on that machine{folder}, or turn off Secure Boot"
    if error in ("EKEYREJECTED", "ENOKEY") or (error == "EPERM" and kernel.signed_only):
        return NoModules("the kernel loads only modules that are signed (Secure Boot, lockdown)", sign)
    if error in ("EPERM", "EACCES"):
        return NoModules("this user may not load kernel modules", "run as root, outside of a container")
    if error == "ENOEXEC":
        reason = (
            f"the kernel refuses {name}, because it was built for a kernel other than {kernel.release} "
            f"(vermagic)"
        )
        return NoModules(reason, f"build the module again for this kernel (see {whose})")
    if error == "ENOENT":
        return NoModules(
            f"the kernel refuses {name}, because the kernel lacks a function that the module needs",
            f"find the function's name with dmesg, and see {whose}",
        )
    return NoModules(f"the kernel refuses {name} ({error})", "find the reason with dmesg")
