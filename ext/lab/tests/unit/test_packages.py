# SPDX-License-Identifier: MIT
"""Debian's packages are fetched only where their signatures can be verified."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest

from rtgauge.errors import MeasureError
from rtgauge_ext.lab import headers, packages


@pytest.fixture(autouse=True)
def mmdebstrap_is_there(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/usr/bin/{name}")


def test_the_keyring_is_named(tmp_path, monkeypatch):
    keyring = tmp_path / "keyring.gpg"
    keyring.write_bytes(b"")
    monkeypatch.setattr(packages, "KEYRING", str(keyring))
    assert f"--keyring={keyring}" in packages.mmdebstrap(["busybox"], "x86_64")


@pytest.mark.parametrize(
    ("guest", "headers_have", "newest", "fetched", "rebuilt"),
    [
        ("6.1", ["6.1"], "6.3", False, 0),
        ("6.2", ["6.1"], "6.2", True, 0),
        ("6.1", ["6.2"], "6.2", True, 2),
        ("6.1", ["6.2"], "6.3", True, 2),
    ],
)
def test_headers_are_those_of_the_guests_kernels(monkeypatch, guest, headers_have, newest, fetched, rebuilt):
    """Whichever of the two is older than Debian's newest is fetched again."""
    trees, builds, kernels = [], [], {}

    def headers_tree(_architecture, _say, *, fresh=False):
        trees.append(fresh)
        return SimpleNamespace(releases=lambda: [newest] if fresh else headers_have)

    def build(of, _say, *, fresh=False):
        builds.append(fresh)
        kernels[of.name] = newest if fresh else kernels.get(of.name, guest)
        return SimpleNamespace(release=kernels[of.name])

    monkeypatch.setattr(headers, "headers_tree", headers_tree)
    monkeypatch.setattr(headers, "build", build)
    tree = headers.headers_for_guests("aarch64", print)
    assert (trees, sum(builds)) == ([False, True] if fetched else [False], rebuilt)
    assert {*kernels.values()} <= {*tree.releases()}
    assert sorted(kernels) == ["debian-arm64", "debian-rt-arm64"]


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
