# SPDX-License-Identifier: MIT
"""QEMU's command line for the kinds of guests. That QEMU understands it is in tests/lab."""

from __future__ import annotations

import hashlib
import itertools
import shutil
from pathlib import Path

import pytest

from rtgauge_ext.lab.guest import Guest, built_in
from rtgauge_ext.lab.image import Image, write_initrd_with
from rtgauge_ext.lab.qemu import Accelerator, BootOptions, command

SERIAL = Guest(name="own", architecture="x86_64", about="", kernel=Path("/k"), serial=True)


def line(
    guest: Guest,
    options: BootOptions,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    accelerator: Accelerator = "tcg",
) -> list[str]:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    return command(guest, Image(folder, "6.12"), options, folder=folder, port=2222, accelerator=accelerator)


@pytest.mark.parametrize("name", ["debian", "debian-arm64"])
def test_a_counting_clock_has_one_cpu_that_the_guest_knows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = line(built_in()[name], BootOptions(icount=True), tmp_path, monkeypatch)
    after = dict(itertools.pairwise(words))
    assert (after["-icount"], after["-smp"], after["-accel"]) == ("shift=2", "1", "tcg,thread=single")
    assert "rtgauge.icount=2" in after["-append"].split()
    words = line(built_in()[name], BootOptions(icount=True, smp="2"), tmp_path, monkeypatch)
    assert dict(itertools.pairwise(words))["-smp"] == "2"
    assert not any("icount" in word for word in line(built_in()[name], BootOptions(), tmp_path, monkeypatch))


@pytest.mark.parametrize("name", ["debian", "debian-arm64"])
def test_only_emulated_guests_get_parameters_against_the_emulators_faults(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for accelerator, same in (("tcg", True), ("kvm", False)):
        words = line(built_in()[name], BootOptions(), tmp_path, monkeypatch, accelerator)
        parameters = words[words.index("-append") + 1].split()
        assert ("norandmaps" in parameters) == same
        assert ("no_timer_check" in parameters) == (same and name == "debian")


def test_a_guest_with_serial_lines_finds_its_engine_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "image").mkdir()
    image = tmp_path / "image" / "initrd"
    image.write_bytes(b"cpio")
    engine = tmp_path / "engine"
    engine.write_bytes(b"ELF")
    monkeypatch.setattr(Image, "initrd", image)
    write_initrd_with(Image(tmp_path, "6.12"), [engine], tmp_path / "initrd")
    words = line(SERIAL, BootOptions(engines=(engine,)), tmp_path, monkeypatch)
    assert not any("virtio" in word or "-drive" in word or "-netdev" in word for word in words)
    assert [words[at + 1] for at, word in enumerate(words) if word == "-serial"] == [
        "chardev:console",
        "chardev:line",
    ]
    assert "socket,id=line,host=127.0.0.1,port=2222,server=on,wait=off" in words
    assert words[words.index("-initrd") + 1] == str(tmp_path / "initrd")
    assert line(SERIAL, BootOptions(), tmp_path, monkeypatch)[words.index("-initrd") + 1] == str(image)
    written = (tmp_path / "initrd").read_bytes()
    assert written.startswith(b"cpio")
    assert f"opt/rtgauge/{hashlib.sha256(b'ELF').hexdigest()}".encode() in written
