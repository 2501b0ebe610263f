# SPDX-License-Identifier: MIT
"""What an extension that audits machines gives a run: its rules, a summary of a machine's settings for its
facts, the facts of a network interface, and the settings with which a machine meets rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

from rtgauge.errors import InputError
from rtgauge.extension import load, registered
from rtgauge.known_extensions import from_where

if TYPE_CHECKING:
    from rtgauge.record.facts import AuditSummary, Facts, InterruptLine, NetworkInterface
    from rtgauge.system.deployment.machine_state import Machine, Setting
    from rtgauge.target.file_batch import Files, Read


class AuditRule(NamedTuple):
    """A rule of the audit."""

    title: str
    """The wanted state, as a sentence."""
    remedy: str
    """How to meet the rule, for the reader."""
    boot: tuple[str, ...] = ()
    """The boot parameters that meet it, if a deployment can try it by them."""
    has_settings: bool = False
    """Whether a deployment can meet it by settings on the running machine."""
    needs_cpus: bool = False
    """Whether these settings need the real-time CPUs."""
    needs_program: bool = False
    """Whether these settings need the watched program."""


@dataclass(frozen=True)
class Auditor:
    """Audits a machine."""

    rules: Callable[[], Mapping[str, AuditRule]]
    """Returns all rules by id, in the order of the audit."""
    paths: Callable[[], list[str]]
    """Returns the files that the audit needs in addition to the facts'."""
    summary: Callable[[Facts, Files], AuditSummary]
    """Summarises an audit, from the facts and these files."""
    interface_of: Callable[[Read, str], str]
    """Returns the name of an interface that is given by its name or by the IP address of a peer. Raises
    InputError if there is no such interface, MeasureError if the peer has no route.
    """
    interface_paths: Callable[[str], list[str]]
    """Returns what to read for the facts of an interface."""
    interface_facts: Callable[[str, Files, Mapping[str, InterruptLine]], NetworkInterface]
    """Returns the facts of an interface, from these paths and all interrupts."""
    trial_paths: Callable[[Iterable[str]], list[str]]
    """Returns the files to read for the trials of these rules."""
    trial_settings: Callable[[Iterable[str], Machine, str | None, int | None, str | None], list[Setting]]
    """Returns the settings with which a machine meets these rules. The other arguments are the real-time
    CPUs, the process of the watched program, and the only network interface to change.
    """
    side_effects: Callable[[Iterable[Setting], Machine], list[str]]
    """Returns the files whose values the kernel changes when it accepts these settings."""


def auditor() -> Auditor | None:
    """Return the auditor of the first extension that has one; None if none has.

    Raises InputError if the extension cannot be used.
    """
    name = next(iter(registered("auditors")), None)
    return None if name is None else cast("Auditor", load("auditors", name, Auditor))


def audit_rules() -> Mapping[str, AuditRule]:
    """Return the rules of the audit by id; empty if no extension audits."""
    return {} if (known := auditor()) is None else known.rules()


def needed_auditor(why: str) -> Auditor:
    """Return the auditor that `why`, such as an option, needs. Raises InputError if there is none."""
    if (known := auditor()) is None:
        raise InputError(f"{why} cannot be used{from_where('commands', 'audit')}")
    return known
