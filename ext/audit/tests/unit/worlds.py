# SPDX-License-Identifier: MIT
"""Makes up, for any rule of the audit, a machine on which it holds and machines on which it does not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.unit.system.machines import texts

from rtgauge.record.facts import Facts
from rtgauge.target.file_batch import Files

if TYPE_CHECKING:
    from rtgauge_ext.audit.rules import Check, Rule

POSSIBLE = {0, 1, 2, 3}
MACHINES = {"x86-64": "x86_64", "arm64": "aarch64", "armhf": "armv7l", "riscv64": "riscv64"}
LISTS = (
    "cpu.resource_control",
    "cpu.features",
    "firmware.mitigated",
    "interrupts.on_isolated",
    "memory.swaps",
    "network.gathers",
)
NUMBERS = (
    "timers.resolution_ns",
    "scheduling.cgroup.rt_runtime_us",
    "network.coalescing.rx_us",
    "network.coalescing.tx_us",
)


def _of_its_type(path: str, value: Any) -> Any:
    """The value in the type that the fact has: a list of the words, or a number instead of text."""
    if path in LISTS:
        return [] if value == "none" else value.split(",")
    if path in NUMBERS:
        return 7 if value == "2-3" else value
    if path == "cpu.idle.states":
        return value if value == "none" else [{"name": value}]
    if path == "cpu.frequency.drivers":
        return dict.fromkeys(value.split(","), "0-3")
    return value


class World:
    """Facts, kernel options, boot parameters and files of a machine that does not exist."""

    def __init__(self, rule: Rule) -> None:
        self.facts: dict[str, Any] = {}
        self.options: dict[str, str] = {}
        self.parameters: dict[str, str] = {}
        self.files: dict[str, str] = {
            "/sys/devices/system/cpu/online": "0-3",
            "/proc/sys/kernel/osrelease": "1",
        }
        self.missing: set[str] = set()
        self.put("cpu.possible", "0-3")
        self.put("kernel.architecture", MACHINES[rule.architectures[0]])
        self.put("kernel.release", "4.14.0" if rule.until else "7.3.0")
        self.put("machine.virtual", rule.guest or False)
        if rule.interface:
            self.put("network.name", "eth1")
        for check in rule.when:
            self.add(check, holds=True)

    def put(self, path: str, value: Any) -> None:
        *folders, last = path.split(".")
        place = self.facts
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = _of_its_type(path, value)

    def get(self, path: str) -> Any:
        place: Any = self.facts
        for key in path.split("."):
            place = place.get(key, {})
        return place or None

    def _listed(self, source: str) -> set[int]:
        """The CPUs of a source, which are set to 2-3 where nobody set them."""
        kind, _, name = source.partition(" ")
        if kind == "cpus":
            return {int(name)}
        if kind == "fact":
            if not self.get(name):
                self.put(name, "2-3")
        elif not self.parameters.get(name):
            self.parameters[name] = "2-3"
        return {2, 3}

    def _value(self, check: Check, *, holds: bool) -> Any:
        """A value that passes the check's test, or one that does not."""
        kind, want = check.test
        first = want[0] if isinstance(want, list) else want
        other = (not first) if isinstance(first, bool) else {"y": "n", "n": "y"}.get(str(first), "2-3")
        match kind:
            case "is":
                return first if holds else other
            case "is-not":
                return other if holds else first
            case "at-least":
                return want if holds else want - 1
            case "at-most":
                return want if holds else want + 1
            case "has":
                return f"{want},2-3" if holds else "2-3"
            case "has-not":
                return "2-3" if holds else f"2-3,{want}"
            case _:
                listed = self._listed(want)
                chosen = listed if (kind == "covers") == holds else POSSIBLE - listed
                return ",".join(str(cpu) for cpu in sorted(chosen))

    def add(self, check: Check, *, holds: bool) -> None:
        """Make the check hold, or not."""
        kind, name = check.subject
        if check.present is not None:
            if check.present == holds:
                if kind == "file":
                    self.files[name] = ""
                else:
                    self.parameters.setdefault(name, "")
            elif kind == "file":
                self.missing.add(name)
            else:
                self.parameters.pop(name, None)
            return
        value = self._value(check, holds=holds)
        match kind:
            case "kernel-option":
                self.options[name] = value
            case "boot-parameter":
                self.parameters[name] = value
            case "file":
                self.files[re.sub(r"\[0-9\]\*", "0", name)] = str(value)
            case _:
                self.put(name, value)

    def build(self) -> tuple[Facts, Files]:
        """(facts, files) as the audit takes them."""
        words = [f"{name}={value}" if value else name for name, value in self.parameters.items()]
        self.put("kernel.cmdline", " ".join(["quiet", *words]))
        lines = [
            f"CONFIG_{name}={value}" if value != "n" else f"# CONFIG_{name} is not set"
            for name, value in self.options.items()
        ]
        files = texts(self.files | {"/boot/config-1": "\n".join(["CONFIG_64BIT=y", *lines, ""])})
        return Facts.model_validate(self.facts), files | {path: {"error": "ENOENT"} for path in self.missing}
