# SPDX-License-Identifier: MIT
"""Points of a program, as they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.probe.points import ENGINE, ProgramPoint, parse_points, point_events, point_options
from rtgauge.probe.watch import PROBE, WatchParameters

TWO = "read=/opt/control:control::Loop::read(int, double)\nend=/lib/libio.so:usdt:io:done"


def test_points_have_names_programs_and_symbols() -> None:
    assert parse_points(TWO) == [
        ProgramPoint("read", "/opt/control", "control::Loop::read(int, double)"),
        ProgramPoint("end", "/lib/libio.so", "usdt:io:done"),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("read=/opt/control:read", "give 2 to 16 points"),
        ("a=/b:c\na=/b:d", "two points are named a"),
        ("a=/b:c\nread", "is not a point"),
        ("a=/b:c\nb=/opt/control", "is not a point"),
        ("a=/b:c\nB=/b:d", "is not a point"),
        ("a=/b:c\nb=control:d", "is not the whole path"),
        ("a=/b:c\nb=/my control:d", "is not the whole path"),
        ("a=/b:c\nb=/b:\x1b", "is not the whole path"),
        ("\n".join(f"a{at}=/b:c" for at in range(17)), "give 2 to 16 points"),
    ],
)
def test_other_texts_are_refused_with_what_to_give(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_points(text)


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        points = parse_points(text)
    except ValueError:
        return
    assert 2 <= len(points) <= 16


def test_each_point_has_an_event_and_each_part_a_name() -> None:
    events, options = point_events(TWO), point_options(TWO)
    *names, cost = events
    assert options == {"points": ",".join(names), "parts": "read", "point_cost": cost}
    assert events[cost] == (ENGINE, "")
    assert point_events(None) == point_options(None) == {}


def test_the_engine_gets_the_events_instead_of_the_points() -> None:
    parameters = WatchParameters.model_validate({"pid": 1, "points": TWO})
    words = PROBE.arguments(parameters, None)
    assert not any("control" in word for word in words)
    assert "--parts=read" in words
    assert not any(word.startswith("--points") for word in PROBE.trial_arguments(parameters))
