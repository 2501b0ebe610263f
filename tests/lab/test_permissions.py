# SPDX-License-Identifier: MIT
"""A right that the root of a container may not give: a guest's root may."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rtgauge.record.stream import ErrorLine
from rtgauge.system.refusal import explain
from rtgauge.target.file_batch import Files
from tests.support.cli import good, rtgauge

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.conftest import Lab

LIMIT = 10
ENGINE = "/var/tmp/limited-engine"


def as_nobody(lab: Lab, options: str) -> str:
    """What the engine's probe wakeup prints to an ordinary user with RLIMIT_RTPRIO."""
    probe = f"{ENGINE} wakeup --go --count=5 --memory-lock=off {options} || true"
    return lab.run_in(f"ulimit -r {LIMIT} && su -s /bin/sh nobody -c '{probe}'")


@pytest.mark.ci
def test_a_limit_on_the_priority_is_named_and_obeyed(lab: Lab, engine: Path) -> None:
    lab.boot("debian")
    with engine.open("rb") as program:
        copy = f"cat >{ENGINE} && chmod 755 {ENGINE}"
        good(rtgauge("lab", "shell", "debian", copy, env=lab.env, stdin=program, timeout=150))
    refused = ErrorLine.model_validate_json(as_nobody(lab, ""))
    line = explain(refused, lambda _paths: Files())
    assert f"RLIMIT_RTPRIO) is {LIMIT}" in line
    assert f"--priority {LIMIT}" in line
    measured = as_nobody(lab, f"--priority={LIMIT}").splitlines()
    assert json.loads(measured[-1]) == {"type": "end", "reason": "count", "status": 0}
