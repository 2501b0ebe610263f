# SPDX-License-Identifier: MIT
"""Compares two releases, file by file: python tools/compare_releases.py dist OTHER/dist.

Prints both hashes of each file, and of a .deb, .whl or .tar.gz that differs the files in it that differ. The
status is 1 if anything differs.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

SHOWN = 20
"""Of the files in a package that differ, no more are printed."""


def digest(content: bytes) -> str:
    """SHA-256, in hex."""
    return hashlib.sha256(content).hexdigest()


def _of_tar(archive: tarfile.TarFile) -> Iterator[tuple[str, str]]:
    for member in archive:
        file = archive.extractfile(member) if member.isreg() else None
        about = f"{member.mode:o} {member.uid} {member.gid} {member.mtime} {member.linkname}"
        yield member.name, f"{digest(file.read()) if file else '-'} {about}"


def members(path: Path) -> dict[str, str]:
    """What is in a package: name -> hash, mode and time."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return {
                entry.filename: f"{digest(wheel.read(entry))} {entry.date_time} {entry.external_attr}"
                for entry in wheel.infolist()
            }
    if path.suffix == ".deb":
        found: dict[str, str] = {}
        for part in ("--fsys-tarfile", "--ctrl-tarfile"):
            done = subprocess.run(["dpkg-deb", part, path], stdout=subprocess.PIPE, check=True)
            with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
                found |= {f"{part[2:6]}:{name}": about for name, about in _of_tar(archive)}
        return found
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            return dict(_of_tar(archive))
    return {}


def differing(first: Path, second: Path) -> list[str]:
    """The files in two packages of one name that differ or that only one has."""
    one, two = members(first), members(second)
    return sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))


def main() -> None:
    """Print the comparison."""
    if len(sys.argv) != 3:
        sys.exit("usage: python tools/compare_releases.py DIST OTHER-DIST")
    folders = [Path(word) for word in sys.argv[1:]]
    names = sorted({file.name for folder in folders for file in folder.iterdir() if file.is_file()})
    same = True
    for name in names:
        files = [folder / name for folder in folders]
        hashes = [digest(file.read_bytes()) if file.is_file() else "missing" for file in files]
        print(f"{name}\n    {hashes[0]}\n    {hashes[1]}{'' if hashes[0] == hashes[1] else '    DIFFERS'}")
        if hashes[0] == hashes[1]:
            continue
        same = False
        if all(file.is_file() for file in files):
            inside = differing(*files)
            for inner in inside[:SHOWN]:
                print(f"        {inner}")
            if len(inside) > SHOWN:
                print(f"        and {len(inside) - SHOWN} more")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
