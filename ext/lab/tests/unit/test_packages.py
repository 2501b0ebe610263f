# SPDX-License-Identifier: MIT
"""Debian's packages are fetched only where their signatures can be verified."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from rtgauge.errors import InputError, MeasureError
from rtgauge_ext.lab import headers, packages
from rtgauge_ext.lab.guest import Guest, built_in, guests, of_version, save
from rtgauge_ext.lab.image import build, find_image


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


RELEASE = "7.3-rt-amd64"
"""Of Debian's kernel 7.3-rc7."""
MMDEBSTRAP = """#!/bin/sh
# Debian's packages with a kernel in the place of Debian 14
for word; do
    case "$word" in
    *.tar) archive=$word ;;
    --include=linux-image*) kernel=1 ;;
    --setup-hook=*) preferences=${word#--setup-hook=upload } ;;
    esac
done
printf '%s\\n' "$*" >>ARGUMENTS
[ -z "$preferences" ] || cat "${preferences%% *}" >>ARGUMENTS
mkdir -p tree/usr/lib/modules/RELEASE && cd tree
[ -z "$kernel" ] || echo kernel >usr/lib/modules/RELEASE/vmlinuz
exec tar -cf "$archive" usr
"""


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    """A mirror with a kernel 7.3-rc7; gives the arguments and the pins of mmdebstrap."""
    monkeypatch.undo()
    (tmp_path / "keyring").write_bytes(b"")
    monkeypatch.setattr(packages, "KEYRING", str(tmp_path / "keyring"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "rtgauge_ext.lab.image.make_disk_of",
        lambda usr, disk: disk.write_bytes((usr / "bin/busybox").read_bytes()),
    )
    monkeypatch.setattr(
        "rtgauge_ext.lab.image.pick",
        lambda _tree, picked, _architecture: (
            (picked / "usr/bin").mkdir(parents=True) or (picked / "usr/bin/busybox").write_bytes(b"x")
        ),
    )
    program = tmp_path / "bin/mmdebstrap"
    program.parent.mkdir()
    program.write_text(
        MMDEBSTRAP.replace("ARGUMENTS", str(tmp_path / "arguments")).replace("RELEASE", RELEASE)
    )
    program.chmod(0o755)
    return (tmp_path / "arguments").read_text


@pytest.mark.parametrize(
    ("version", "suite", "name", "pin", "suites"),
    [
        ("7.3", "", "debian-rt-7-3", "version 7.3*", ["trixie", "trixie-backports", "sid", "experimental"]),
        ("7.3-rc7", "sid", "debian-rt-sid-7-3-rc7", "version 7.3~rc7*", ["sid"]),
        (
            "newest",
            "",
            "debian-rt-newest",
            "release *",
            ["trixie", "trixie-backports", "sid", "experimental"],
        ),
        ("", "experimental", "debian-rt-experimental", "release *", ["sid", "experimental"]),
        ("", "forky-backports", "debian-rt-forky-backports", "release *", ["forky", "forky-backports"]),
    ],
)
def test_a_guest_gets_the_kernel_of_a_version_or_suite(fetched, version, suite, name, pin, suites):
    guest = of_version(built_in()["debian-rt"], version, suite)
    image = build(guest, print)
    save(guest)
    assert guests()[name] == guest
    assert (image.release, image.kernel.read_text()) == (RELEASE, "kernel\n")
    assert find_image(guest) == image
    assert find_image(built_in()["debian-rt"]) is None
    (line,) = [line for line in fetched().splitlines() if "linux-image" in line and "--include" in line]
    assert f"Package: linux-*\nPin: {pin}\n" in fetched()
    assert [word for word in suites if f"/debian {word} main" in line] == (suites if len(suites) > 1 else [])
    assert f" {suites[0]} /" in line


def test_a_version_debian_lacks_is_named_and_leaves_no_guest(fetched):
    for version in ("7.1", "7.3.4", "7.4-rc1"):
        guest = of_version(built_in()["debian-rt"], version, "")
        with pytest.raises(
            MeasureError, match=rf"do not contain a kernel {version}: .* \(such as 7\.3\), or --kernel newest"
        ):
            build(guest, print)
        assert guest.name not in guests()
    assert fetched()


def test_a_release_candidate_is_not_the_release(fetched, tmp_path):
    program = tmp_path / "bin/mmdebstrap"
    program.write_text(program.read_text().replace(RELEASE, "7.3.4+deb13-rt-amd64"))
    with pytest.raises(MeasureError, match=r"contain a kernel 7\.3-rc7"):
        build(of_version(built_in()["debian-rt"], "7.3-rc7", ""), print)
    assert build(of_version(built_in()["debian-rt"], "7.3", ""), print).release == "7.3.4+deb13-rt-amd64"


def test_a_suite_that_the_mirror_lacks_is_named(fetched, tmp_path):
    text = (
        "Err:2 http://mirror/debian nosuch Release\nE: The repository 'nosuch' does not have a Release file."
    )
    (tmp_path / "bin/mmdebstrap").write_text(f'#!/bin/sh\necho "{text}" >&2\nexit 1\n')
    with pytest.raises(MeasureError, match="lacks one of these suites: nosuch; name another with --suite"):
        packages.fetch(["busybox"], "x86_64", tmp_path, print, "nosuch")


@pytest.mark.parametrize(
    "apt", ["is expired (invalid since 22d 15h 26min 53s)", "is not valid yet (invalid for another 3h 2min)"]
)
def test_a_clock_that_does_not_fit_the_mirror_is_named(fetched, tmp_path, monkeypatch, apt):
    monkeypatch.setenv("RTGAUGE_LAB_MIRROR", "http://mirror/debian")
    text = f"E: Release file for http://mirror/debian/dists/sid/InRelease {apt}. No updates are applied."
    (tmp_path / "bin/mmdebstrap").write_text(f"#!/bin/sh\necho '{text}' >&2\nexit 1\n")
    with pytest.raises(MeasureError, match="machine's clock") as caught:
        packages.fetch(["busybox"], "x86_64", tmp_path, print)
    assert str(caught.value).endswith("RTGAUGE_LAB_MIRROR='[check-date=no] http://mirror/debian'")


@pytest.mark.parametrize(
    ("version", "suite", "message"),
    [("seven", "", "--kernel seven"), ("7.3;x", "", "--kernel 7.3;x"), ("", "sid main", "--suite sid main")],
)
def test_a_wrong_version_or_suite_is_refused(version, suite, message):
    with pytest.raises(InputError, match=message):
        of_version(built_in()["debian"], version, suite)


def test_a_kernel_of_ones_own_has_no_debian_version():
    own = Guest(name="own", architecture="x86_64", about="", kernel=Path("/boot/vmlinuz"))
    with pytest.raises(InputError, match="a kernel of your own"):
        of_version(own, "7.3", "")
