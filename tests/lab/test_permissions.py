# SPDX-License-Identifier: MIT
"""Rights that the root of a container may not give: a guest's root may."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.cli import error_line, rtgauge, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.conftest import Lab

LIMIT = 10
LOGINS = (
    "setsid sh -c 'killall dropbear; setpriv --bounding-set=-sys_nice --inh-caps=-sys_nice "
    f"prlimit --rtprio={LIMIT} dropbear -s -r /var/lib/rtgauge-lab/host-key' </dev/null >/dev/null 2>&1 &"
)
"""Who logs in from now on has a low RLIMIT_RTPRIO and no CAP_SYS_NICE."""
PROBE = ("probe", "wakeup", "--duration", "1s", "--warm-up", "0", "--interval", "10ms")


@pytest.fixture
def limited(lab: Lab) -> Iterator[Lab]:
    lab.boot("debian")
    lab.run_in(LOGINS)
    wait_until(
        lambda: f" {LIMIT} " in lab.run_in("grep 'realtime priority' /proc/self/limits"), "the limit", 60
    )
    yield lab
    lab.stop()


@pytest.mark.ci
def test_a_limit_on_the_priority_is_named_and_obeyed(limited: Lab) -> None:
    done = rtgauge(*PROBE, "--target", "lab:debian", env=limited.env, timeout=150)
    line = error_line(done, 3)
    assert f"RLIMIT_RTPRIO) is {LIMIT}" in line
    assert f"--priority {LIMIT}" in line
    limited.command(*PROBE, "--priority", LIMIT)
