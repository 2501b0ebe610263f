# SPDX-License-Identifier: MIT
"""`rtgauge resume` takes this extension's options only for its own records."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.verdict.test_gate_record import check_not_for_a_gate


@pytest.mark.parametrize("words", ["--live"])
def test_they_are_refused_for_a_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    check_not_for_a_gate(tmp_path, monkeypatch, capsys, words)
