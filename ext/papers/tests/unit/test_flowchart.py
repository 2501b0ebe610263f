# SPDX-License-Identifier: MIT
"""The flowchart's file: what it says, and what is refused."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtgauge.errors import InputError
from rtgauge_ext.papers.advise.flowchart_file import (
    Flowchart,
    load_flowchart,
    parse_flowchart,
)

if TYPE_CHECKING:
    from pathlib import Path

TEXT = (resources.files("rtgauge_ext.papers.advise") / "flowchart.toml").read_text(encoding="utf-8")
PUBLISHED = {
    "user-stock": ([67, 307, 17227], [-2, 69, 1205]),
    "user-rt": ([99, 157, 796], [-1, 47, 158]),
    "xenomai-user": ([26, 59, 90], [-1, 34, 57]),
    "kernel-module": ([7, 16, 597], [0, 17, 504]),
    "xenomai-kernel": ([9, 18, 37], [-1, 23, 41]),
}


def route(chart: str, hardness, words) -> list[str]:
    """The ways that a chart leads over, when what is measured of each is one of `words`."""
    flowchart, chosen = load_flowchart(chart)
    at = chosen.start[hardness]
    ways = [at]
    for word in words:
        if flowchart.of(at).kernel == "none":
            break
        at = chosen.after(hardness, at, word)
        ways.append(at)
    return ways


def test_what_was_published_is_what_the_file_says():
    flowchart, _ = load_flowchart("today")
    for way, (response, periodic) in PUBLISHED.items():
        assert flowchart.of(way).published == {"response": response, "periodic": periodic}


@pytest.mark.parametrize(
    ("chart", "hardness", "words", "ways"),
    [
        ("brown2010", "100%", ["marginal"] * 3, ["xenomai-user", "xenomai-kernel", "dedicated"]),
        (
            "brown2010",
            "95%",
            ["marginal"] * 5,
            ["user-stock", "user-rt", "xenomai-user", "kernel-module", "dedicated"],
        ),
        (
            "brown2010",
            "95%",
            ["in trouble"] * 5,
            ["user-stock", "xenomai-user", "kernel-module", "dedicated"],
        ),
        ("brown2010", "95%", ["off the map"], ["user-stock", "dedicated"]),
        ("today", "100%", ["in trouble"] * 4, ["user-rt", "xenomai-user", "xenomai-kernel", "dedicated"]),
        (
            "today",
            "95%",
            ["in trouble"] * 5,
            ["user-stock", "user-rt", "xenomai-user", "kernel-module", "dedicated"],
        ),
        ("today", "100%", ["off the map"], ["user-rt", "dedicated"]),
    ],
)
def test_the_charts_lead_where_figure_6_leads(chart, hardness, words, ways):
    assert route(chart, hardness, words) == ways


def test_each_way_of_the_paper_has_its_costs():
    flowchart, _ = load_flowchart("today")
    assert all(way.costs for way in flowchart.way)
    assert "custom kernel" in " ".join(flowchart.of("user-rt").costs)
    assert "driver" in " ".join(flowchart.of("xenomai-user").costs)
    assert "mainline since Linux 6.12" in " ".join(flowchart.of("user-rt").today)


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ('marginal = "user-rt"', 'marginal = "user-rtt"', "leads to the unknown way 'user-rtt'"),
        ('kernel = "none"', 'kernel = "stock"', "which ends the chart"),
        ("black = 0.8", "black = 1.8", "black"),
        ("trouble = 20.0", "trouble = 1.5", "must not be below marginal"),
        ("black = 0.8", "blakc = 0.8", "thresholds.black"),
        (
            'start = { "95%" = "user-stock", "100%" = "xenomai-user" }',
            'start = { "95%" = "user-stock" }',
            "give a start",
        ),
        (
            'at = "user-rt"\nmarginal = "xenomai-user"',
            'at = "user-rt"\nmarginal = "user-stock"',
            "in a circle: user-stock -> user-rt -> user-stock",
        ),
        ("[thresholds]", "[thresholds", "is not TOML"),
        ('id = "user-rt"\nname', 'id = "user-stock"\nname', "2 ways have the id 'user-stock'"),
    ],
)
def test_a_file_that_is_wrong_is_refused_and_the_error_says_why(old: str, new: str, reported: str):
    assert old in TEXT
    with pytest.raises(InputError) as error:
        parse_flowchart(TEXT.replace(old, new, 1), "chart x.toml")
    assert reported in str(error.value)
    assert "chart x.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_chart_that_is_not_there_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="brown2010"):
        load_flowchart("brown201")
    with pytest.raises(InputError, match="cannot be read"):
        load_flowchart("nowhere.toml")


def test_a_file_of_ones_own_is_taken(tmp_path: Path):
    own = tmp_path / "own.toml"
    own.write_text(TEXT.replace("marginal = 2.0", "marginal = 3.0", 1), encoding="utf-8")
    flowchart, chart = load_flowchart(str(own))
    assert flowchart.thresholds.marginal == 3
    assert chart.id == "today"


@settings(max_examples=100)
@given(at=st.integers(0, len(TEXT)), junk=st.text(max_size=20), cut=st.integers(0, 200))
def test_hostile_text_is_a_flowchart_or_one_line(at: int, junk: str, cut: int):
    try:
        assert isinstance(parse_flowchart(TEXT[:at] + junk + TEXT[at + cut :], "it"), Flowchart)
    except InputError as error:
        assert "\n" not in str(error)


@settings(max_examples=60)
@given(
    count=st.integers(1, 40),
    data=st.data(),
)
def test_every_chart_that_is_taken_comes_to_an_end(count: int, data: st.DataObject):
    """Random charts: refused for a circle, or every walk over them ends; also where a chart has very many
    ways through it.
    """
    pick = st.integers(0, count)
    ways = "".join(
        f'[[way]]\nid = "w{n}"\nname = "w"\nkernel = "{"none" if n == count else "stock"}"\nspace = '
        '"user"\ncosts = []\n'
        for n in range(count + 1)
    )
    branches = ""
    for n in range(count):
        forward = data.draw(st.booleans())
        low = n + 1 if forward else 0
        marginal, trouble = (max(low, data.draw(pick)) for _ in range(2))
        branches += (
            f'[[chart.branch]]\nhardness = "95%"\nat = "w{n}"\nmarginal = "w{marginal}"\ntrouble = '
            f'"w{trouble}"\n'
        )
    head = "[thresholds]\nblack = 0.8\nmarginal = 2.0\ntrouble = 20.0\n"
    chart = (
        f'[[chart]]\nid = "c"\nname = "c"\nabout = "c"\nstart = {{ "95%" = "w0", "100%" = "w0" '
        f'}}\noff-the-map = "w{count}"\n'
    )
    try:
        actual = parse_flowchart(head + ways + chart + branches, "it")
    except InputError as error:
        assert "circle" in str(error)
        return
    at, steps = "w0", 0
    while actual.of(at).kernel != "none":
        at, steps = (
            actual.chart[0].after("95%", at, data.draw(st.sampled_from(["marginal", "in trouble"]))),
            steps + 1,
        )
        assert steps <= count
