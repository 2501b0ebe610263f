# SPDX-License-Identifier: MIT
"""`rtgauge advise` says the same on the terminal and in its document."""

from __future__ import annotations

import json

from tests.support.kept_records import printed


def test_advice_says_the_same_in_both_forms() -> None:
    words = ("advise", "--require", "period=1ms hardness=95%")
    document = json.loads(printed(*words, "--json"))
    assert " ".join(printed(*words).split()).startswith(document["answer"])
