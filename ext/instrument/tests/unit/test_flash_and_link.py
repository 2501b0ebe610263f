# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import struct
from types import SimpleNamespace

import pytest

from rtgauge.errors import InputError, MeasureError
from rtgauge_ext.instrument import flash, link
from rtgauge_ext.instrument.session import Session


def _uf2(blocks: int = 2, family: int = 0xE48BFF56) -> bytes:
    return b"".join(
        struct.pack("<8I", 0x0A324655, 0x9E5D5157, 0x2000, 0x10000000, 256, i, blocks, family).ljust(
            508, b"\0"
        )
        + struct.pack("<I", 0x0AB16F30)
        for i in range(blocks)
    )


def test_firmware_goes_to_the_drive_and_nothing_else_does(tmp_path):
    file = tmp_path / "a.uf2"
    file.write_bytes(_uf2())
    drive = tmp_path / "a drive"
    drive.mkdir()
    mounts = tmp_path / "mounts"
    mounts.write_text(f"proc /proc proc rw 0 0\n/dev/sda1 {tmp_path}/a\\040drive vfat rw 0 0\n")
    with pytest.raises(MeasureError, match="BOOTSEL"):
        flash.wait_for_drive(0, mounts)
    (drive / "INFO_UF2.TXT").write_text("UF2 Bootloader v3.0\nModel: Raspberry Pi RP2\nBoard-ID: RPI-RP2\n")
    assert flash.wait_for_drive(0, mounts) == drive
    flash.flash(file, drive)
    assert (drive / "a.uf2").read_bytes() == _uf2()
    for wrong in (b"", b"x" * 512, _uf2()[:-1], _uf2(family=1)):
        file.write_bytes(wrong)
        with pytest.raises(InputError):
            flash.flash(file, drive)
    with pytest.raises(InputError, match="cannot be read"):
        flash.flash(tmp_path / "none.uf2", drive)


def test_firmware_follows_no_link_on_the_drive(tmp_path):
    (tmp_path / "a.uf2").write_bytes(_uf2())
    drive = tmp_path / "drive"
    drive.mkdir()
    (drive / "INFO_UF2.TXT").write_text("Board-ID: RPI-RP2\n")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (drive / "a.uf2").symlink_to(victim)
    with pytest.raises(MeasureError, match="could not be written"):
        flash.flash(tmp_path / "a.uf2", drive)
    assert victim.read_text() == "precious"
    os.mkfifo(tmp_path / "pipe.uf2")
    with pytest.raises(InputError, match="not a regular file"):
        flash.flash(tmp_path / "pipe.uf2", drive)


def test_a_device_that_is_no_serial_port_is_not_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(link.serial, "Serial", lambda *_, **__: pytest.fail("it was opened"))
    (tmp_path / "file").write_text("x")
    for path in ("/dev/null", "/dev/zero", tmp_path, tmp_path / "file"):
        with pytest.raises(MeasureError, match="is not a serial port"):
            link.SerialLink(str(path))


def test_instruments_by_path_and_id(monkeypatch):
    def port(device, serial_number, vid=0x1209, product="rtgauge instrument"):
        return SimpleNamespace(device=device, serial_number=serial_number, vid=vid, pid=1, product=product)

    ports = [
        port("/dev/ttyACM1", "E660AA"),
        port("/dev/ttyACM0", "E661BB"),
        port("/dev/ttyUSB0", "E660", vid=0x0403),
        port("/dev/ttyACM2", "E6", product="other"),
    ]
    monkeypatch.setattr(link.list_ports, "comports", lambda: ports)
    assert [entry.path for entry in link.list_instruments()] == ["/dev/ttyACM0", "/dev/ttyACM1"]
    assert link.resolve("serial:/dev/ttyACM7") == "/dev/ttyACM7"
    assert link.resolve("serial:e660aa") == "/dev/ttyACM1"
    for wrong, why in (
        ("serial:", "several instruments"),
        ("serial:E66F", "this instrument is not plugged in"),
        ("serial:pico", "give one such as"),
    ):
        with pytest.raises(InputError, match=why):
            link.resolve(wrong)
    monkeypatch.setattr(link.list_ports, "comports", list)
    with pytest.raises(InputError, match="did not find an instrument"):
        link.resolve("serial:")


def test_a_port_behind_which_nothing_answers():
    master, slave = os.openpty()
    try:
        with pytest.raises(MeasureError, match="does not answer"):
            Session.open(f"serial:{os.ttyname(slave)}", 0.05)
    finally:
        os.close(master)
        os.close(slave)
