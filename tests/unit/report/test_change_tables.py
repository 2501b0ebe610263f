# SPDX-License-Identifier: MIT
"""What changed over a step, and quantities, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.record.facts import Facts, Kernel, Preemption, Processors, Virtualization
from rtgauge.record.model import Changes, NumberChange, Result, Step, TableLine, TextChange
from rtgauge.record.reader import Record
from rtgauge.report.change_tables import change_tables
from rtgauge.report.fact_rows import all_rows, short_rows, system_line
from rtgauge.report.hardware_table import hardware_tables
from rtgauge.report.text import quantity
from tests.support.messages import missing
from tests.support.records import Shape, write_record

if TYPE_CHECKING:
    from pathlib import Path

fields = st.sampled_from(["before", "after", "total", "per_cpu", "name"])
json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=8) | st.sampled_from(["before", "after", "total", "per_cpu", "name"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
kinds = st.text(max_size=5) | st.sampled_from(
    ["interrupts", "cpu_time_ns", "frequency_khz", "clock_source", "kernel", "cpu", "machine", "online"]
)


names = st.text(max_size=5)
growth = st.dictionaries(names, st.none() | st.integers(), max_size=3)
table_lines = st.just("unknown") | st.dictionaries(
    names, st.builds(TableLine, name=names, total=st.none() | st.integers(), per_cpu=growth), max_size=3
)
number_changes = st.dictionaries(
    names, st.builds(NumberChange, before=st.integers(), after=st.integers()), max_size=3
)
any_changes = st.builds(
    Changes,
    interrupts=table_lines,
    softirqs=table_lines,
    counters=st.dictionaries(names, st.just("unknown") | st.integers(), max_size=3),
    cpu_time_ns=st.dictionaries(names, growth, max_size=3),
    vmstat=growth,
    temperature_millicelsius=number_changes,
    frequency_khz=number_changes,
    energy_uj=growth,
    throttle_counts=growth,
    clock_source=st.none() | st.builds(TextChange, before=names, after=names),
    online_cpus=st.none() | st.builds(TextChange, before=names, after=names),
)


@pytest.fixture(scope="module", name="record")
def a_record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    return Record.open(write_record(tmp_path_factory.mktemp("runs"), Shape(loads=("idle",), seconds=1)))


def tables(record: Record, changes: Changes | None = None) -> dict[str, list[list[str]]]:
    step = record.steps[0] if changes is None else record.steps[0].model_copy(update={"changes": changes})
    return {table.title: table.rows for table in change_tables(step)}


def test_a_total_is_counted_once_and_its_cpus_are_named(record: Record):
    actual = tables(record)
    assert ["LOC Local timer interrupts", "12,130", "CPU 0: 6,010, CPU 1: 6,120"] in actual["Interrupts"]
    assert ["24 virtio0-net", "311", "CPU 1: 311"] in actual["Interrupts"]


def test_a_counter_that_went_backwards_stands_first(record: Record):
    assert tables(record)["Interrupts"][0] == ["ERR", "unknown", ""]


def test_before_and_after_are_shown_as_such(record: Record):
    actual = tables(record)
    assert actual["Frequency"] == [["0", "3 GHz → 3.4 GHz", ""]]
    assert actual["CPU time"][0] == ["user", "10,870 ms", "CPU 0: 5,430, CPU 1: 5,440"]


def test_unchanged_values_are_listed_in_one_note(record: Record):
    rests = {table.title: table.notes for table in change_tables(record.steps[0])}
    assert rests["Other"] == ["unchanged: Clock source tsc"]
    assert rests["Counters"] == ["unchanged: Processes created"]


def test_only_the_largest_are_listed_and_the_rest_is_counted(record: Record):
    step = record.steps[0].model_copy(update={"changes": Changes(vmstat={f"k{i}": i for i in range(1, 31)})})
    (table,) = change_tables(step)
    assert [row[1] for row in table.rows] == [str(n) for n in range(30, 18, -1)]
    assert table.notes == ["step.json also has 18 smaller changes"]


@given(any_changes)
def test_any_changes_can_be_shown(record: Record, actual: Changes):
    for rows in tables(record, actual).values():
        assert all(isinstance(cell, str) for row in rows for cell in row)


@given(st.dictionaries(kinds, json_like, max_size=4))
def test_any_facts_can_be_shown(actual: dict[str, Any]):
    facts = Facts.model_validate({"later": actual})
    rows = [*short_rows(facts), *all_rows(facts)]
    assert len(rows) >= 9
    assert all(isinstance(cell, str) for row in rows for cell in row)
    assert system_line("local", facts) == "local · nothing else is known about the machine"


@pytest.mark.parametrize(
    ("key", "item", "expected"),
    [
        ("cpu_share", 0.9826, ("CPU share", "98.26 %")),
        ("resident_bytes_max", 1_500_000_000, ("Resident max", "1.5 GB")),
        ("bits_per_second", 100e6, ("Rate", "100 Mbit/s")),
        ("measured_s", 3.607907, ("Measured", "3.608 s")),
        ("interval_ns", 1_000_000, ("Interval", "1ms")),
        ("min_khz", 800_000, ("Min", "800 MHz")),
        ("rt_runtime_us", 950_000, ("RT runtime", "950000 us")),
        ("round_mean_s", None, ("Round mean s", "unknown")),
        ("smt_active", False, ("SMT active", "no")),
        ("isolated", "", ("Isolated", "none")),
    ],
)
def test_a_quantity_has_its_unit(key: str, item: object, expected: tuple[str, str]):
    assert quantity(key, item) == expected


def test_facts_of_a_bare_machine():
    facts = Facts(
        host="pi",
        kernel=Kernel(release="6.12.0-rt", preemption=Preemption(model="rt")),
        cpu=Processors(online="0-3"),
        machine=Virtualization(virtual=False),
    )
    assert (
        system_line("local", facts) == "pi · Linux 6.12.0-rt · preemption rt · 4 CPUs · not a virtual machine"
    )


@pytest.fixture
def step(tmp_path: Path) -> Step:
    return Record.open(write_record(tmp_path)).steps[0]


def hardware_rows(step: Step, **changed: object) -> list[list[str]]:
    return [list(row) for table in hardware_tables(step.model_copy(update=changed)) for row in table.rows]


def test_how_other_cpus_interrupted_each_measured_cpu(step: Step) -> None:
    lines = {
        "RES": TableLine(name="Rescheduling interrupts", total=7, per_cpu={"0": 4, "1": 3}),
        "CAL": TableLine(name="Function call interrupts", total=20, per_cpu={"1": 20}),
        "TLB": TableLine(name="TLB shootdowns", total=None, per_cpu={"1": None}),
        "LOC": TableLine(name="Local timer interrupts", total=900, per_cpu={"0": 900}),
    }
    throttled = {
        "cpu1/thermal_throttle/core_throttle_count": 2,
        "cpu0/thermal_throttle/package_throttle_count": 1,
    }
    changes = Changes(
        interrupts=lines,
        frequency_khz={"0": NumberChange(before=3_000_000, after=3_400_000)},
        throttle_counts=dict(throttled),
    )
    counts = {"aperf": 10**9, "mperf": 2 * 10**9, "tsc": 3 * 10**9, "span_ns": 10**9}
    result = Result(name="frequency", labels={"cpu": 1}, values=dict(counts))
    assert hardware_rows(step, changes=changes, results=[result], cpus=[0, 1]) == [
        ["CPU 1", "3", "20", "–", "1.50 of 3.00", "3"],
        ["CPU 0", "4", "0", "0", "3.00 → 3.40", "1"],
    ]


def test_a_package_that_was_too_hot_once_counts_once(step: Step) -> None:
    """Each of its 256 CPUs has a copy of the counter."""
    packages = {f"cpu{cpu}/thermal_throttle/package_throttle_count": 1 for cpu in range(256)}
    changes = Changes(throttle_counts={**packages, "cpu0/thermal_throttle/core_throttle_count": 2})
    rows = hardware_rows(step, changes=changes, results=[], cpus=[*range(256)])
    assert len(rows) == 16
    assert [row[-1] for row in rows[:3]] == ["3", "1", "1"]


def test_what_is_unknown_is_no_zero(step: Step) -> None:
    assert hardware_rows(step, changes=Changes(interrupts="unknown"), results=[], cpus=[0]) == []
    unknown = Changes(interrupts="unknown", frequency_khz={"0": NumberChange(before=10**6, after=10**6)})
    assert hardware_rows(step, changes=unknown, results=[], cpus=[0]) == [
        ["CPU 0", "–", "–", "–", "1.00 → 1.00", "–"]
    ]


def test_the_highest_temperatures_come_first(step: Step) -> None:
    zones = [
        Result(name="temperature", labels={"zone": zone}, values={"max_millicelsius": peak, "readings": 3})
        for zone, peak in (
            ("thermal_zone0", 41_000),
            ("thermal_zone1 cpu-thermal", 84_600),
            ("thermal_zone2", None),
        )
    ]
    alone = {"results": zones, "changes": Changes(), "cpus": [0]}
    (table,) = hardware_tables(step.model_copy(update=alone))
    assert not missing(table.notes[-1], "thermal_zone1 cpu-thermal 85 C, thermal_zone0 41 C.")
    assert "thermal_zone2" not in table.notes[-1]


def test_work_that_got_slower_is_compared_with_idle(step: Step) -> None:
    def counted(load: str, cycles: int, misses: int) -> Step:
        values = {"cycles": cycles, "instructions": 10**6, "llc_misses": misses, "span_ns": 1}
        result = Result(name="instructions", labels={"cpu": 0}, values=dict(values))
        key = step.key.model_copy(update={"load": load})
        return step.model_copy(update={"key": key, "results": [result], "cpus": [0]})

    idle, loaded = counted("idle", 10**6, 1000), counted("memory", 3 * 10**6, 9000)
    (table,) = hardware_tables(loaded, "memory", [idle, loaded])
    assert table.title == "Hardware, memory"
    assert table.rows[0][-2:] == ["3.00", "9.00"]
    assert not missing(table.notes[-1], "CPU 0", "idle", "3.0 times as many cycles", "1.0 → 9.0", "cache")
    (table,) = hardware_tables(idle, "idle", [idle, loaded])
    assert not [note for note in table.notes if "compared" in note]
