# SPDX-License-Identifier: MIT
"""Fetches Debian packages with mmdebstrap, which verifies their signatures, and unpacks them without running
their code.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rtgauge.errors import MeasureError
from rtgauge_ext.lab.guest import SUITE
from rtgauge_ext.lab.kernel_image import Architecture

MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64", "riscv64": "riscv64"}
NEEDS = {"experimental": "sid"}
"""A suite that is not complete -> the suite with the rest."""
BACKPORTS = "-backports"
SUITES = (SUITE, f"{SUITE}{BACKPORTS}", "sid", "experimental")
"""The suites in which a version of the kernel is looked for."""
PINNED, PREFERRED = "linux-*", "990"
"""The packages of the kernel, and the priority of an apt pin that ranks above every suite
(apt_preferences(5)).
"""
WRONG_TIME = ("is expired (invalid since", "is not valid yet (invalid for")
"""What apt says about signed lists of packages that are older or newer than this machine's clock allows."""
NO_SUITE = "does not have a Release file"
"""What apt says about a suite that a mirror does not have."""
NO_DATES = "[check-date=no]"
"""Before a mirror, lets apt accept lists of any date (sources.list(5)). Their signatures still count."""


def _has_subordinate_ids() -> bool:
    """Return whether this user has subordinate user ids (subuid(5)), which mmdebstrap needs without root."""
    owners = {str(os.geteuid())}
    with contextlib.suppress(KeyError):
        owners.add(pwd.getpwuid(os.geteuid()).pw_name)
    with contextlib.suppress(OSError), open("/etc/subuid", encoding="utf-8") as file:  # noqa: PTH123 - a file of the system
        return any(line.partition(":")[0] in owners for line in file)
    return False


def mmdebstrap(packages: Sequence[str], architecture: Architecture) -> list[str]:
    """Return the command that extracts packages signed by Debian; append suite, archive and mirror to it.

    Raises MeasureError if mmdebstrap or Debian's keyring is missing.
    """
    if shutil.which("mmdebstrap") is None:
        raise MeasureError(
            "mmdebstrap, which fetches Debian packages, is not installed: apt-get install mmdebstrap "
            "debian-archive-keyring"
        )
    if not Path(KEYRING).is_file():
        raise MeasureError(
            f"Debian's keyring {KEYRING} is missing, so Debian's packages cannot be verified: "
            "apt-get install debian-archive-keyring"
        )
    return [
        "mmdebstrap",
        "--variant=extract",
        f"--architectures={DEBIAN[architecture]}",
        f"--include={','.join(packages)}",
        f"--keyring={KEYRING}",
    ]


def fetch_archive(
    packages: Sequence[str],
    suite: str,
    architecture: Architecture,
    folder: Path,
    notify: Callable[[str], None],
    pin: str = "",
) -> Path:
    """Fetch the packages and their dependencies into a tar file in `folder`, and return its path.

    `suite`: a suite, or several separated by commas. `pin`: which version of the kernel's packages to take
    (apt_preferences(5)). Raises MeasureError if that fails.
    """
    command = mmdebstrap(packages, architecture)
    archive = folder / "packages.tar"
    mirror = os.environ.get("RTGAUGE_LAB_MIRROR", MIRROR)
    if pin:
        preferences = folder / "preferences"
        preferences.write_text(f"Package: {PINNED}\nPin: {pin}\nPin-Priority: {PREFERRED}\n")
        command.append(f"--setup-hook=upload {shlex.quote(str(preferences))} /etc/apt/preferences.d/kernel")
    first, *others = suite.split(",")
    sources = [mirror] if not others else [f"deb {mirror} {name} main" for name in (first, *others)]
    command += [first, str(archive), *sources]
    messages: list[str] = []
    environment = {**os.environ, "TMPDIR": str(folder), "LC_ALL": "C.UTF-8"}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stderr is not None  # noqa: S101 - stderr=PIPE
        try:
            for line in process.stderr:
                messages.append(line.strip())
                if line.startswith("I: ") and line.rstrip().endswith("..."):
                    notify(f"mmdebstrap: {line[3:].strip()}")
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        errors = [
            line.removeprefix("E: ") for line in messages if line.startswith(("E: ", "Err:"))
        ] or messages[-1:]
        reason = "; ".join(errors[:2])[:300]
        if os.geteuid() and not _has_subordinate_ids():
            user = pwd.getpwuid(os.geteuid()).pw_name
            remedy = f"sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}"
            raise MeasureError(
                f"cannot fetch Debian packages ({reason}): without root, mmdebstrap needs subordinate user "
                f"IDs, which {user} lacks; add some with: {remedy}"
            )
        if any(words in error for error in errors for words in WRONG_TIME):
            raise MeasureError(
                f"cannot fetch Debian packages from {mirror}: the date of this machine's clock does not fit "
                f"the mirror ({reason[:150]}); set the clock, or accept any date with "
                f"RTGAUGE_LAB_MIRROR='{NO_DATES} {mirror}'"
            )
        if NO_SUITE in reason:
            raise MeasureError(
                f"{mirror} lacks one of these suites: {suite}; name another with --suite, or set "
                "RTGAUGE_LAB_MIRROR to another mirror"
            )
        raise MeasureError(
            f"cannot fetch Debian packages from {mirror}: {reason}; check the network, or set "
            "RTGAUGE_LAB_MIRROR to another mirror"
        )
    return archive


def suites_with(suite: str) -> str:
    """Return a suite with the suites that it needs, separated by commas; all of SUITES for ""."""
    needs = suite.removesuffix(BACKPORTS) if suite.endswith(BACKPORTS) else NEEDS.get(suite, suite)
    return ",".join(dict.fromkeys((needs, suite))) if suite else ",".join(SUITES)


def fetch(
    packages: Sequence[str],
    architecture: Architecture,
    folder: Path,
    notify: Callable[[str], None],
    suite: str = SUITE,
    pin: str = "",
) -> Path:
    """Unpack the packages and their dependencies into a new folder in `folder`, and return it.

    For `suite`, `pin` and errors, see `fetch_archive`.
    """
    archive, tree = fetch_archive(packages, suite, architecture, folder, notify, pin), folder / "tree"
    notify("unpacking")
    tree.mkdir()
    with tarfile.open(archive) as tar:
        tar.extractall(tree, members=(member for member in tar if not member.isdev()), filter="tar")
    archive.unlink()
    return tree
