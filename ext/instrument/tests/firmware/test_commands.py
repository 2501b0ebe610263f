# SPDX-License-Identifier: MIT
"""`rtgauge instrument` with the emulated board, and a folder in place of a board's drive."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import error_line, good, rtgauge
from tests.support.real_record import document

from ext.instrument.tests.firmware.bridge import EmulatedBoard

UF2 = Path(__file__).parents[4] / "build-firmware" / "rtgauge-instrument.uf2"


def test_the_self_test_inside_and_over_a_wire() -> None:
    with EmulatedBoard(delays=[3]) as board:
        assert good(rtgauge("instrument", "selftest", f"serial:{board.path}")).stdout.startswith(
            "passed: 0 ns internally"
        )
        content = document(
            good(rtgauge("instrument", "selftest", f"serial:{board.path}", "--wire", "--json")).stdout
        )
    assert (content["offset_ns"], content["resolution_ns"], content["missed"], content["id"]) == (
        [24, 24],
        8,
        0,
        "E6605838831F2B27",
    )


def test_a_wire_that_is_not_there() -> None:
    with EmulatedBoard(delays=[None]) as board:
        error = error_line(rtgauge("instrument", "selftest", f"serial:{board.path}", "--wire"), 3)
    assert "check the wire between GP2" in error


def test_firmware_is_copied_only_to_the_drive_of_a_board(tmp_path: Path) -> None:
    error = error_line(rtgauge("instrument", "flash", UF2, "--drive", tmp_path), 2)
    assert "not the drive of a board" in error
    (tmp_path / "INFO_UF2.TXT").write_text(
        "UF2 Bootloader v3.0\nModel: Raspberry Pi RP2\nBoard-ID: RPI-RP2\n"
    )
    good(rtgauge("instrument", "flash", UF2, "--drive", tmp_path))
    assert (tmp_path / UF2.name).read_bytes() == UF2.read_bytes()
    error = error_line(rtgauge("instrument", "flash", __file__, "--drive", tmp_path), 2)
    assert "is not a UF2 file" in error


def test_a_missing_instrument_names_how_to_add_one() -> None:
    assert set(document(good(rtgauge("instrument", "list", "--json")).stdout)) == {
        "instruments",
        "waiting_for_firmware",
    }
    assert "this port does not exist" in error_line(
        rtgauge("instrument", "selftest", "serial:/dev/ttyNONE"), 3
    )
