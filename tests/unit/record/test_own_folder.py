# SPDX-License-Identifier: MIT
"""A folder whose files decide what rtgauge later does is used only if nobody else could have changed it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rtgauge.record.own_folder import OwnFolder

NOBODY = 65534


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file of ours elsewhere, which must stay as it is."""
    file = tmp_path / "victim"
    file.write_text("precious")
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "own"
    place.mkdir(0o755)
    return place


def as_link(file: Path, victim: Path) -> None:
    file.symlink_to(victim)


def as_second_name(file: Path, victim: Path) -> None:
    os.link(victim, file)


def as_pipe(file: Path, _victim: Path) -> None:
    os.mkfifo(file)


def as_folder(file: Path, _victim: Path) -> None:
    file.mkdir()


def as_shared(file: Path, _victim: Path) -> None:
    file.write_text("x")
    file.chmod(0o666)


def as_strangers(file: Path, _victim: Path) -> None:
    file.write_text("x")
    os.chown(file, NOBODY, NOBODY)


KINDS = [
    as_link,
    as_second_name,
    as_pipe,
    as_folder,
    as_shared,
    pytest.param(as_strangers, marks=pytest.mark.root),
]


@pytest.mark.parametrize("make", KINDS)
def test_files_of_other_users_are_neither_read_nor_written(
    make: Callable[[Path, Path], None], folder: Path, victim: Path
) -> None:
    make(folder / "name", victim)
    own = OwnFolder.existing(folder)
    with pytest.raises(OSError, match=r"."):
        own.read_own("name", 1000)
    if make is not as_folder:
        with pytest.raises(OSError, match=r"."):
            own.check_content()
    with pytest.raises(OSError, match=r"."):
        own.open_log("name")
    with pytest.raises(OSError, match=r"."), own.lock("name"):
        pass
    assert victim.read_text() == "precious"


def test_a_file_that_is_too_large_is_not_read(folder: Path) -> None:
    with (folder / "name").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="larger than"):
        OwnFolder.existing(folder).read_own("name", 1 << 20)


def test_what_is_written_is_read_again(folder: Path) -> None:
    own = OwnFolder.made(folder / "made" / "twice")
    for _ in range(2):
        with own.open_log("log", append=True) as log:
            log.write(b"line\n")
    assert own.read_own("log", 100) == b"line\nline\n"
    with own.open_log("log") as log:
        log.write(b"new\n")
    assert own.read_own("log", 100) == b"new\n"
    own.inner("job").write("state.json", b"{}")
    assert own.inner("job").read_own("state.json", 100) == b"{}"


def test_a_writable_or_linked_folder_is_refused(folder: Path) -> None:
    (folder.parent / "link").symlink_to(folder)
    with pytest.raises(OSError, match="link"):
        OwnFolder.existing(folder.parent / "link")
    (folder / "inside").symlink_to(folder.parent)
    with pytest.raises(OSError, match="exist"):
        OwnFolder.existing(folder).inner("inside")
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match="others can write"):
        OwnFolder.existing(folder)


@pytest.mark.root
def test_a_folder_of_another_user_is_refused_and_stays_empty(folder: Path) -> None:
    os.chown(folder, NOBODY, NOBODY)
    with pytest.raises(PermissionError, match="belongs to another user"):
        OwnFolder.made(folder)
    assert not list(folder.iterdir())


def test_without_waiting_a_held_lock_is_an_error(folder: Path) -> None:
    own = OwnFolder.existing(folder)
    with own.lock("lock"), pytest.raises(BlockingIOError), own.lock("lock", wait=False):
        pass
    with own.lock("lock", wait=False) as held:
        assert held >= 0


def test_without_a_umask_nothing_is_writable_by_everyone(tmp_path: Path) -> None:
    """In a process of its own, because a umask belongs to the whole process."""
    script = (
        "import os, pathlib, sys; os.umask(0)\n"
        "from rtgauge.record.own_folder import OwnFolder\n"
        "own = OwnFolder.made(pathlib.Path(sys.argv[1]))\n"
        "own.write('whole', b''); own.open_log('log').close()\n"
        "own.inner('job')\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "a" / "b")], check=True)
    made = [tmp_path / "a", *(tmp_path / "a").rglob("*")]
    assert {path.name for path in made} == {"a", "b", "whole", "log", "job"}
    assert not [path for path in made if path.stat().st_mode & 0o022]
