# SPDX-License-Identifier: MIT
"""Which key of a guest ssh trusts: the one of its last boot, as its console has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from rtgauge_ext.lab.ssh import key_on, trust_last_boot

if TYPE_CHECKING:
    from pathlib import Path

FIRST, SECOND = (f"ssh-ed25519 {letter * 68}" for letter in "AB")


def test_after_a_reset_the_new_key_is_trusted(tmp_path: Path) -> None:
    guest = tmp_path / "rtai"
    guest.mkdir()
    console = guest / "console.log"
    console.write_bytes(b"booting\r\n")
    trust_last_boot(guest)
    assert not (guest / "known_hosts").exists()
    for key in (FIRST, SECOND):
        with console.open("ab") as file:
            file.write(f"rtgauge-lab: ready {key}\r\n".encode())
        trust_last_boot(guest)
        assert (guest / "known_hosts").read_text() == f"rtgauge-lab-rtai {key}\n"


@given(st.binary(max_size=300))
def test_whatever_else_is_on_the_console_is_no_key(console: bytes) -> None:
    assert key_on(console) is None
