# SPDX-License-Identifier: MIT
"""The processors of a target: which, how many, isolation, frequency and idle states."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rtgauge.system.file_batch import Files, cpu_list, integer, known
from rtgauge.units import format_cpu_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CPU = "/sys/devices/system/cpu"
CPUINFO = "/proc/cpuinfo"
FEATURES = (
    "constant_tsc",
    "nonstop_tsc",
    "tsc_known_freq",
    "tsc_reliable",
    "tsc_deadline_timer",
    "arat",
    "smap",
    "hypervisor",
)
"""Flags of /proc/cpuinfo that affect timing."""
PATHS = [
    CPUINFO,
    *(
        f"{CPU}/{name}"
        for name in ("online", "possible", "present", "isolated", "nohz_full", "smt/active", "smt/control")
    ),
    *(
        f"{CPU}/cpu[0-9]*/cpufreq/{name}"
        for name in ("scaling_governor", "scaling_driver", "cpuinfo_min_freq", "cpuinfo_max_freq")
    ),
    f"{CPU}/cpufreq/boost",
    f"{CPU}/intel_pstate/status",
    f"{CPU}/intel_pstate/no_turbo",
    *(f"{CPU}/cpuidle/{name}" for name in ("current_driver", "current_governor", "current_governor_ro")),
    *(f"{CPU}/cpu[0-9]*/cpuidle/state[0-9]*/{name}" for name in ("name", "latency", "disable")),
    "/proc/device-tree/model",
]


def model(cpuinfo: str | None, board: str | None) -> str | None:
    """The processor's name; for Arm cores, implementer and part."""
    fields = {
        match[1].strip().lower(): match[2].strip()
        for match in re.finditer(r"^([^\n:]{1,64}):([^\n]*)$", cpuinfo or "", re.MULTILINE)
    }
    for key in ("model name", "cpu model", "uarch", "cpu"):
        if fields.get(key):
            return fields[key]
    if fields.get("cpu part"):
        core = f"Arm implementer {fields.get('cpu implementer', '?')} part {fields['cpu part']}"
        return f"{board} ({core})" if board else core
    return fields.get("hardware") or board


def features(cpuinfo: str | None) -> list[str] | str:
    """The FEATURES that an x86 processor has and the kernel uses; "unknown" on other architectures."""
    flags = re.search(r"^flags\s*:([^\n]*)$", cpuinfo or "", re.MULTILINE)
    return [name for name in FEATURES if name in flags[1].split()] if flags else "unknown"


def by_value(values: Iterable[tuple[int, str]]) -> dict[str, str]:
    """(0, "a"), (1, "a"), (2, "b") -> {"a": "0-1", "b": "2"}."""
    cpus: dict[str, list[int]] = {}
    for cpu, value in values:
        cpus.setdefault(value, []).append(cpu)
    return {value: format_cpu_list(same) for value, same in cpus.items()}


def frequency(files: Files) -> dict[str, Any]:
    """Governors and drivers by CPUs, range in kHz, turbo; "none" if sysfs shows no frequency scaling."""
    governors = by_value(_per_cpu(files, "cpufreq/scaling_governor"))
    drivers = by_value(_per_cpu(files, "cpufreq/scaling_driver"))
    nothing = "none" if files.exists(f"{CPU}/online") else "unknown"
    lowest = [
        value
        for _, text in _per_cpu(files, "cpufreq/cpuinfo_min_freq")
        if (value := integer(text)) is not None
    ]
    highest = [
        value
        for _, text in _per_cpu(files, "cpufreq/cpuinfo_max_freq")
        if (value := integer(text)) is not None
    ]
    boost, no_turbo = files.number(f"{CPU}/cpufreq/boost"), files.number(f"{CPU}/intel_pstate/no_turbo")
    return {
        "governors": governors or nothing,
        "drivers": drivers or nothing,
        "min_khz": min(lowest) if lowest else "unknown",
        "max_khz": max(highest) if highest else "unknown",
        "turbo": known(no_turbo == 0 if no_turbo is not None else boost == 1 if boost is not None else None),
    }


def idle(files: Files) -> dict[str, Any]:
    """Driver, governor and the C-states: name, exit latency (us) and the CPUs on which the state is disabled.

    `deepest_latency_us`: the largest exit latency of a state that an online CPU may enter.
    """
    states: dict[str, dict[str, Any]] = {}
    for match, text in files.matching(
        rf"{CPU}/cpu([0-9]{{1,5}})/cpuidle/(state[0-9]{{1,3}})/(name|latency|disable)"
    ):
        state = states.setdefault(match[2], {"name": "unknown", "latency_us": "unknown", "disabled": []})
        if match[3] == "name":
            state["name"] = text
        elif match[3] == "latency":
            state["latency_us"] = known(integer(text))
        elif text != "0":
            state["disabled"].append(int(match[1]))
    nothing = "none" if files.exists(f"{CPU}/online") else "unknown"
    online = set(cpu_list(files.text(f"{CPU}/online")) or [])
    entered = [state["latency_us"] for state in states.values() if online - set(state["disabled"])]
    return {
        "deepest_latency_us": nothing
        if not states
        else max(entered, default=0)
        if "unknown" not in entered and online
        else "unknown",
        "driver": files.text(f"{CPU}/cpuidle/current_driver") or nothing,
        "governor": files.text(f"{CPU}/cpuidle/current_governor")
        or files.text(f"{CPU}/cpuidle/current_governor_ro")
        or nothing,
        "states": [{**states[key], "disabled": format_cpu_list(states[key]["disabled"])} for key in states]
        or nothing,
    }


def knows_nohz_full(files: Mapping[str, Any]) -> bool:
    """Whether the kernel was built with CONFIG_NO_HZ_FULL, by its file in sysfs; yes where sysfs could not be
    read.

    `files`: of a `read`.
    """
    read = Files(files)
    return read.exists(f"{CPU}/nohz_full") or not read.exists(f"{CPU}/online")


def facts(files: Files) -> dict[str, Any]:
    """Everything about the processors. CPU lists are texts like `0-3,6`, "" for none."""
    lists = {
        name: cpu_list(files.text(f"{CPU}/{name}"))
        for name in ("online", "possible", "isolated", "nohz_full")
    }
    sysfs = files.exists(f"{CPU}/online")
    result: dict[str, Any] = {
        "model": known(model(files.text(CPUINFO), files.text("/proc/device-tree/model")))
    }
    result["board"] = known(files.text("/proc/device-tree/model"))
    for name, cpus in lists.items():
        # an older kernel has no nohz_full file where the feature is not built in
        missing = (
            ""
            if name in ("isolated", "nohz_full") and sysfs and not files.exists(f"{CPU}/{name}")
            else "unknown"
        )
        result[name] = format_cpu_list(cpus) if cpus is not None else missing
        result[f"{name}_count"] = len(cpus) if cpus is not None else 0 if missing == "" else "unknown"
    smt = files.number(f"{CPU}/smt/active")
    result["smt_active"] = known(smt == 1 if smt is not None else None)
    result["smt_control"] = known(files.text(f"{CPU}/smt/control"))
    result["features"] = features(files.text(CPUINFO))
    result["frequency"] = frequency(files)
    result["idle"] = idle(files)
    return result


def _per_cpu(files: Files, name: str) -> list[tuple[int, str]]:
    return [
        (int(match[1]), text) for match, text in files.matching(rf"{CPU}/cpu([0-9]{{1,5}})/{re.escape(name)}")
    ]
