# SPDX-License-Identifier: MIT
"""A part of bench/hostile_records.py: records of real runs, changed with their checksums computed again, are
shown or refused in one line by every command.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rtgauge.record.reader import Record
from tests.support.hostile import Hostile

NUMBER = 10_000 if os.environ.get("RTGAUGE_NIGHTLY") else 250


def test_changed_records_are_shown_or_refused(tmp_path: Path) -> None:
    hostile = Hostile(tmp_path, seed=1)
    faults = [
        f"{number} {outcome.words} {outcome.changed}: {outcome.fault}"
        for number in range(NUMBER)
        if (outcome := hostile.try_change(number)).fault is not None
    ]
    hostile.check_around()
    assert faults == []


def test_it_sees_what_it_looks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that writes elsewhere, or that ends in a traceback."""
    hostile = Hostile(tmp_path, seed=1)
    (record, *_) = sorted(
        path for path in (tmp_path / "bases").iterdir() if path.name.startswith("systems-01")
    )
    elsewhere = tmp_path / "elsewhere.html"
    hostile.check_around()
    hostile.run(("export", str(record), "--format", "json", "-o", str(elsewhere)), "nothing")
    with pytest.raises(AssertionError):
        hostile.check_around()
    assert hostile.run(("export", str(record), "--format", "json"), "nothing").fault is None
    monkeypatch.setattr(Record, "open", lambda _: {}["x"])
    assert "KeyError" in (hostile.run(("export", str(record), "--format", "json"), "nothing").fault or "")
