# SPDX-License-Identifier: MIT
"""What an extension that audits machines gives a run: a summary of a machine's settings for its facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from rtgauge.extension import load, registered
from rtgauge.record.facts import AuditSummary, Facts
from rtgauge.target.file_batch import Files


@dataclass(frozen=True)
class Auditor:
    """Audits a machine."""

    paths: Callable[[], list[str]]
    """Returns the files that the audit needs in addition to the facts'."""
    summary: Callable[[Facts, Files], AuditSummary]
    """Summarises an audit, from the facts and these files."""


def auditor() -> Auditor | None:
    """Return the auditor of the first extension that has one; None if none has.

    Raises InputError if the extension cannot be used.
    """
    name = next(iter(registered("auditors")), None)
    return None if name is None else cast("Auditor", load("auditors", name, Auditor))
