# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from rtgauge.errors import InputError, MeasureError
from rtgauge_ext.instrument import link
from rtgauge_ext.instrument.instrument_session import Session


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
