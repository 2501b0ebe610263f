# SPDX-License-Identifier: MIT
"""What a probe of another distribution simulates moves on the live page."""

from __future__ import annotations

from pathlib import Path

from tests.unit.probe.test_registered_probes import with_package

USE = """
from rtgauge.plan.make_plan import Overrides
from rtgauge.record.stream import parse_line
from rtgauge.study.study_registry import adaptive_study
from rtgauge_ext.live.live_progress import _moving, _views

(key,) = adaptive_study("toy-search", Overrides()).plan().steps
moving = _moving(key)
print(moving.view, moving.message(1, parse_line(b'{"type":"frame","x":7}')), [view for view in _views() if "toy" in view])
"""


def test_what_moves_is_the_probes_own(tmp_path: Path) -> None:
    used = with_package(tmp_path, "toys.probe:PROBE", USE)
    assert used.stdout.splitlines() == ["toy b'\\x01\\x07' ['views.toy = {};']"]
