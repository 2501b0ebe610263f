# SPDX-License-Identifier: MIT
"""Changes a document of TOML in one to three places, and checks that it is taken or refused soon."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from rtgauge.errors import InputError
from tests.support.mutated_text import places

EXAMPLES = 3_000 if os.environ.get("RTGAUGE_NIGHTLY") else 150
HOSTILE = st.one_of(
    st.booleans(),
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=10),
    st.sampled_from(
        [
            "100us",
            "0s",
            "-1ms",
            "1e9d",
            "0-",
            "0-99999",
            "local",
            "ssh://",
            "lab:",
            "\x1b[2J",
            "\0",
            "a" * 10_000,
            "papers",
            "all",
            "idle",
            "M",
            "1/0",
        ]
    ),
    st.sampled_from(
        [[], {}, [[]], [{}], {"": {}}, ["idle", "cpu"] * 50, [1, "x"], {"name": []}, list(range(300))]
    ),
)


def mutated_document(document: dict[str, Any], data: st.DataObject) -> dict[str, Any]:
    """The document with one to three keys changed, added or removed."""
    document = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        inside = [place for place in places(document) if place]
        if not inside:
            break
        place = data.draw(st.sampled_from(inside))
        inner = document
        for key in place[:-1]:
            inner = inner[key]
        if data.draw(st.booleans()) or not isinstance(inner, dict):
            inner[place[-1]] = copy.deepcopy(data.draw(HOSTILE))
        elif data.draw(st.booleans()):
            inner[data.draw(st.text(max_size=8))] = copy.deepcopy(data.draw(HOSTILE))
        else:
            del inner[place[-1]]
    return document


def check_taken_or_refused(check: Callable[[Any], object], written: Any) -> None:
    """It is taken, or refused by an InputError of one line, within 10 s."""
    started = time.process_time()
    try:
        check(written)
    except InputError as error:
        assert "\n" not in str(error)
    assert time.process_time() - started < 10
