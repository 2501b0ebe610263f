# SPDX-License-Identifier: MIT
"""The code that draws is bundled once, and taken from the cache only where no other user could have written
it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rtgauge.report import page_frame as module

BUNDLE = "vegaEmbed </script <!-- end"


@pytest.fixture(name="cache")
def a_cache(tmp_path, monkeypatch) -> Path:
    """A cache of its own, and a bundler that is quick and counts; its folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda *_, **__: BUNDLE)
    return tmp_path / "cache" / "rtgauge"


def drawing_code() -> str:
    module.drawing_code.cache_clear()
    return module.drawing_code()


@pytest.fixture(autouse=True)
def forgotten():
    yield
    module.drawing_code.cache_clear()


def kept(cache: Path) -> Path:
    (file,) = cache.iterdir()
    return file


def test_it_is_bundled_once_and_safe_inside_of_a_page(cache, monkeypatch):
    first = drawing_code()
    assert first == "vegaEmbed <\\/script <\\!-- end"
    assert kept(cache).stat().st_mode & 0o077 == 0
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda *_, **__: pytest.fail("it was bundled again"))
    assert drawing_code() == first


@pytest.mark.parametrize(
    "way",
    [
        "cut",
        "writable",
        "link",
        pytest.param("foreign", marks=pytest.mark.root),
        "not text",
        "pipe",
        "folder writable",
    ],
)
def test_a_file_that_is_cut_or_that_others_could_have_written_is_not_taken(cache, way):
    good = drawing_code()
    file = kept(cache)
    file.write_text("alert(1)" + module.END, encoding="utf-8")
    if way == "cut":
        file.write_text("alert(1)", encoding="utf-8")
    elif way == "writable":
        file.chmod(0o666)
    elif way == "link":
        file.rename(cache.parent / "elsewhere")
        file.symlink_to(cache.parent / "elsewhere")
    elif way == "foreign":
        os.chown(file, 12345, 12345)
    elif way == "not text":
        file.write_bytes(b"\xff\xfe" + module.END.encode())
    elif way == "pipe":
        file.unlink()
        os.mkfifo(file)
    elif way == "folder writable":
        cache.chmod(0o777)
    assert drawing_code() == good


def test_without_a_cache_it_is_bundled_each_time(tmp_path, monkeypatch, cache):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert drawing_code() == "vegaEmbed <\\/script <\\!-- end"
