# SPDX-License-Identifier: MIT
"""Debian packages, fetched, checked against Debian's keys and unpacked by mmdebstrap; nothing of them is run here."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tarfile
from typing import TYPE_CHECKING

from rtgauge.errors import MeasureError
from rtgauge.lab.guest import SUITE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rtgauge.lab.kernel_image import Architecture

MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}


def _has_subordinate_ids() -> bool:
    """Whether this user may have user ids of its own in a namespace (subuid(5)), which mmdebstrap wants without root."""
    owners = {str(os.geteuid())}
    with contextlib.suppress(KeyError):
        owners.add(pwd.getpwuid(os.geteuid()).pw_name)
    with contextlib.suppress(OSError), open("/etc/subuid", encoding="utf-8") as file:  # noqa: PTH123 - a file of the system
        return any(line.partition(":")[0] in owners for line in file)
    return False


def fetch(packages: Sequence[str], architecture: Architecture, folder: Path, say: Callable[[str], None]) -> Path:
    """Unpack the packages and all that they depend on into a new folder in `folder`. Raises MeasureError."""
    if shutil.which("mmdebstrap") is None:
        raise MeasureError("the program mmdebstrap is missing, which fetches the lab's systems: apt-get install mmdebstrap debian-archive-keyring")
    archive, tree = folder / "packages.tar", folder / "tree"
    mirror = os.environ.get("RTGAUGE_LAB_MIRROR", MIRROR)
    command = ["mmdebstrap", "--variant=extract", f"--architectures={DEBIAN[architecture]}", f"--include={','.join(packages)}"]
    command += [f"--keyring={KEYRING}"] if os.path.exists(KEYRING) else []  # noqa: PTH110 - a name, not a path of ours
    command += [SUITE, str(archive), mirror]
    said: list[str] = []
    environment = {**os.environ, "TMPDIR": str(folder), "LC_ALL": "C.UTF-8"}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None  # noqa: S101 - Popen was asked for a pipe
        try:
            for line in process.stderr:
                said.append(line.strip())
                if line.startswith("I: ") and line.rstrip().endswith("..."):
                    say(f"mmdebstrap: {line[3:].strip()}")
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        errors = [line.removeprefix("E: ") for line in said if line.startswith(("E: ", "Err:"))] or said[-1:]
        why = "; ".join(errors[:2])[:300]
        if os.geteuid() and not _has_subordinate_ids():
            user = pwd.getpwuid(os.geteuid()).pw_name
            how = f"sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}"
            raise MeasureError(f"a guest could not be put together ({why}): without root that takes subordinate user ids, which {user} has not: {how}")
        raise MeasureError(f"Debian's packages could not be fetched from {mirror}: {why}; is there a network? (RTGAUGE_LAB_MIRROR names another mirror)")
    say("unpacking")
    tree.mkdir()
    with tarfile.open(archive) as tar:
        tar.extractall(tree, members=(member for member in tar if not member.isdev()), filter="tar")
    archive.unlink()
    return tree
