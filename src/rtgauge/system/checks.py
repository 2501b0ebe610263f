# SPDX-License-Identifier: MIT
"""Looks at a machine for one check of a rule. Pure: facts and files in, what was found out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from rtgauge.system import kernel, kernel_parameters
from rtgauge.system.cpus import CPU
from rtgauge.system.file_batch import UNKNOWN, Files, chosen, cpu_list, integer
from rtgauge.system.rules import glob_pattern
from rtgauge.units import format_cpu_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rtgauge.system.rules import Check

Result = Literal["ok", "differs", "unknown", "not-applicable"]
NONE = "none"
MOST_SHOWN = 6
MOUNTS = {
    "/sys/kernel/debug/": "; mount -t debugfs none /sys/kernel/debug, as root",
    "/sys/kernel/tracing/": "; mount -t tracefs none /sys/kernel/tracing, as root",
}
"""What is often not mounted, so that a file that is not there tells nothing."""


@dataclass(frozen=True)
class Found:
    """The result of a check, what stands there in words, and where it was looked."""

    result: Result
    text: str
    where: str


class Machine:
    """What is known of a machine: its facts, the files of the batch, its kernel's configuration and command line."""

    def __init__(self, facts: Mapping[str, Any], files: Mapping[str, Any]) -> None:
        self.facts = facts
        self.files = Files(files)
        self.config = kernel.config(self.files)
        cmdline = self.fact("kernel.cmdline")
        self.parameters = kernel_parameters.parameters(cmdline) if isinstance(cmdline, str) and cmdline != UNKNOWN else None
        possible = self.fact("cpu.possible")
        self.possible = cpu_list(possible) or [] if isinstance(possible, str) else []

    def fact(self, path: str) -> Any:
        """The fact at a path of keys; unknown where there is none."""
        value: Any = self.facts
        for key in path.split("."):
            if not isinstance(value, dict) or key not in value:
                return UNKNOWN
            value = cast("dict[str, Any]", value)[key]
        return value

    def parameter(self, name: str) -> str | None:
        """A boot parameter's value, "" where it has none; None where it was not given or the command line is unknown."""
        return None if self.parameters is None else self.parameters.get(name.replace("-", "_"))


def as_text(value: Any) -> str:
    """Any value of a fact, a file or a rule as it is compared and shown: yes, no, none for an empty one, a list with commas."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(str(key) for key in cast("dict[Any, Any]", value)) or NONE
    if isinstance(value, list):
        parts = [as_text(part) for part in cast("list[Any]", value)]
        return ", ".join(parts) or NONE
    return str(value) or NONE


def shown(value: Any) -> str:
    """As `as_text`, a long list cut with the number of what was cut."""
    parts = cast("list[Any]", list(value)) if isinstance(value, (list, dict)) else []
    if len(parts) > MOST_SHOWN:
        return f"{as_text(parts[:MOST_SHOWN])} and {len(parts) - MOST_SHOWN} more"
    return as_text(value)


def _words(value: Any) -> set[str]:
    if isinstance(value, (list, dict)):
        return {as_text(part) for part in cast("list[Any]", list(value))}
    return set(re.split(r"[\s,]+", as_text(value)))


def _cpus(text: Any, possible: list[int]) -> set[int] | None:
    """CPUs out of a list or, with 0x before it, a mask; None where it is neither."""
    if not isinstance(text, str) or text == UNKNOWN:
        return None
    if text in ("", NONE):
        return set()
    found = kernel_parameters.mask_cpus(text, possible) if text[:2] in ("0x", "0X") else kernel_parameters.cpu_list(text, possible)
    return None if found is None else set(found)


def _source(source: str, machine: Machine) -> set[int] | None:
    """The CPUs that `fact PATH`, `boot-parameter NAME` or `cpus LIST` names; none where the parameter was not given."""
    kind, _, name = source.partition(" ")
    if kind == "cpus":
        return _cpus(name, [])
    if kind == "fact":
        return _cpus(machine.fact(name), machine.possible)
    if machine.parameters is None:
        return None
    asked = machine.parameter(name) or ""
    # the kernel drops CPUs that the machine does not have; where none is left, what was asked for is missing as a whole
    return _cpus(asked, machine.possible) or _cpus(asked, [])


def _test(check: Check, value: Any, machine: Machine) -> tuple[Result, str]:
    """Whether a value that is known passes the check's test, and more words where the value alone does not tell."""
    kind, want = check.test
    text = as_text(value)
    wanted = [as_text(one) for one in (want if isinstance(want, list) else [want])]
    number = integer(text)
    match kind:
        case "is":
            return ("ok" if text in wanted else "differs"), ""
        case "is-not":
            return ("ok" if text not in wanted else "differs"), ""
        case "has":
            return ("ok" if want in _words(value) else "differs"), ""
        case "has-not":
            return ("ok" if want not in _words(value) else "differs"), ""
        case "at-least" | "at-most":
            if number is None:
                return "unknown", "not a number"
            bound = int(wanted[0])
            return ("ok" if (number >= bound if kind == "at-least" else number <= bound) else "differs"), ""
        case "covers" | "avoids":
            return _compare_cpus(kind, value, str(want), machine)
        case _:
            return "unknown", ""


def _compare_cpus(kind: str, value: Any, source: str, machine: Machine) -> tuple[Result, str]:
    here, other = _cpus(value, machine.possible), _source(source, machine)
    if here is None or other is None:
        return "unknown", f"cannot be compared with {source}"
    if not other:
        return "not-applicable", f"{source}: none"
    wrong = sorted(other - here if kind == "covers" else other & here)
    named = f"CPU {format_cpu_list(wrong)} of {source} is {'missing' if kind == 'covers' else 'among them'}"
    return ("differs", named) if wrong else ("ok", f"{source}: {format_cpu_list(sorted(other))}")


def _found(check: Check, value: Any, where: str, machine: Machine, name: str = "") -> Found:
    result, more = _test(check, value, machine)
    text = f"{name}{shown(value)}"
    return Found(result, f"{text} ({more})" if more else text, where)


def _kernel_option(check: Check, name: str, machine: Machine) -> Found:
    if machine.config is not None:
        options, path = machine.config
        value = options.get(f"CONFIG_{name}", "n").strip('"')
        return _found(check, value, path, machine, f"CONFIG_{name}=")
    module = f"/sys/module/{check.module}"
    if check.module is not None and machine.files.exists(module):
        # what is there was built, into the kernel or as a module; what is not there may only not be loaded
        kind, want = check.test
        wanted = want if isinstance(want, list) else [want]
        built = {"y", "m"} & {as_text(one) for one in wanted}
        if kind in ("is", "is-not"):
            return Found("ok" if bool(built) == (kind == "is") else "differs", f"CONFIG_{name}=y or m", module)
    return Found(
        "unknown",
        "the kernel's configuration cannot be read; modprobe configs, or put it into /boot/config-RELEASE",
        "/proc/config.gz, /boot/config-RELEASE, /lib/modules/RELEASE/config",
    )


def _boot_parameter(check: Check, name: str, machine: Machine) -> Found:
    where = "/proc/cmdline"
    if machine.parameters is None:
        return Found("unknown", UNKNOWN, where)
    value = machine.parameter(name)
    given = value is not None
    text = f"{name}={value}" if value else name if given else f"no {name}"
    if check.present is not None:
        return Found("ok" if given == check.present else "differs", text, where)
    if value is None:
        # a parameter that was not given has no value: it is what is not wanted, but not what is
        negative = check.test[0] in ("is-not", "has-not", "avoids")
        return Found("ok" if negative else "differs", text, where)
    result, more = _test(check, value, machine)
    return Found(result, f"{text} ({more})" if more else text, where)


def _missing(check: Check, path: str, machine: Machine) -> Found:
    """A file that could not be read. Its absence tells something only where the place is known to be looked into."""
    error = machine.files.error(path)
    looked = machine.files.exists(f"{CPU}/online") if path.startswith("/sys/") else machine.files.exists("/proc/sys/kernel/osrelease")
    if error in ("ENOENT", "ENOTDIR") and looked and not path.startswith(tuple(MOUNTS)):
        if check.present is not None:
            return Found("differs" if check.present else "ok", "not there", path)
        return Found(check.if_missing, "not there", path)
    hint = next((text for start, text in MOUNTS.items() if path.startswith(start)), "")
    return Found("unknown", f"cannot be read{f': {error}' if error else ''}{hint}", path)


def _file(check: Check, path: str, machine: Machine) -> Found:
    matching = list(machine.files.matching(glob_pattern(path)))
    if check.present is not None and (matching or machine.files.exists(path)):
        return Found("ok" if check.present else "differs", "there", path)
    if not matching:
        return _missing(check, path, machine)
    by_value: dict[str, list[Found]] = {}
    for match, text in matching:
        found = _found(check, chosen(text) or "", match[0], machine)
        by_value.setdefault(found.text, []).append(found)
    results: list[Result] = [same[0].result for same in by_value.values()]
    text = ", ".join(f"{value} ({len(same)} of {len(matching)})" if len(by_value) > 1 else value for value, same in by_value.items())
    wrong = [same[0].where for same in by_value.values() if same[0].result == "differs"]
    return Found(combine(results, enough="all"), text, wrong[0] if wrong else path)


def combine(results: list[Result], enough: str) -> Result:
    """One result of several: `all` must be ok, or `any` of them. What does not apply does not count."""
    counted = [result for result in results if result != "not-applicable"]
    if not counted:
        return "not-applicable"
    first, last = ("differs", "ok") if enough == "all" else ("ok", "differs")
    return first if first in counted else "unknown" if "unknown" in counted else last


def look(check: Check, machine: Machine) -> Found:
    """Carry out one check."""
    kind, name = check.subject
    match kind:
        case "kernel-option":
            return _kernel_option(check, name, machine)
        case "boot-parameter":
            return _boot_parameter(check, name, machine)
        case "file":
            return _file(check, name, machine)
        case _:
            value = machine.fact(name)
            if as_text(value) == UNKNOWN:
                return Found("unknown", UNKNOWN, name)
            return _found(check, value, name, machine)
