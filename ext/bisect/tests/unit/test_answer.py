# SPDX-License-Identifier: MIT
"""`rtgauge show` answers what a bisection asked, on the terminal and in its document."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.kept_records import of_search, printed


def test_a_bisection_says_the_same_in_both_forms(kept_records: Path) -> None:
    answer = of_search(json.loads(printed("show", kept_records / "bisect", "--json")))
    assert " ".join(printed("show", kept_records / "bisect").split()).startswith(" ".join(answer.split()))
