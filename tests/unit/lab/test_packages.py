# SPDX-License-Identifier: MIT
"""Debian's packages are fetched only where their signatures can be verified."""

from __future__ import annotations

import shutil

import pytest

from rtgauge.errors import MeasureError
from rtgauge.lab import headers, packages


@pytest.fixture(autouse=True)
def mmdebstrap_is_there(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/usr/bin/{name}")


def test_the_keyring_is_named(tmp_path, monkeypatch):
    keyring = tmp_path / "keyring.gpg"
    keyring.write_bytes(b"")
    monkeypatch.setattr(packages, "KEYRING", str(keyring))
    assert f"--keyring={keyring}" in packages.mmdebstrap(["busybox"], "x86_64")


def fetch(folder):
    packages.fetch(["busybox"], "x86_64", folder, print)


def unpack(folder):
    headers.unpack(["busybox"], "bookworm", "x86_64", folder / "new")


@pytest.mark.parametrize("take", [fetch, unpack])
def test_without_it_nothing_is_fetched(tmp_path, monkeypatch, take):
    monkeypatch.setattr(packages, "KEYRING", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MeasureError, match="apt-get install debian-archive-keyring"):
        take(tmp_path)
    assert list(tmp_path.iterdir()) == []
