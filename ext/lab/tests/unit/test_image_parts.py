# SPDX-License-Identifier: MIT
"""The parts that an image is made of."""

from __future__ import annotations

import gzip
import io
import os
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.errors import InputError, MeasureError
from rtgauge_ext.lab.cpio import CpioWriter
from rtgauge_ext.lab.image import kernel_in
from rtgauge_ext.lab.kernel_image import architecture_of, bootable
from rtgauge_ext.lab.modules import find_modules, module_name, module_needs, with_needs
from rtgauge_ext.lab.qemu import check_append
from rtgauge_ext.lab.userland import FILES, PROGRAMS, needed_libraries, pick, resolve
from rtgauge_ext.signal.module_file import module_content


def entries(archive: bytes) -> dict[str, tuple[int, bytes]]:
    """Name -> (mode, content), read as the kernel does: fixed fields in hexadecimal, everything padded to 4
    bytes.
    """
    actual: dict[str, tuple[int, bytes]] = {}
    at = 0
    while at < len(archive):
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        name = archive[at + 110 : at + 110 + fields[11] - 1].decode()
        at += 110 + fields[11]
        at += -at % 4
        content = archive[at : at + fields[6]]
        at += fields[6]
        at += -at % 4
        if name != "TRAILER!!!":
            actual[name] = (fields[1], content)
    return actual


def test_an_archive_contains_files_with_their_folders() -> None:
    file = io.BytesIO()
    cpio = CpioWriter(file)
    cpio.file("etc/deep/x", b"content", 0o600)
    cpio.link("etc/link", "deep/x")
    cpio.file("etc/deep/y", b"")
    cpio.close()
    actual = entries(file.getvalue())
    assert list(actual) == ["etc", "etc/deep", "etc/deep/x", "etc/link", "etc/deep/y"]
    assert actual["etc/deep/x"] == (stat.S_IFREG | 0o600, b"content")
    assert actual["etc/link"] == (stat.S_IFLNK | 0o777, b"deep/x")
    assert actual["etc"] == (stat.S_IFDIR | 0o755, b"")


@given(st.dictionaries(st.text("abc.-_ ", min_size=1, max_size=9), st.binary(max_size=50)))
def test_two_archives_in_one_file_are_read_as_one(files: dict[str, bytes]) -> None:
    file = io.BytesIO()
    for part in (dict(list(files.items())[::2]), dict(list(files.items())[1::2])):
        cpio = CpioWriter(file)
        for name, content in part.items():
            cpio.file(name, content)
        cpio.close()
    assert {name: content for name, (_, content) in entries(file.getvalue()).items()} == files


def test_a_program_names_its_loader_and_libraries() -> None:
    program = Path("/bin/sh").resolve().read_bytes()
    names = needed_libraries(program)
    assert any("libc.so" in name for name in names)
    assert any(name.startswith("/lib") for name in names)
    assert needed_libraries(b"#!/bin/sh\n") == []


def test_links_are_followed_and_never_lead_out(tmp_path: Path) -> None:
    (tmp_path / "usr/lib/deep").mkdir(parents=True)
    (tmp_path / "usr/lib/deep/real.so.1").write_text("x")
    (tmp_path / "usr/lib/a.so").symlink_to("deep/real.so.1")
    (tmp_path / "usr/lib/b.so").symlink_to("/lib/a.so")
    (tmp_path / "usr/lib/out.so").symlink_to("../../../../../../etc/hostname")
    (tmp_path / "usr/lib/loop.so").symlink_to("loop.so")
    assert resolve(tmp_path, "/lib/b.so") == ["usr/lib/b.so", "usr/lib/a.so", "usr/lib/deep/real.so.1"]
    assert resolve(tmp_path, "usr/lib/out.so") == []
    assert resolve(tmp_path, "usr/lib/loop.so") == []
    assert resolve(tmp_path, "usr/lib/missing.so") == []


def module(folder: Path, name: str, needs: str) -> None:
    """A module as far as its .modinfo goes."""
    (folder / "info").write_bytes(b"license=GPL\0depends=" + needs.encode() + b"\0")
    (folder / "empty.c").write_text("int x;\n")
    subprocess.run(["gcc", "-c", folder / "empty.c", "-o", folder / "empty.o"], check=True)
    subprocess.run(
        [
            "objcopy",
            "--add-section",
            f".modinfo={folder / 'info'}",
            folder / "empty.o",
            folder / f"{name}.ko",
        ],
        check=True,
    )


def test_modules_come_after_those_that_they_need(tmp_path: Path) -> None:
    for name, needs in (
        ("ext4", "jbd2,mbcache"),
        ("jbd2", ""),
        ("mbcache", ""),
        ("virtio-net", "net_failover"),
        ("net_failover", ""),
        ("unwanted", ""),
    ):
        module(tmp_path, name, needs)
    actual = find_modules(tmp_path)
    assert list(with_needs(actual, ["ext4", "missing", "virtio_net"])) == [
        "jbd2",
        "mbcache",
        "ext4",
        "net_failover",
        "virtio_net",
    ]
    assert module_needs((tmp_path / "ext4.ko").read_bytes()) == ["jbd2", "mbcache"]
    del actual["jbd2"]
    with pytest.raises(MeasureError, match="jbd2, which ext4 needs"):
        with_needs(actual, ["ext4"])


def test_packed_modules_are_unpacked(tmp_path: Path) -> None:
    (tmp_path / "a-b.ko.gz").write_bytes(gzip.compress(b"module", mtime=0))
    assert module_content(tmp_path / "a-b.ko.gz") == b"module"
    assert module_name(tmp_path / "a-b.ko.gz") == "a_b"
    (tmp_path / "bad.ko").write_bytes(b"x")
    with pytest.raises(MeasureError, match="not a kernel module"):
        with_needs(find_modules(tmp_path), ["bad"])
    (tmp_path / "bad.ko.xz").write_bytes(b"x")
    with pytest.raises(MeasureError, match="damaged"):
        module_content(tmp_path / "bad.ko.xz")
    (tmp_path / "c.ko.zst").write_bytes(b"x")
    with pytest.raises(MeasureError, match=r"unpack the modules"):
        module_content(tmp_path / "c.ko.zst")


@given(st.binary(max_size=2000))
def test_what_is_no_known_kernel_is_left_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp()
    for start in (b"", b"MZ\0\0zimg", b"\0" * 0x202 + b"HdrS", b"\x7fELF"):
        (folder / "kernel").write_bytes(start + content)
        for architecture in ("x86_64", "aarch64"):
            bootable(folder / "kernel", architecture, folder / "booted")
            assert (folder / "booted").read_bytes() == start + content


@pytest.mark.parametrize(
    ("head", "actual"),
    [
        (bytes(0x202) + b"HdrS", "x86_64"),
        (b"\x7fELF\x02\x01" + bytes(12) + b"\x3e\0", "x86_64"),
        (bytes(0x38) + b"ARM\x64", "aarch64"),
        (b"MZ\0\0zimg", "aarch64"),
        (gzip.compress(b"kernel", mtime=0), "aarch64"),
        (b"MZ" + bytes(0x2E) + b"RISCV\0\0\0RSC\x05", "riscv64"),
        (b"\x7fELF\x02\x01" + bytes(12) + b"\xb7\0", None),
        (b"", None),
        (b"#!/bin/sh\n", None),
    ],
)
def test_a_kernel_is_known_by_how_it_begins(tmp_path: Path, head: bytes, actual: str | None) -> None:
    (tmp_path / "kernel").write_bytes(head)
    assert architecture_of(tmp_path / "kernel") == actual


def test_a_packed_arm_kernel_is_unpacked(tmp_path: Path) -> None:
    packed = gzip.compress(b"kernel", mtime=0)
    (tmp_path / "kernel").write_bytes(
        b"MZ\0\0zimg" + (64).to_bytes(4, "little") + len(packed).to_bytes(4, "little") + bytes(48) + packed
    )
    bootable(tmp_path / "kernel", "aarch64", tmp_path / "booted")
    assert (tmp_path / "booted").read_bytes() == b"kernel"


@pytest.mark.parametrize("text", ["a\nb", "\0", "x" * 2000, "\x1b[2J"])
def test_a_command_line_that_no_kernel_takes_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="kernel parameters"):
        check_append(text)


def test_the_environment_names_the_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from rtgauge_ext.lab import paths

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert paths.home() == tmp_path / "rtgauge/lab"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert os.fspath(paths.home()).startswith("/")


@pytest.mark.parametrize(
    ("files", "kernel", "configuration"),
    [
        (["boot/vmlinuz-6.12.1-amd64", "boot/config-6.12.1-amd64"], 0, 1),
        (["usr/lib/modules/7.3-amd64/vmlinuz", "boot/config-7.3-amd64"], 0, 1),
        (["usr/lib/modules/7.3-amd64/vmlinuz", "usr/lib/modules/7.3-amd64/config"], 0, 1),
        (["usr/lib/modules/7.3-amd64/vmlinuz"], 0, None),
    ],
)
def test_a_kernel_is_found_where_debian_13_and_debian_14_put_it(
    tmp_path: Path, files: list[str], kernel: int, configuration: int | None
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    actual = kernel_in(tmp_path)
    assert actual.release in files[kernel]
    assert actual.release.endswith("-amd64")
    assert actual.path == tmp_path / files[kernel]
    assert actual.configuration == (None if configuration is None else tmp_path / files[configuration])


def test_packages_without_a_kernel_say_so(tmp_path: Path) -> None:
    (tmp_path / "usr/lib/modules/7.3-amd64").mkdir(parents=True)
    with pytest.raises(MeasureError, match="do not contain a kernel"):
        kernel_in(tmp_path)


def test_a_guest_gets_python_with_all_its_modules(tmp_path: Path) -> None:
    tree, module = tmp_path / "tree", "usr/lib/python3.13/json/decoder.py"
    for name in (*PROGRAMS, *FILES, module):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)
    pick(tree, tmp_path / "picked", "x86_64")
    assert (tmp_path / "picked" / module).read_text() == module
    assert (tmp_path / "picked/usr/bin/python3").exists()
