# SPDX-License-Identifier: MIT
"""What a record says of a session on another machine is taken only where it is whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.runner.resume_state import program_folders, read_step_state
from rtgauge.target.ssh import Session

SESSION = {"run_id": "r", "folder": "/tmp/rtgauge-1", "machine": "x86_64", "guard_pid": 7, "boot_id": "b", "lease_ns": 10}
PLACE = {"folder": "/tmp/rtgauge-1/program-1", "pid": 8}
PART = {"kept": {"folder": "/tmp/rtgauge-1/program-2", "pid": 9}, "argv": ["a"], "wanted": {}, "notes": [], "pids": [1], "cpu_ticks_begin": None}
KEPT = {
    "key": "{}",
    "started": "2026-11-21T10:00:00Z",
    "before": {"/proc/stat": {"text": "x"}},
    "program": PLACE,
    "files": None,
    "load": {"started_ns": 1, "warm_ns": 2, "begin_ns": 3, "parts": [PART]},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


def test_whole_ones_are_taken() -> None:
    session = Session.from_json(json.loads(json.dumps(SESSION)))
    assert session is not None
    assert session.folder == "/tmp/rtgauge-1"
    kept = read_step_state(json.loads(json.dumps(KEPT)))
    assert kept == KEPT
    assert program_folders(kept) == [PLACE["folder"], "/tmp/rtgauge-1/program-2"]
    assert program_folders(None) == []


@pytest.mark.parametrize("name", SESSION)
@given(value=JSON)
def test_a_session_with_a_wrong_part_is_none(name: str, value: Any) -> None:
    found = Session.from_json({**SESSION, name: value})
    assert found is None or type(value) is type(SESSION[name])
    assert Session.from_json({key: value for key, value in SESSION.items() if key != name}) is None


@given(JSON)
def test_anything_else_is_none(found: Any) -> None:
    assert Session.from_json(found) is None
    assert read_step_state(found) is None


@pytest.mark.parametrize("name", KEPT)
@given(value=JSON)
def test_a_step_with_a_wrong_part_is_none(name: str, value: Any) -> None:
    kept = read_step_state({**KEPT, name: value})
    assert (
        kept is None
        or (name in {"key", "started", "files"} and isinstance(value, str | None))
        or (name == "before" and isinstance(value, dict))
        or name == "load"
    )
