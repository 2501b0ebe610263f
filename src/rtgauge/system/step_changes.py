# SPDX-License-Identifier: MIT
"""Finds what changed on a target during a step, from files read before and after, and derives marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rtgauge.record.facts import UNKNOWN
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Changes, Mark, NumberChange, Result, Severity, TableLine, TextChange, Unknown
from rtgauge.target.file_batch import Files, cpu_list, integer
from rtgauge.units import format_cpu_list, format_share, name_cpus, plural

CPU = "/sys/devices/system/cpu"
CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
ONLINE = f"{CPU}/online"
CHANGE_PATHS: list[str] = [
    "/proc/interrupts",
    "/proc/softirqs",
    "/proc/stat",
    "/proc/vmstat",
    "/sys/class/thermal/thermal_zone[0-9]*/temp",
    "/sys/class/thermal/thermal_zone[0-9]*/type",
    "/sys/class/thermal/thermal_zone[0-9]*/trip_point_[0-9]*_temp",
    "/sys/class/thermal/thermal_zone[0-9]*/trip_point_[0-9]*_type",
    f"{CPU}/cpu[0-9]*/cpufreq/scaling_cur_freq",
    f"{CPU}/cpu[0-9]*/thermal_throttle/*_count",
    f"{CPU}/cpu[0-9]*/thermal_throttle/*_total_time_ms",
    "/sys/class/powercap/intel-rapl:[0-9]*/energy_uj",
    CLOCKSOURCE,
    ONLINE,
]
"""Files and globs to read before and after a step."""

NS_PER_TICK = 10**9 // 100
"""Length of a tick: /proc/stat counts in 1/100 s (USER_HZ) on every architecture except Alpha."""
CPU_TIMES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
VMSTAT = re.compile(
    r"pgfault|pgmajfault|pswpin|pswpout|pgscan_direct|allocstall_\w+|oom_kill|"
    r"thp_fault_alloc|thp_collapse_alloc|thp_split_\w+|compact_(?:stall|fail|success|migrate_scanned)|numa_(?:hint_faults|pages_migrated|pte_updates)|pgmigrate_success"
)


def difference(before: int | None, after: int | None) -> int | None:
    """Return how much a counter grew; None if a value is missing, or if it was reset or wrapped."""
    return after - before if before is not None and after is not None and after >= before else None


class Counts(NamedTuple):
    """A line of /proc/interrupts or /proc/softirqs: its name, and CPU -> count.

    A line without counts per CPU has its only count under "".
    """

    name: str
    per_cpu: dict[str, int]


def table(text: str | None) -> dict[str, Counts]:
    """Parse /proc/interrupts or /proc/softirqs into label -> counts."""
    lines = (text or "").splitlines()
    columns = re.findall(r"CPU([0-9]{1,5})(?=\s|$)", lines[0]) if lines else []
    rows: dict[str, Counts] = {}
    for line in lines[1:]:
        label, colon, rest = line.partition(":")
        words = rest.split()
        counts: list[int] = []
        for word in words[: len(columns)]:
            if (count := integer(word)) is None or count < 0:
                break
            counts.append(count)
        if colon and counts:
            single = len(columns) == 1 and label.strip() in ("ERR", "MIS")
            whole = len(counts) == len(columns) and not single
            per_cpu = dict(zip(columns, counts, strict=True)) if whole else {"": counts[0]}
            rows[label.strip()] = Counts(" ".join(words[len(counts) :]), per_cpu)
    return rows


def table_changes(before: str | None, after: str | None) -> dict[str, TableLine] | Unknown:
    """Return how much each line grew, by label; "unknown" if a table could not be read."""
    if before is None or after is None:
        return "unknown"
    old, new = table(before), table(after)
    changed: dict[str, TableLine] = {}
    for label, (name, counts) in new.items():
        earlier = old[label].per_cpu if label in old else {}
        # The counter of a new CPU or interrupt began at 0.
        differences = {cpu: difference(earlier.get(cpu, 0), count) for cpu, count in counts.items()}
        nonzero = {cpu: count for cpu, count in differences.items() if count != 0}
        if nonzero:
            total = None if None in nonzero.values() else sum(count or 0 for count in nonzero.values())
            per_cpu = {cpu: count for cpu, count in nonzero.items() if cpu != ""}
            changed[label] = TableLine(name=name, total=total, per_cpu=per_cpu)
    return changed


def cpu_times(text: str | None) -> dict[str, dict[str, int]]:
    """Parse /proc/stat into CPU -> kind -> time (ns)."""
    times: dict[str, dict[str, int]] = {}
    for match in re.finditer(r"^cpu([0-9]{1,5}) ([0-9 ]+)$", text or "", re.MULTILINE):
        ticks = [integer(word) for word in match[2].split()]
        times[match[1]] = {
            name: (value or 0) * NS_PER_TICK for name, value in zip(CPU_TIMES, ticks, strict=False)
        }
    return times


def stat_counter(text: str | None, name: str) -> int | None:
    """Return a counter of /proc/stat, such as ctxt, intr or processes; None if it is missing."""
    match = re.search(rf"^{name} ([0-9]{{1,19}})(?: |$)", text or "", re.MULTILINE)
    return int(match[1]) if match else None


def _cpu_time_changes(before: str | None, after: str | None) -> dict[str, dict[str, int | None]]:
    old, new = cpu_times(before), cpu_times(after)
    return {
        cpu: {kind: difference(old[cpu].get(kind), value) for kind, value in times.items()}
        for cpu, times in new.items()
        if cpu in old
    }


def _vmstat(text: str | None) -> dict[str, int]:
    counters = re.finditer(r"^([a-z0-9_]{1,64}) ([0-9]{1,19})$", text or "", re.MULTILINE)
    return {match[1]: int(match[2]) for match in counters if VMSTAT.fullmatch(match[1])}


def _numbers(files: Files, pattern: str) -> dict[str, int]:
    return {
        match[1]: number for match, text in files.matching(pattern) if (number := integer(text)) is not None
    }


def _both(before: dict[str, int], after: dict[str, int]) -> dict[str, NumberChange]:
    return {key: NumberChange(before=before[key], after=after[key]) for key in after if key in before}


def _increases(before: dict[str, int], after: dict[str, int]) -> dict[str, int | None]:
    """Return by how much the counters in both maps grew, without zeros."""
    return {
        key: change
        for key, value in after.items()
        if key in before and (change := difference(before[key], value)) != 0
    }


def _texts(path: str, before: Files, after: Files) -> TextChange:
    return TextChange(before=before.text(path) or UNKNOWN, after=after.text(path) or UNKNOWN)


def _temperature_limits(files: Files, zone: str) -> dict[str, int]:
    """Return the lowest passive trip point of each thermal zone, from which the kernel slows its processors
    (Documentation/driver-api/thermal/sysfs-api).
    """
    limits: dict[str, int] = {}
    for match, text in files.matching(rf"{zone}(trip_point_[0-9]{{1,3}})_temp"):
        temperature, kind = integer(text), files.text(match[0].removesuffix("temp") + "type")
        if temperature is not None and temperature > 0 and kind == "passive":
            limits[match[1]] = min(temperature, limits.get(match[1], temperature))
    return limits


def changes(before: Files, after: Files) -> Changes:
    """Return the changes between two batches of CHANGE_PATHS."""
    stat_before, stat_after = before.text("/proc/stat"), after.text("/proc/stat")
    vm_before, vm_after = _vmstat(before.text("/proc/vmstat")), _vmstat(after.text("/proc/vmstat"))
    zone = r"/sys/class/thermal/(thermal_zone[0-9]{1,4})/"
    kinds = {match[1]: text for match, text in after.matching(f"{zone}type")}
    temperatures = _both(_numbers(before, f"{zone}temp"), _numbers(after, f"{zone}temp"))
    limits = _temperature_limits(after, zone)
    throttling = rf"{CPU}/(cpu[0-9]{{1,5}}/thermal_throttle/[a-z_]+_count)"
    throttled = rf"{CPU}/(cpu[0-9]{{1,5}}/thermal_throttle/[a-z_]+)_total_time_ms"
    frequencies = rf"{CPU}/cpu([0-9]{{1,5}})/cpufreq/scaling_cur_freq"
    energy = r"/sys/class/powercap/intel-rapl:([0-9]{1,3})/energy_uj"
    counters = {"context_switches": "ctxt", "interrupts": "intr", "processes_created": "processes"}
    return Changes(
        interrupts=table_changes(before.text("/proc/interrupts"), after.text("/proc/interrupts")),
        softirqs=table_changes(before.text("/proc/softirqs"), after.text("/proc/softirqs")),
        counters={
            name: "unknown" if change is None else change
            for name, key in counters.items()
            for change in [difference(stat_counter(stat_before, key), stat_counter(stat_after, key))]
        },
        cpu_time_ns=_cpu_time_changes(stat_before, stat_after),
        vmstat=_increases(vm_before, vm_after),
        temperature_millicelsius={
            f"{key} {kinds.get(key, '')}".strip(): value for key, value in temperatures.items()
        },
        temperature_limit_millicelsius={
            f"{key} {kinds.get(key, '')}".strip(): value for key, value in limits.items()
        },
        frequency_khz=_both(_numbers(before, frequencies), _numbers(after, frequencies)),
        energy_uj=_increases(_numbers(before, energy), _numbers(after, energy)),
        throttle_counts=_increases(_numbers(before, throttling), _numbers(after, throttling)),
        throttle_time_ms=_increases(_numbers(before, throttled), _numbers(after, throttled)),
        clock_source=_texts(CLOCKSOURCE, before, after),
        online_cpus=_texts(ONLINE, before, after),
    )


STEAL_SHARE = 0.001
"""A measurement is doubtful if more than this share of a CPU's time was stolen; less is only noted."""
STEAL_MIN_NS = 20_000_000
"""Two ticks, because one of them may have begun before the step."""
IPIS = {"Function call interrupts": "function calls", "TLB shootdowns": "TLB flushes"}
"""The kernel's names for interrupts by which another CPU interrupts a CPU. A wake-up causes neither."""
RESCHEDULING = "Rescheduling interrupts"
"""The kernel's name for interrupts by which another CPU wakes up a CPU."""
LEAST_IPIS_PER_S = 100
"""A measured CPU that was interrupted at least as often has a mark: once in 10 ms."""
SWAP_COUNTERS = ("pswpin", "pswpout")


def peak_temperatures(results: Iterable[Result]) -> dict[str, int]:
    """Return the highest temperature (millicelsius) of each thermal zone that the engine read."""
    return {
        str(result.labels.get("zone")): peak
        for result in results
        if result.name == "temperature"
        if isinstance(peak := result.values.get("max_millicelsius"), int)
    }


def marks(
    changes: Changes, measured_cpus: Sequence[int], results: Iterable[Result] = (), *, explained: bool = False
) -> list[Mark]:
    """Return the marks that apply: `steal`, `clock-changed`, `cpu-offline`, `thermal-throttle`, `ipis`,
    `swapping`.

    `measured_cpus`: the CPUs that the step measured. `results`: the results of the step. `explained`: whether
    the kernel's events were recorded. To record them, the kernel itself interrupts all CPUs.
    """
    return [
        *_steal(changes, measured_cpus),
        *_clock(changes),
        *_offline(changes, measured_cpus),
        *_thermal(changes, measured_cpus, peak_temperatures(results)),
        *([] if explained else _ipis(changes, measured_cpus)),
        *_swapping(changes),
    ]


def _steal(changes: Changes, measured_cpus: Sequence[int]) -> list[Mark]:
    stolen: dict[int, tuple[int, float]] = {}
    for cpu in measured_cpus:
        times = changes.cpu_time_ns.get(str(cpu), {})
        steal, total = times.get("steal") or 0, sum(value or 0 for value in times.values())
        if steal > 0 and total > 0:
            stolen[cpu] = (steal, steal / total)
    if not stolen:
        return []
    doubtful = any(steal > STEAL_MIN_NS and share > STEAL_SHARE for steal, share in stolen.values())
    worst = max(stolen, key=lambda cpu: stolen[cpu][1])
    steal, share = stolen[worst]
    others = format_cpu_list([cpu for cpu in stolen if cpu != worst])
    detail = (
        f"the hypervisor took {steal / 1e6:.0f} ms ({format_share(share)}) of CPU {worst}"
        f"{f' and part of CPU {others}' if others else ''}, so the host may have caused some of the latencies"
    )
    return [MarkKind.STEAL.mark(detail, severity=Severity.DOUBTFUL if doubtful else Severity.NOTE)]


def _clock(changes: Changes) -> list[Mark]:
    clock = changes.clock_source
    if clock is None or UNKNOWN in (clock.before, clock.after) or clock.before == clock.after:
        return []
    detail = (
        f"the clock source changed from {clock.before} to {clock.after} during the step, so the times of "
        f"the step come from two clocks; find the reason in dmesg and measure again"
    )
    return [MarkKind.CLOCK_CHANGED.mark(detail)]


def _offline(changes: Changes, measured_cpus: Sequence[int]) -> list[Mark]:
    online = None if changes.online_cpus is None else cpu_list(changes.online_cpus.after)
    gone = sorted(set(measured_cpus) - set(online)) if online else []
    if not gone:
        return []
    detail = (
        f"{name_cpus(gone)} went offline during the step, although rtgauge measured there; bring "
        f"{'it' if len(gone) == 1 else 'them'} online (/sys/devices/system/cpu/cpuN/online) and measure again"
    )
    return [MarkKind.CPU_OFFLINE.mark(detail)]


def _thermal(changes: Changes, measured_cpus: Sequence[int], peaks: Mapping[str, int]) -> list[Mark]:
    counts = {key: count for key, count in changes.throttle_counts.items() if count}
    own = [key for key in counts if int(key.removeprefix("cpu").partition("/")[0]) in measured_cpus]
    # Each CPU of a package has a copy of the package's counter.
    package = [key for key in counts if "package" in key]
    hot = sorted(own if any("package" in key for key in own) else {*own, *package})
    words = [f"{key}: {plural(counts[key], 'time')}{_throttled_for(changes, key)}" for key in hot]
    words += [
        f"{zone}: {hottest / 1000:.0f} C, the limit is {limit / 1000:.0f} C"
        for zone, limit in changes.temperature_limit_millicelsius.items()
        if (known := changes.temperature_millicelsius.get(zone)) is not None
        and (hottest := max(known.before, known.after, peaks.get(zone, known.after))) >= limit
    ]
    if not words:
        return []
    more = f" and {plural(len(words) - 4, 'more counter')}" if len(words) > 4 else ""
    detail = (
        f"the processor was throttled by heat ({', '.join(words[:4])}{more}); improve the cooling and "
        "measure again"
    )
    return [MarkKind.THERMAL_THROTTLE.mark(detail)]


def _throttled_for(changes: Changes, key: str) -> str:
    time_ms = changes.throttle_time_ms.get(key.removesuffix("_count"))
    return f", {time_ms} ms" if time_ms is not None else ""


def _ipis(changes: Changes, measured_cpus: Sequence[int]) -> list[Mark]:
    lines = {} if changes.interrupts == "unknown" else changes.interrupts
    often: list[str] = []
    for cpu in measured_cpus:
        spent_ns = sum(value or 0 for value in changes.cpu_time_ns.get(str(cpu), {}).values())
        counts = {
            words: line.per_cpu.get(str(cpu)) or 0
            for line in lines.values()
            if (words := IPIS.get(line.name)) is not None
        }
        if spent_ns and sum(counts.values()) >= LEAST_IPIS_PER_S * spent_ns / 1e9:
            rates = [f"{count * 1e9 / spent_ns:,.0f} {words}" for words, count in counts.items() if count]
            often.append(f"CPU {cpu}: {' and '.join(rates)} a second")
    if not often:
        return []
    more = f" and {plural(len(often) - 4, 'more CPU')}" if len(often) > 4 else ""
    return [MarkKind.IPIS.mark(f"other CPUs often interrupted {'; '.join(often[:4])}{more}")]


def _swapping(changes: Changes) -> list[Mark]:
    pages = {key: changes.vmstat.get(key) or 0 for key in SWAP_COUNTERS}
    if not any(pages.values()):
        return []
    detail = (
        f"the machine swapped during the step ({pages['pswpin']} pages in, {pages['pswpout']} out); "
        "free memory or disable swap (swapoff -a)"
    )
    return [MarkKind.SWAPPING.mark(detail)]
