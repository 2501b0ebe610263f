# SPDX-License-Identifier: MIT
from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.record.model import Changes, Result, Severity
from rtgauge.system.step_changes import CHANGE_PATHS, changes, marks
from rtgauge.target.file_batch import Files
from rtgauge.target.local import read_local
from tests.unit.system.machines import CLOCK, CPU, texts

INTERRUPTS = """            CPU0       CPU2
  0:         {timer}          0   IO-APIC   2-edge      timer
 24:          1          {wrapped}   PCI-MSI 32768-edge      eth0
LOC:      {loc0}      {loc2}   Local timer interrupts
ERR:          {err}
 77:          0          0   dead      nobody
"""
SOFTIRQS = """                    CPU0       CPU2
       TIMER:      {0}      4
      NET_RX:          1          2
"""
STAT = """cpu  0 0 0 0 0 0 0 0 0 0
cpu0 {user} 0 0 {idle} 0 0 0 {steal} 0 0
cpu2 5 0 0 {idle} 0 0 0 0 0 0
intr 100 1 2 3
ctxt {ctxt}
btime 1
processes 50
"""


def before() -> dict[str, dict[str, Any]]:
    return texts(
        {
            "/proc/interrupts": INTERRUPTS.format(timer=7, wrapped=4294967290, loc0=1000, loc2=2000, err=0),
            "/proc/softirqs": SOFTIRQS.format(10),
            "/proc/stat": STAT.format(user=10, idle=1000, steal=2, ctxt=500),
            "/proc/vmstat": "nr_free_pages 100\npgfault 10\npswpin 1\npswpout 1\nthp_fault_alloc 0\n",
            f"{CLOCK}/current_clocksource": "tsc\n",
            f"{CPU}/online": "0,2\n",
            "/sys/class/thermal/thermal_zone0/temp": "41000\n",
            "/sys/class/thermal/thermal_zone0/type": "x86_pkg_temp\n",
            f"{CPU}/cpu2/cpufreq/scaling_cur_freq": "800000\n",
            f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "3\n",
            f"{CPU}/cpu2/thermal_throttle/package_throttle_count": "3\n",
        }
    )


def changed(files: dict[str, str]) -> Changes:
    return changes(before(), before() | texts(files))


def test_nothing_changed() -> None:
    report = changes(before(), before())
    assert marks(report, [0, 2]) == []
    report = report.model_dump()
    assert report["interrupts"] == {}
    assert report["softirqs"] == {}
    assert report["counters"] == {"context_switches": 0, "interrupts": 0, "processes_created": 0}
    assert report["vmstat"] == {}
    assert report["throttle_counts"] == {}


def test_what_changed_by_cpu() -> None:
    actual = changed(
        {
            "/proc/interrupts": INTERRUPTS.format(timer=7, wrapped=5, loc0=1500, loc2=2001, err=2),
            "/proc/softirqs": SOFTIRQS.format(13),
            "/proc/stat": STAT.format(user=15, idle=2000, steal=2, ctxt=900),
            "/proc/vmstat": "nr_free_pages 1\npgfault 30\npswpin 1\npswpout 1\nthp_fault_alloc 4\n",
            "/sys/class/thermal/thermal_zone0/temp": "55000\n",
            f"{CPU}/cpu2/cpufreq/scaling_cur_freq": "3600000\n",
        }
    ).model_dump()
    assert actual["interrupts"] == {
        "24": {"name": "PCI-MSI 32768-edge eth0", "total": None, "per_cpu": {"2": None}},
        "LOC": {"name": "Local timer interrupts", "total": 501, "per_cpu": {"0": 500, "2": 1}},
        "ERR": {"name": "", "total": 2, "per_cpu": {}},
    }
    assert actual["softirqs"] == {"TIMER": {"name": "", "total": 3, "per_cpu": {"0": 3}}}
    assert actual["counters"]["context_switches"] == 400
    assert actual["cpu_time_ns"]["0"]["user"] == 50_000_000
    assert actual["cpu_time_ns"]["2"]["idle"] == 10**10
    assert actual["vmstat"] == {"pgfault": 20, "thp_fault_alloc": 4}
    assert actual["temperature_millicelsius"] == {
        "thermal_zone0 x86_pkg_temp": {"before": 41000, "after": 55000}
    }
    assert actual["frequency_khz"] == {"2": {"before": 800000, "after": 3600000}}


def test_what_cannot_be_read_is_unknown() -> None:
    report = changes(Files(), Files())
    assert report.interrupts == report.softirqs == report.counters["context_switches"] == "unknown"
    assert marks(report, [0]) == []


@pytest.mark.parametrize(
    ("files", "name", "severity"),
    [
        ({"/proc/stat": STAT.format(user=10, idle=2000, steal=5, ctxt=1)}, "steal", Severity.DOUBTFUL),
        ({"/proc/stat": STAT.format(user=10, idle=2000, steal=3, ctxt=1)}, "steal", Severity.NOTE),
        ({f"{CLOCK}/current_clocksource": "hpet"}, "clock-changed", Severity.INVALID),
        ({f"{CPU}/online": "0"}, "cpu-offline", Severity.INVALID),
        ({f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "4"}, "thermal-throttle", Severity.DOUBTFUL),
        ({"/proc/vmstat": "pswpin 1\npswpout 9\n"}, "swapping", Severity.DOUBTFUL),
    ],
)
def test_marks(files: dict[str, str], name: str, severity: Severity) -> None:
    assert [(mark.name, mark.severity) for mark in marks(changed(files), [0, 2])] == [(name, severity)]


def test_a_cpu_that_was_not_measured_makes_no_mark() -> None:
    files = {
        "/proc/stat": STAT.format(user=10, idle=2000, steal=500, ctxt=1),
        f"{CPU}/online": "2",
        f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "4",
    }
    assert marks(changed(files), [2]) == []


def test_the_time_that_heat_took_is_in_the_mark() -> None:
    folder = f"{CPU}/cpu0/thermal_throttle/core_throttle"
    old, new = texts({f"{folder}_total_time_ms": "10"}), texts({f"{folder}_total_time_ms": "130"})
    report = changes(before() | old, before() | texts({f"{folder}_count": "5"}) | new)
    assert report.throttle_time_ms == {"cpu0/thermal_throttle/core_throttle": 120}
    (mark,) = marks(report, [0])
    assert "core_throttle_count: 2 times, 120 ms" in mark.detail


def test_a_hot_package_concerns_every_cpu() -> None:
    actual = marks(changed({f"{CPU}/cpu2/thermal_throttle/package_throttle_count": "4"}), [0])
    assert [mark.name for mark in actual] == ["thermal-throttle"]


def test_a_hot_package_of_256_cpus_is_named_once_for_each_measured_cpu() -> None:
    keys = [f"cpu{cpu}/thermal_throttle/package_throttle_count" for cpu in range(256)]
    counters = [texts({f"{CPU}/{key}": str(count) for key in keys}) for count in (7, 9)]
    online = texts({f"{CPU}/online": "0-255"})
    report = changes(before() | online | counters[0], before() | online | counters[1])
    (mark,) = marks(report, [200])
    assert "(cpu200/thermal_throttle/package_throttle_count: 2 times)" in mark.detail
    (mark,) = marks(report, [*range(6)])
    assert "and 2 more counters)" in mark.detail


IPIS = """           CPU0       CPU2
RES: {res} 0 Rescheduling interrupts
{call}: {calls} 0 {name}
TLB: {flushes} 1 TLB shootdowns
"""


@pytest.mark.parametrize(
    ("kind", "name"), [("CAL", "Function call interrupts"), ("IPI1", "Function call interrupts")]
)
def test_interrupts_by_other_cpus_are_marked_from_100_a_second(kind: str, name: str) -> None:
    """In 10 s. A wake-up of a task is no such interrupt."""
    old = IPIS.format(res=1, call=kind, name=name, calls=5, flushes=0)
    stat = {"/proc/stat": STAT.format(user=10, idle=2000, steal=2, ctxt=500)}
    for calls, flushes, words in (
        (304, 700, []),
        (305, 700, ["other CPUs often interrupted CPU 0: 30 function calls and 70 TLB flushes a second"]),
        (5, 1000, ["other CPUs often interrupted CPU 0: 100 TLB flushes a second"]),
    ):
        new = IPIS.format(res=90_000, call=kind, name=name, calls=calls, flushes=flushes)
        report = changes(
            before() | texts({"/proc/interrupts": old}), before() | texts({"/proc/interrupts": new} | stat)
        )
        assert [mark.detail for mark in marks(report, [0, 2]) if mark.name == "ipis"] == words
        assert marks(report, [2]) == marks(report, [0], explained=True) == []


@pytest.mark.parametrize(
    ("trips", "actual"),
    [
        ({"0": ("54000", "passive"), "1": ("90000", "critical")}, ["thermal-throttle"]),
        ({"0": ("60000", "passive"), "1": ("50000", "active")}, []),
        ({"0": ("0", "passive"), "1": ("-274000", "passive")}, []),
        ({"0": ("hot", "passive")}, []),
        ({}, []),
    ],
)
def test_a_processor_at_its_passive_trip_point_is_slowed_down(
    trips: dict[str, tuple[str, str]], actual: list[str]
) -> None:
    zone = "/sys/class/thermal/thermal_zone0"
    files = {f"{zone}/temp": "55000"}
    for number, (temperature, kind) in trips.items():
        files |= {f"{zone}/trip_point_{number}_temp": temperature, f"{zone}/trip_point_{number}_type": kind}
    made = marks(changed(files), [0])
    assert [mark.name for mark in made] == actual
    if made:
        assert "thermal_zone0 x86_pkg_temp: 55 C, the limit is 54 C" in made[0].detail


def test_a_peak_between_the_readings_of_a_step_counts() -> None:
    zone = "/sys/class/thermal/thermal_zone0"
    trip = {f"{zone}/trip_point_0_temp": "54000", f"{zone}/trip_point_0_type": "passive"}
    report = changed({f"{zone}/temp": "43000", **trip})
    assert marks(report, [0], temperature(53_999)) == []
    (mark,) = marks(report, [0], temperature(61_000))
    assert "thermal_zone0 x86_pkg_temp: 61 C, the limit is 54 C" in mark.detail
    assert marks(report, [0], temperature(None)) == []


def temperature(peak: int | None) -> list[Result]:
    labels, values = {"zone": "thermal_zone0 x86_pkg_temp"}, {"max_millicelsius": peak, "readings": 2}
    return [Result(name="temperature", labels=dict(labels), values=dict(values))]


def test_this_machine() -> None:
    first = read_local(CHANGE_PATHS)
    time.sleep(0.05)
    report = changes(first, read_local(CHANGE_PATHS))
    assert report.counters["context_switches"] > 0
    assert Changes.model_validate_json(report.model_dump_json()) == report


TEXT = st.one_of(
    st.text(max_size=200),
    st.from_regex(r"( *CPU[0-9]+)*\n(( *[A-Z0-9]+:)?( +[0-9]+)* *[a-z]*\n){0,4}", fullmatch=True),
    st.from_regex(r"((cpu[0-9]*|ctxt|intr|pswpin|pgfault)( [0-9]+)*\n)*", fullmatch=True),
    st.just("9" * 5000),
)
FILES = st.dictionaries(
    st.sampled_from(
        [path.replace("[0-9]*", "0").replace("*_count", "core_throttle_count") for path in CHANGE_PATHS]
    ),
    st.one_of(st.fixed_dictionaries({"text": TEXT}), st.just({"error": "EIO"}), st.none()),
)


@given(FILES, FILES)
def test_hostile_files_never_raise(first: dict[str, Any], second: dict[str, Any]) -> None:
    report = changes(Files(first), Files(second))
    assert Changes.model_validate_json(report.model_dump_json()) == report
    marks(report, [0, 1])
