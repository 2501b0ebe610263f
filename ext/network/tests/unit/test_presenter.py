# SPDX-License-Identifier: MIT
"""What is said about the cycles and the parts of a response."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any, cast

from tests.support.messages import missing

from rtgauge.record.model import Result
from rtgauge_ext.network.path_presenter import (
    OUTCOMES,
    clock_figure,
    clock_grid,
    clock_of,
    clock_words,
    cycle_words,
    cycles_grid,
    parts_figure,
    parts_grid,
)

PARTS_NS = {"wake-up": 5_000, "send": 4_000, "wire-and-device": 80_000, "receive": 11_000}


def step(path: str = "icmp:10.0.0.1", parts: dict[str, int] | None = None, **counts: int) -> Any:
    values: dict[str, Any] = {name: counts.get(name.replace("-", "_"), 0) for name in OUTCOMES}
    values |= {"cycles": sum(values.values()), "duplicate": counts.get("duplicate", 0), "foreign": 0}
    series = [
        SimpleNamespace(
            metric="response",
            labels={"segment": name},
            count=10,
            min_ns=value // 2,
            p50_ns=value,
            mean_ns=float(value),
            p99_ns=2 * value,
            max_ns=3 * value,
        )
        for name, value in (parts or {}).items()
    ]
    key = SimpleNamespace(parameters={"path": path, "interval_ns": 1_000_000})
    result = Result(name="path", labels={}, values=values)
    return cast("Any", SimpleNamespace(id="1", key=key, results=[result], series=series))


def test_a_sentence_about_the_cycles() -> None:
    assert cycle_words(step(answered=1000)) == "10.0.0.1: 1,000 cycles, all answered in time"
    words = cycle_words(step("udp:board:7", answered=7, lost=2, not_sent=1, duplicate=3))
    assert not missing(words, "board:7: 10 cycles", "7 answered in time", "2 lost", "1 not sent", "3 answers")
    assert cycle_words(step("ethercat:eth1")) == "the EtherCAT slaves on eth1: 0 cycles"
    chain = step("ethercat:eth1", answered=9)
    for least, words in ((3, "3 slaves"), (2, "3 slaves, but only 2 in some cycles")):
        chain.results[0].values.update({"slaves-least": least, "slaves-most": 3})
        text = f"the EtherCAT slaves on eth1: 9 cycles, all answered in time; {words}"
        assert cycle_words(chain) == text


def test_a_step_without_counts_says_nothing() -> None:
    empty = step()
    empty.results = []
    assert cycle_words(empty) is None
    assert cycles_grid([empty], {"1": "idle"}) is None
    assert parts_grid([empty], {"1": "idle"}) is None
    assert parts_figure([empty], {"1": "idle"}) is None


def with_clock(period_ns: float, slips: list[int], more: int = 0, parts: int = 1) -> Any:
    made = step(answered=1000)
    values: dict[str, Any] = {"period-ns": period_ns, "per-interval": parts, "slips": len(slips) + more}
    made.results.append(Result(name="device-clock", values=values))
    made.results += [
        Result(name="slip", labels={"slip": number + 1}, values={"cycle": cycle})
        for number, cycle in enumerate(slips)
    ]
    return made


def test_a_device_with_a_clock_of_its_own() -> None:
    slower = with_clock(1_000_500, [1110, 3115])
    words = clock_words(slower) or ""
    assert not missing(
        words, "every 1,000.500 us", "500.0 ppm slower", "every 2,001 cycles", "cycle 1,110, 3,115", "shorter"
    )
    grid = clock_grid([slower], {"1": "idle"})
    assert grid is not None
    assert [row[1] for row in grid.rows] == ["1,000.500", "500.0 ppm slower", "2,001", "1,110, 3,115"]
    faster = with_clock(249_900, [400], more=30, parts=4)
    assert clock_of(faster) is not None
    words = clock_words(faster) or ""
    assert not missing(
        words, "every 249.900 us", "400.0 ppm faster", "every 625 cycles", "cycle 400, ...", "longer"
    )


def test_a_figure_of_the_sawtooth() -> None:
    slower = with_clock(1_000_500, [1110])
    assert clock_figure([slower], {"1": "idle"}) is None  # a record without the parts of a beat
    slower.results += [
        Result(
            name="beat",
            labels={"part": part},
            values={
                "cycles-after-slip": 100.5 * part,
                "min-ns": 1_000,
                "mean-ns": part * 2_000,
                "max-ns": 9_000,
            },
        )
        for part in (1, 2)
    ]
    figure = clock_figure([slower], {"1": "idle"})
    assert figure is not None
    assert not missing(figure.description, "wire", "device", "2.0 us to 4.0 us", "every 2,001 cycles")
    (text,) = figure.specs[0]["datasets"].values()
    rows = [[float(cell) for cell in line.split(",")] for line in io.StringIO(text).readlines()[1:]]
    assert rows == [[100.5, 1, 2, 9], [201, 1, 4, 9]]


def test_a_device_that_answers_at_once_has_no_clock() -> None:
    assert clock_words(step(answered=1)) is None
    assert clock_grid([step(answered=1)], {"1": "idle"}) is None


def test_the_side_of_each_part() -> None:
    for card, sides in (
        ({}, ["self", "self", "card, wire or device", "self"]),
        ({"card": 3_000}, ["self", "self", "wire or device", "card", "self"]),
    ):
        grid = parts_grid([step(parts={**PARTS_NS, **card}, answered=10)], {"1": "idle"})
        assert grid is not None
        assert [row[1] for row in grid.rows] == sides
        assert ("untested on hardware" in grid.notes[0]) == bool(card)


def test_tables_and_a_figure_of_the_parts() -> None:
    shown = step(parts=PARTS_NS, answered=10)
    grid = parts_grid([shown], {"1": "idle"})
    assert grid is not None
    assert [row[0] for row in grid.rows] == ["wake-up", "send", "wire and device", "receive"]
    assert grid.rows[2][1:] == ["card, wire or device", "10", "40.0", "80.0", "160.0", "240.0"]
    cycles = cycles_grid([shown], {"1": "idle"})
    assert cycles is not None
    assert cycles.rows[:2] == [["all", "10"], ["answered in time", "10"]]
    assert [row[1] for row in cycles.rows[2:]] == ["0"] * 5
    figure = parts_figure([shown], {"1": "idle"})
    assert figure is not None
    (text,) = figure.specs[0]["datasets"].values()
    means = [line.split(",") for line in io.StringIO(text) if line.startswith("mean")]
    assert [(part, float(low), float(high)) for _, part, low, high in means] == [
        ("wake-up", 0, 5),
        ("send", 5, 9),
        ("wire and device", 9, 89),
        ("receive", 89, 100),
    ]
