# SPDX-License-Identifier: MIT
"""Real outputs of other tools (tests/data/captured) import to the numbers that they hold, which each test
reads in a way of its own.

What was run:
    cyclictest -t2 -p80 -m -i1000 -l1000 -h30 -q --json=F; cyclicdeadline -i 10000 -D 2; oslat -c 0,1 -b 64 -z
    -D 2
    pmqtest|ptsematest -S -p80 -i1000 -l500 -q; sigwaittest|svsematest -t2 -p80 -i1000 -l500; signaltest -p80
    -t2 -l1000 -q
    rt-migrate-test -l 20 -q; pi_stress --duration=3 -q
    latency -T 3 -p 1000 -h; latency -T 3 -p 1000 -g F; latency -T 2 -p 1000 -q -s; rteval --noload -d 5
"""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from rtgauge.record.model import Step
from rtgauge.record.reader import Record
from rtgauge_ext.importers.imported_record import import_file
from rtgauge_ext.importers.registry import importer_of

FOLDER = Path(__file__).parents[4] / "tests" / "data" / "captured"
FORMATS = {"rteval-summary.xml": "rteval", "xenomai-g.txt": "xenomai-gnuplot"}
PAIRS = ["pmqtest", "ptsematest", "sigwaittest", "svsematest"]
ALONE = ["cyclicdeadline", "signaltest", "cyclictest-overflow"]


def imported(name: str, tmp_path: Path) -> tuple[Record, Step]:
    record = Record.open(import_file(FOLDER / name, tmp_path))
    (step,) = record.steps
    return record, step


def document(name: str) -> dict:
    return json.loads((FOLDER / f"{name}.json").read_text())


def marks(step: Step) -> set[str]:
    return {mark.name for mark in step.marks}


@pytest.mark.parametrize(
    "source", sorted(path for path in FOLDER.iterdir() if path.suffix != ".md"), ids=lambda path: path.name
)
def test_each_is_found_by_its_content(source):
    by_suffix = "rt-tests" if source.suffix == ".json" else source.name.partition("-")[0]
    assert importer_of(source).name == FORMATS.get(source.name, by_suffix)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_rt_tests(name, tmp_path):
    record, step = imported(f"{name}.json", tmp_path)
    pairs = list(document(name)["thread"].values())
    assert [series.count for series in step.series] == [pair["sender"]["samples"] for pair in pairs]
    for figure in ("min", "max"):
        assert [getattr(series, f"{figure}_ns") for series in step.series] == [
            1000 * pair["receiver"][figure] for pair in pairs
        ]
    assert [series.mean_ns for series in step.series] == pytest.approx(
        [1000 * pair["receiver"]["avg"] for pair in pairs]
    )
    assert (step.key.probe, step.started) == (name, document(name)["start_time"] and step.started)
    assert record.systems["board"].kernel.release == "6.18.44"


@pytest.mark.parametrize("name", ALONE)
def test_threads_of_rt_tests(name, tmp_path):
    _, step = imported(f"{name}.json", tmp_path)
    threads = list(document(name)["thread"].values())
    for series, thread in zip(step.series, threads, strict=True):
        assert (series.count, series.min_ns, series.max_ns) == (
            thread["cycles"],
            1000 * thread["min"],
            1000 * thread["max"],
        )
        # cyclictest's mean is of every sample, and so is the importer's where the histogram has all of them.
        assert series.mean_ns == pytest.approx(1000 * thread["avg"], abs=10)
    above = sum(thread["cycles"] - sum(thread.get("histogram", {}).values()) for thread in threads)
    details = [mark.detail for mark in step.marks if mark.name == "histogram-overflow"]
    assert (f"{above} samples lie above" in details[0]) if name == "cyclictest-overflow" else not details


def test_oslat(tmp_path):
    _, step = imported("oslat.json", tmp_path)
    (thread,) = document("oslat")["thread"].values()
    (series,) = step.series
    assert (series.labels, series.count) == ({"cpu": thread["cpu"]}, sum(thread["histogram"].values()))
    assert series.max_ns == pytest.approx(1000 * thread["max"], abs=1000)
    assert series.mean_ns == pytest.approx(1000 * thread["avg"], rel=1e-3)
    assert {"last-bin-clipped", "loop-in-first-bin"} <= marks(step)


def test_results_that_are_no_distribution(tmp_path):
    _, step = imported("pi_stress.json", tmp_path / "pi")
    assert step.results[0].values == {"inversions": document("pi_stress")["inversion"]}
    _, step = imported("rt-migrate-test.json", tmp_path / "migrate")
    threads = document("rt-migrate-test")["thread"].values()
    assert [(result.labels["priority"], result.values["max_us"]) for result in step.results] == [
        (thread["prio"], thread["max"]) for thread in threads
    ]


def test_xenomai_histogram(tmp_path):
    text = (FOLDER / "xenomai-h.txt").read_text()
    _, step = imported("xenomai-h.txt", tmp_path)
    (series,) = step.series
    cells = {int(at): int(count) for at, count in re.findall(r"HSD\| +avg\| +(\d+) - *\d+ \| +(\d+)", text)}
    low, high = (
        round(1000 * float(value))
        for value in re.search(r"RTS\| +([\d.]+)\| +[\d.]+\| +([\d.]+)", text).groups()
    )
    assert (series.count, series.min_ns, series.max_ns) == (sum(cells.values()), low, high)
    assert (series.count, step.key.parameters.get("interval_ns"), step.key.parameters.get("priority")) == (
        2938,
        1_000_000,
        99,
    )
    below = 0
    for cell, count in sorted(cells.items()):
        below += count
        if below * 2 >= series.count:
            assert cell * 1000 <= series.p50_ns < (cell + 1) * 1000
            break
    assert "last-bin-clipped" in marks(step), "the largest, 369 us, is in the last of 300 cells of 1 us"


def test_xenomai_histogram_has_a_second_that_its_extremes_do_not(tmp_path):
    text = (FOLDER / "xenomai-g.txt").read_text()
    _, step = imported("xenomai-g.txt", tmp_path)
    (series,) = step.series
    cells = [
        (float(value), int(count) - 1) for value, count in re.findall(r"^([\d.]+) (\d+)$", text, re.MULTILINE)
    ]
    assert series.count == sum(count for _, count in cells)
    assert series.min_ns == 1000 * math.floor(cells[1][0]) < 18_036, (
        "the cell of the smallest is below the minimum that is told"
    )
    assert series.max_ns == 3_557_281
    assert {"extremes-of-whole-seconds", "counts-plus-one"} <= marks(step)


def test_xenomai_without_its_table(tmp_path):
    _, step = imported("xenomai-q.txt", tmp_path)
    (series,) = step.series
    assert (series.count, series.min_ns, series.max_ns) == (1938, 18_314, 262_308)
    assert "no-histogram" in marks(step)


def test_rteval(tmp_path):
    record, step = imported("rteval-summary.xml", tmp_path)
    (core,) = ET.parse(FOLDER / "rteval-summary.xml").getroot().iter("core")  # noqa: S314 - ours
    buckets = {int(bucket.get("index")): int(bucket.get("value")) for bucket in core.iter("bucket")}
    (series,) = step.series
    assert series.labels == {"cpu": int(core.get("id"))}
    assert series.count == int(core.findtext("statistics/samples")) == sum(buckets.values())
    assert (series.min_ns, series.max_ns) == tuple(
        1000 * int(core.findtext(f"statistics/{name}")) for name in ("minimum", "maximum")
    )
    assert series.mean_ns == pytest.approx(1000 * float(core.findtext("statistics/mean")), rel=1e-3)
    assert series.p50_ns // 1000 == int(float(core.findtext("statistics/median")))
    assert step.key.parameters.get("interval_ns") == 1_000_000
    assert step.total.missed == 0
    assert record.systems["board"].kernel.release == "6.18.44"
