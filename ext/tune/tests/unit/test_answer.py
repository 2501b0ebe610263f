# SPDX-License-Identifier: MIT
"""`rtgauge show` answers what a tuning asked, on the terminal, in its document and on its page."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.kept_records import of_run, printed
from tests.support.messages import missing


def test_a_tuning_says_the_same_in_both_forms(kept_records: Path) -> None:
    answer = of_run(json.loads(printed("show", kept_records / "tune", "--json")))
    assert " ".join(printed("show", kept_records / "tune").split()).startswith(" ".join(answer.split()))


def test_show_prints_the_result_of_a_tuning(kept_records: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert printed("show", kept_records / "tune").startswith("CANNOT TELL")
    assert printed("show", kept_records / "tune", "--page", page).startswith("CANNOT TELL")
    text = page.read_text()
    assert "<title>Tuning" in text
    assert "cannot tell" in text.lower()


def test_a_tuning_groups_what_made_it_late_by_mechanism(kept_records: Path) -> None:
    shown = " ".join(printed("show", kept_records / "tune").split())
    assert not missing(shown, "could not be preempted (python, stress-ng-hdd)", "timer late")
