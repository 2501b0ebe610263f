# SPDX-License-Identifier: MIT
"""The lab uses its folders only if no other user can change them, because guests' files name what QEMU boots."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rtgauge.errors import MeasureError
from rtgauge_ext.lab import paths
from rtgauge_ext.lab.guest import guests
from rtgauge_ext.lab.kernel_image import architecture_of
from rtgauge_ext.signal.module_file import module_content


@pytest.mark.root
def test_guests_of_another_user_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = tmp_path / "rtgauge/lab/guests"
    folder.mkdir(parents=True)
    (folder / "mine.json").write_text(
        '{"name": "mine", "architecture": "x86_64", "about": "", "kernel": "/boot/vmlinuz"}'
    )
    assert "mine" in guests()
    os.chown(tmp_path / "rtgauge/lab", 65534, 65534)
    with pytest.raises(MeasureError, match="belongs to another user"):
        guests()


def test_a_cache_that_everyone_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert paths.cache() == tmp_path / "rtgauge/lab"
    paths.cache().mkdir(parents=True)
    paths.cache().chmod(0o777)
    with pytest.raises(MeasureError, match="others can write"):
        paths.cache()


def test_a_kernel_or_module_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe.ko")
    with pytest.raises(OSError, match="not a regular file"):
        architecture_of(pipe)
    with pytest.raises(MeasureError, match="not a regular file"):
        module_content(pipe)


def test_of_a_console_without_end_only_the_end_is_read(tmp_path: Path) -> None:
    with (tmp_path / paths.CONSOLE).open("wb") as console:
        console.truncate(1 << 40)
        console.seek(0, os.SEEK_END)
        console.write(b"the end")
    assert paths.console_end(tmp_path).endswith(b"the end")
    assert len(paths.console_end(tmp_path, 100)) == 100
