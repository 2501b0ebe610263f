# SPDX-License-Identifier: MIT
"""Carries out one check of a rule on a machine's facts and files."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from rtgauge.record.facts import UNKNOWN, Facts
from rtgauge.system import kernel
from rtgauge.system.cpus import CPU
from rtgauge.target.file_batch import Files, chosen, cpu_list, glob_pattern, integer
from rtgauge.units import format_cpu_list
from rtgauge_ext.audit import kernel_command_line

if TYPE_CHECKING:
    from rtgauge_ext.audit.rules import Check

Result = Literal["ok", "differs", "unknown", "not-applicable"]
NONE = "none"
MOST_SHOWN = 6
MOUNTS = {
    "/sys/kernel/debug/": "debugfs none /sys/kernel/debug",
    "/sys/kernel/tracing/": "tracefs none /sys/kernel/tracing",
}
"""File systems that are often not mounted, and how to mount them. There, a missing file proves nothing."""


@dataclass(frozen=True)
class CheckResult:
    """The result of a check, the value found (as text), and the file or fact that was read."""

    result: Result
    text: str
    where: str


class CheckedMachine:
    """A machine: its facts, the batch's files, and the kernel's configuration and command line."""

    def __init__(self, facts: Facts, files: Files) -> None:
        self.facts = facts
        self._by_path = facts.as_json()
        self.files = files
        self.config = kernel.config(self.files)
        cmdline = facts.kernel.cmdline
        self.parameters = None if cmdline is None else kernel_command_line.parameters(cmdline)
        self.possible = cpu_list(facts.cpu.possible) or []

    def fact(self, path: str) -> Any:
        """Return the fact at a path of keys; "unknown" if it does not exist."""
        value: Any = self._by_path
        for key in path.split("."):
            if not isinstance(value, dict) or key not in value:
                return UNKNOWN
            value = cast("dict[str, Any]", value)[key]
        return value

    def parameter(self, name: str) -> str | None:
        """Return a parameter's value, "" if it has none; None if it or the command line is missing."""
        return None if self.parameters is None else self.parameters.get(name.replace("-", "_"))


def as_text(value: Any) -> str:
    """Format a value of a fact, file or rule, to compare and show it: yes, no, none, lists with commas."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(str(key) for key in cast("dict[Any, Any]", value)) or NONE
    if isinstance(value, list):
        parts = [as_text(part) for part in cast("list[Any]", value)]
        return ", ".join(parts) or NONE
    return str(value) or NONE


def shown(value: Any) -> str:
    """Format a value like `as_text`, but shorten long lists."""
    parts = list(cast("Collection[Any]", value)) if isinstance(value, (list, dict)) else []
    if len(parts) > MOST_SHOWN:
        return f"{as_text(parts[:MOST_SHOWN])} and {len(parts) - MOST_SHOWN} more"
    return as_text(value)


def _words(value: Any) -> set[str]:
    if isinstance(value, (list, dict)):
        return {as_text(part) for part in cast("Collection[Any]", value)}
    return set(re.split(r"[\s,]+", as_text(value)))


def mask_cpus(text: str, possible: list[int]) -> list[int] | None:
    """Return the CPUs of a parameter that is a mask (xenomai.supported_cpus=0x6); None for any other text."""
    match = re.fullmatch(r"(?:0[xX])?([0-9a-fA-F]{1,64})", text)
    return [cpu for cpu in possible if int(match[1], 16) >> cpu & 1] if match else None


def _cpus(text: Any, possible: list[int]) -> set[int] | None:
    """Return the CPUs of a list, or of a mask with the prefix 0x; None for any other text."""
    if not isinstance(text, str) or text == UNKNOWN:
        return None
    if text in ("", NONE):
        return set()
    cpus = (
        mask_cpus(text, possible)
        if text[:2] in ("0x", "0X")
        else kernel_command_line.cpu_list(text, possible)
    )
    return None if cpus is None else set(cpus)


def _source(source: str, machine: CheckedMachine) -> set[int] | None:
    """Return the CPUs of `fact PATH`, `boot-parameter NAME` or `cpus LIST`; empty if there is no such
    parameter.
    """
    kind, _, name = source.partition(" ")
    if kind == "cpus":
        return _cpus(name, [])
    if kind == "fact":
        return _cpus(machine.fact(name), machine.possible)
    if machine.parameters is None:
        return None
    value = machine.parameter(name) or ""
    # The kernel drops CPUs that do not exist. If no CPU is left, the whole list is reported as missing.
    return _cpus(value, machine.possible) or _cpus(value, [])


class _Tested(NamedTuple):
    """The result of a check's test, and its explanation."""

    result: Result
    explanation: str = ""

    @classmethod
    def that(cls, holds: bool) -> _Tested:
        return cls("ok" if holds else "differs")


def _test(check: Check, value: Any, machine: CheckedMachine) -> _Tested:
    """Test a known value."""
    kind, expected = check.test
    text = as_text(value)
    allowed = [as_text(choice) for choice in check.expected]
    number = integer(text)
    match kind:
        case "is":
            return _Tested.that(text in allowed)
        case "is-not":
            return _Tested.that(text not in allowed)
        case "has":
            return _Tested.that(expected in _words(value))
        case "has-not":
            return _Tested.that(expected not in _words(value))
        case "at-least" | "at-most":
            if number is None:
                return _Tested("unknown", "not a number")
            bound = int(allowed[0])
            return _Tested.that(number >= bound if kind == "at-least" else number <= bound)
        case "covers" | "avoids":
            return _compare_cpus(kind, value, allowed[0], machine)
        case _:
            return _Tested("unknown")


def _compare_cpus(kind: str, value: Any, source: str, machine: CheckedMachine) -> _Tested:
    cpus, other = _cpus(value, machine.possible), _source(source, machine)
    if cpus is None or other is None:
        return _Tested("unknown", f"cannot be compared with {source}")
    if not other:
        return _Tested("not-applicable", f"{source}: none")
    wrong = sorted(other - cpus if kind == "covers" else other & cpus)
    named = f"CPU {format_cpu_list(wrong)} of {source} is {'missing' if kind == 'covers' else 'included'}"
    if wrong:
        return _Tested("differs", named)
    return _Tested("ok", f"{source}: {format_cpu_list(sorted(other))}")


def _tested(check: Check, value: Any, where: str, machine: CheckedMachine, name: str = "") -> CheckResult:
    result, explanation = _test(check, value, machine)
    text = f"{name}{shown(value)}"
    return CheckResult(result, f"{text} ({explanation})" if explanation else text, where)


def _kernel_option(check: Check, name: str, machine: CheckedMachine) -> CheckResult:
    if machine.config is not None:
        value = machine.config.options.get(f"CONFIG_{name}", "n").strip('"')
        return _tested(check, value, machine.config.path, machine, f"CONFIG_{name}=")
    module = f"/sys/module/{check.module}"
    if check.module is not None and machine.files.exists(module):
        # The code is built in or loaded. Its absence proves nothing, because it may just not be loaded.
        kind = check.test.kind
        built = {"y", "m"} & {as_text(choice) for choice in check.expected}
        if kind in ("is", "is-not"):
            result = _Tested.that(bool(built) == (kind == "is")).result
            return CheckResult(result, f"CONFIG_{name}=y or m", module)
    return CheckResult(
        "unknown",
        "the kernel's configuration cannot be read; try modprobe configs, or copy it to /boot/config-RELEASE",
        "/proc/config.gz, /boot/config-RELEASE, /lib/modules/RELEASE/config",
    )


def _boot_parameter(check: Check, name: str, machine: CheckedMachine) -> CheckResult:
    where = "/proc/cmdline"
    if machine.parameters is None:
        return CheckResult("unknown", UNKNOWN, where)
    value = machine.parameter(name)
    given = value is not None
    text = f"{name}={value}" if value else name if given else f"no {name}"
    if check.present is not None:
        return CheckResult("ok" if given == check.present else "differs", text, where)
    if value is None:
        # A missing parameter only passes negative tests.
        negative = check.test.kind in ("is-not", "has-not", "avoids")
        return CheckResult("ok" if negative else "differs", text, where)
    result, explanation = _test(check, value, machine)
    return CheckResult(result, f"{text} ({explanation})" if explanation else text, where)


def _missing(check: Check, path: str, machine: CheckedMachine) -> CheckResult:
    """Judge an unreadable file. Its absence counts only if its file system is known to be readable."""
    error = machine.files.error(path)
    sure = f"{CPU}/online" if path.startswith("/sys/") else "/proc/sys/kernel/osrelease"
    readable = machine.files.exists(sure)
    if error in ("ENOENT", "ENOTDIR") and readable and not path.startswith(tuple(MOUNTS)):
        if check.present is not None:
            return CheckResult("differs" if check.present else "ok", "not there", path)
        return CheckResult(check.if_missing, "not there", path)
    mount = next((text for start, text in MOUNTS.items() if path.startswith(start)), None)
    hint = ""
    if error in ("EACCES", "EPERM"):
        hint = "; run rtgauge audit as root"
    elif mount is not None and error in ("ENOENT", "ENOTDIR"):
        hint = f"; if its file system is not mounted, run as root: mount -t {mount}"
    return CheckResult("unknown", f"cannot be read{f': {error}' if error else ''}{hint}", path)


def _file(check: Check, path: str, machine: CheckedMachine) -> CheckResult:
    matching = list(machine.files.matching(glob_pattern(path)))
    if check.present is not None and (matching or machine.files.exists(path)):
        return CheckResult("ok" if check.present else "differs", "there", path)
    if not matching:
        return _missing(check, path, machine)
    by_value: dict[str, list[CheckResult]] = {}
    for match, text in matching:
        result = _tested(check, chosen(text) or "", match[0], machine)
        by_value.setdefault(result.text, []).append(result)
    results: list[Result] = [same[0].result for same in by_value.values()]
    text = ", ".join(
        f"{value} ({len(same)} of {len(matching)})" if len(by_value) > 1 else value
        for value, same in by_value.items()
    )
    wrong = [same[0].where for same in by_value.values() if same[0].result == "differs"]
    return CheckResult(combine(results, enough="all"), text, wrong[0] if wrong else path)


def combine(results: list[Result], enough: str) -> Result:
    """Combine several results: `all` or `any` of them must be ok. Checks that do not apply are ignored."""
    counted = [result for result in results if result != "not-applicable"]
    if not counted:
        return "not-applicable"
    first, last = ("differs", "ok") if enough == "all" else ("ok", "differs")
    return first if first in counted else "unknown" if "unknown" in counted else last


def carry_out(check: Check, machine: CheckedMachine) -> CheckResult:
    """Carry out one check on the machine."""
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
                return CheckResult("unknown", UNKNOWN, name)
            return _tested(check, value, name, machine)
