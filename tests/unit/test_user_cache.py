# SPDX-License-Identifier: MIT
"""What rtgauge runs from the user's cache is taken only where no other user could have written it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from rtgauge.errors import MeasureError
from rtgauge.target import engine_path
from rtgauge.user_cache import cache_folder, check_private, open_to_others, private_folder

STRANGER = 12345


@pytest.fixture(name="cache", autouse=True)
def a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_it_is_made_for_this_user_alone_whatever_the_mask(cache: Path) -> None:
    mask = os.umask(0)
    try:
        folder = private_folder(cache_folder("engines") / "of a version")
    finally:
        os.umask(mask)
    for part in (folder, folder.parent, cache / "rtgauge", cache):
        assert part.stat().st_mode & 0o777 == 0o700
    assert open_to_others(folder) is None


@pytest.mark.parametrize("part", ["file", "folder", "cache", "above"])
@pytest.mark.parametrize("way", ["group", "all", pytest.param("owner", marks=pytest.mark.root)])
def test_what_another_user_could_have_changed_is_refused(cache: Path, part: str, way: str) -> None:
    folder = private_folder(cache_folder("engines"))
    file = folder / "engine"
    file.touch(mode=0o755)
    assert check_private(file) == file
    opened = {"file": file, "folder": folder, "cache": cache / "rtgauge", "above": cache}[part]
    if way == "owner":
        os.chown(opened, STRANGER, STRANGER)
    else:
        opened.chmod(0o775 if way == "group" else 0o777)
    with pytest.raises(MeasureError, match=rf"{opened}.*XDG_CACHE_HOME") as refused:
        check_private(file)
    assert ("chmod go-w" in str(refused.value)) == (way != "owner")


def test_a_link_counts_by_where_it_is_and_where_it_leads(cache: Path, tmp_path: Path) -> None:
    """The user's own cache may be a link to another disk."""
    elsewhere = tmp_path / "disk" / "cache"
    private_folder(elsewhere)
    cache.symlink_to(elsewhere)
    folder = private_folder(cache_folder("engines"))
    elsewhere.parent.chmod(0o777)
    assert open_to_others(folder) == f"others can write to {elsewhere.parent}"
    elsewhere.parent.chmod(0o1777)  # sticky, as /tmp
    assert open_to_others(folder) is None


def test_what_is_kept_there_already_is_checked(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine for another architecture; the others in the tests of their modules."""
    other = "aarch64" if platform.machine() == "x86_64" else "x86_64"
    monkeypatch.setattr(engine_path, "_fingerprint", lambda _: "kept")
    engine = private_folder(cache_folder("engines") / "kept") / f"rtgauge-engine-{other}"
    engine.touch(mode=0o755)
    assert engine_path.engine_for(other) == engine
    cache.chmod(0o777)
    with pytest.raises(MeasureError, match="others can write"):
        engine_path.engine_for(other)
