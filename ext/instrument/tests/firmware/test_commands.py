# SPDX-License-Identifier: MIT
"""`rtgauge instrument` with the emulated board."""

from __future__ import annotations

from tests.support.cli import error_line, good, rtgauge
from tests.support.real_record import document

from ext.instrument.tests.firmware.bridge import EmulatedBoard


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


def test_a_missing_instrument_names_how_to_add_one() -> None:
    assert set(document(good(rtgauge("instrument", "list", "--json")).stdout)) == {"instruments"}
    assert "this port does not exist" in error_line(
        rtgauge("instrument", "selftest", "serial:/dev/ttyNONE"), 3
    )
