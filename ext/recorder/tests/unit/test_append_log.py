# SPDX-License-Identifier: MIT
"""A log after a kill, a power cut and a full disk."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from rtgauge.record.own_folder import OwnFolder
from rtgauge_ext.recorder.append_log import HEAD, AppendLog, entries, framed

if TYPE_CHECKING:
    from pathlib import Path

WRITTEN = [b"first", b"", b"third" * 1000]


def test_an_end_cut_anywhere_loses_only_the_last_entry(tmp_path: Path) -> None:
    whole = b"".join(map(framed, WRITTEN))
    before = len(whole) - len(framed(WRITTEN[-1]))
    for length in (*range(before, before + 2 * HEAD.size), len(whole) - 1):
        (tmp_path / "log").write_bytes(whole[:length])
        log = AppendLog(OwnFolder.existing(tmp_path), "log")
        assert log.found == WRITTEN[:2]
        assert log.cut == length - before
        log.append([b"next"])
        log.close()
        assert list(entries((tmp_path / "log").read_bytes())) == [*WRITTEN[:2], b"next"]


@pytest.mark.parametrize("at", [0, 4, HEAD.size, 40])
def test_a_changed_byte_ends_the_log_there(tmp_path: Path, at: int) -> None:
    content = bytearray(framed(b"good")) + bytearray(framed(b"x" * 100))
    content[len(framed(b"good")) + at] ^= 1
    (tmp_path / "log").write_bytes(content)
    assert AppendLog(OwnFolder.existing(tmp_path), "log").found == [b"good"]


def test_a_full_disk_leaves_no_part_of_an_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = AppendLog(OwnFolder.existing(tmp_path), "log")
    log.append([b"kept"])
    write = os.write

    def half(handle: int, data: bytes) -> int:
        if len(data) < 50:
            raise OSError(errno.ENOSPC, "full")
        return write(handle, data[:50])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="full"):
        log.append([b"y" * 80])
    monkeypatch.undo()
    log.append([b"later"])
    assert list(entries((tmp_path / "log").read_bytes())) == [b"kept", b"later"]


def test_a_reader_leaves_an_unfinished_entry_alone(tmp_path: Path) -> None:
    content = framed(b"whole") + framed(b"being written")[:10]
    (tmp_path / "log").write_bytes(content)
    log = AppendLog(OwnFolder.existing(tmp_path), "log", writes=False)
    assert log.found == [b"whole"] and log.cut == 10
    assert (tmp_path / "log").read_bytes() == content
