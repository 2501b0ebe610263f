# SPDX-License-Identifier: MIT
"""Two guests joined by emulated network cards (e1000e): `path` between them names the card that holds its
interrupt back.

The guests' clocks count instructions, so a busy host does not add to the times in them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from tests.support.cli import good, invoke, rtgauge

if TYPE_CHECKING:
    from tests.lab.conftest import Lab

NEAR, FAR = "198.18.46.1", "198.18.46.2"
"""Addresses for benchmarks (RFC 2544)."""
PROGRAM = "qemu-system-x86_64"
WITH_CARD = """#!/bin/sh
# Starts QEMU with one more card, whose wire ends at the other guest.
case "$*" in *rtgauge-debian-rt*) own=far other=near mac=02:00:00:00:46:02;; *) own=near other=far mac=02:00:00:00:46:01;; esac
rm -f {wires}/$own
exec {program} "$@" -netdev dgram,id=wire,local.type=unix,local.path={wires}/$own,remote.type=unix,remote.path={wires}/$other -device e1000e,netdev=wire,mac=$mac,romfile=
"""
HELD_BACK_NS = 10_000_000
THROTTLED = "rmmod e1000e && insmod /modules/e1000e.ko IntMode=1 InterruptThrottleRate=100"
"""100 interrupts a second, the fewest that the driver allows, and one interrupt for sent and received packets."""
UP = "ip address add {}/30 dev eth1 && ip link set eth1 up"
ANSWERED = f"until ping -c 1 -W 1 {FAR}; do sleep 0.2; done"


@pytest.fixture
def joined(lab: Lab) -> Iterator[Lab]:
    """The guest `debian`, whose eth1 leads to the guest `debian-rt`. Neither is used again."""
    program = shutil.which(PROGRAM)
    assert program is not None
    lab.stop()
    with TemporaryDirectory() as wires, pytest.MonkeyPatch.context() as patch:
        (Path(wires) / PROGRAM).write_text(WITH_CARD.format(program=program, wires=wires))
        (Path(wires) / PROGRAM).chmod(0o755)
        patch.setenv("PATH", wires, prepend=":")
        lab.boot("debian", icount=True)
        lab.boot_beside("debian-rt", icount=True)
        good(rtgauge("lab", "shell", "debian-rt", UP.format(FAR), env=lab.env, timeout=150))
        yield lab
        lab.stop()


def test_a_card_that_holds_its_interrupt_back_is_named(joined: Lab, tmp_path: Path) -> None:
    joined.run_in(f"{THROTTLED} && {UP.format(NEAR)} && {ANSWERED}")
    words = (
        "--interval",
        "60ms",
        "--timeout",
        "1s",
        "--duration",
        "5s",
        "--explain",
        "--explain-above",
        "3ms",
    )
    joined.command("probe", "path", "--peer", FAR, *words, "--save", "-o", tmp_path / "records")
    (record,) = (tmp_path / "records").iterdir()
    culprits = json.loads(good(invoke("show", record, "--why", "--json")).stdout)["steps"][0]["culprits"]
    # On a busy host, the far end is slow in some cycles, by much more than any card.
    most = max(culprits, key=lambda culprit: culprit["outliers"])
    assert (most["culprit"], most["side"]) == ("interrupt throttling of eth1", "card"), culprits[:3]
    assert 0.9 * HELD_BACK_NS <= most["worst_ns"] <= 1.2 * HELD_BACK_NS
    assert most["rules"] == ["network-interrupts-at-once"]
