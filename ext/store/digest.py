# SPDX-License-Identifier: MIT
"""Makes the rows that the store keeps of a record, without using the database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rtgauge.analysis.differing_settings import flat
from rtgauge.record.facts import Facts
from rtgauge.record.model import Distribution, SeriesSummary, Step
from rtgauge.record.reader import Record, described_in
from rtgauge.record.record_folder import RecordFolder
from rtgauge.record.watched_loop import definitions_of
from rtgauge.system.hardware import SHARED
from rtgauge_ext.store.labels import LABELS, Labels, read_labels
from rtgauge_ext.store.tables import FIGURES

Row = dict[str, Any]
"""Maps a column to its value."""
VOLATILE = {"identity", "host", "interrupts", "tasks", "machine.evidence", "memory.total_bytes"}
"""Facts that are not settings, or that change from boot to boot."""
NOT_OF_THE_SERIES = {"explain_buffer_kb", "window_ns"}
"""Parameters that affect only how a record is stored, and not the measurement."""


@dataclass(frozen=True)
class StepDigest:
    """The rows of one step. `results`: (series, its figures)."""

    row: Row
    machine: MachineDigest
    peer: MachineDigest | None
    configuration: Row
    results: list[tuple[Row, Row]]
    marks: list[Row]


@dataclass(frozen=True)
class Digest:
    """The rows of one record. `verdicts`: (id of the step, row); None for the run."""

    row: Row
    labels: dict[str, str]
    steps: list[StepDigest] = field(default_factory=list[StepDigest])
    marks: list[Row] = field(default_factory=list[Row])
    verdicts: list[tuple[str | None, Row]] = field(default_factory=list[tuple[str | None, Row]])


def key_of(*parts: object) -> str:
    """Return a short name for values that JSON can hold. Equal values have the same name."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def checksum_of(folder: RecordFolder) -> str:
    """Return the SHA-256 of the files from which the store is made; step.json covers the others. Raises
    OSError.
    """
    total = hashlib.sha256()
    run, *others = described_in(folder)
    for name in (run, LABELS, *others):
        if folder.has(name):
            with folder.file(name).open() as file:
                total.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()


def digest_of(record: Record, sha256: str) -> Digest:
    """Return everything that the store keeps of a record. `sha256` comes from `checksum_of`. Raises
    RecordError.
    """
    run, labels = record.run, read_labels(record.folder)
    row: Row = {
        "name": run.id,
        "sha256": sha256,
        "created": run.created,
        "ended": run.ended,
        "plan": str(run.plan.get("name")) if run.plan.get("name") is not None else None,
        "requirement": run.requirement,
        "commit": labels.commit,
        "state": run.state,
        "rtgauge": run.rtgauge,
    }
    words = ("word", "requirement", "reason")
    return Digest(
        row,
        labels.labels,
        [_step(record, step, labels) for step in record.steps],
        [_mark(mark.name, mark.severity, mark.detail, mark.series) for mark in run.marks],
        [(verdict.step, {word: str(getattr(verdict, word)) for word in words}) for verdict in run.verdicts],
    )


def _mark(name: str, severity: str, detail: str, number: int | None) -> Row:
    return {"name": name, "severity": str(severity), "detail": detail, "number": number}


def _step(record: Record, step: Step, labels: Labels) -> StepDigest:
    target = step.key.targets.get("self", "local")
    facts = record.system(target)
    peer = step.key.peer
    # The facts are from the boot in which the run began. A step that booted its deployment had another boot.
    booted = step.deployment is not None and step.deployment.by == "boot"
    row: Row = {
        "name": step.id,
        "boot_id": step.boot_id or (None if booted else facts.boot_id or None),
        "worst": None if step.worst is None else str(step.worst),
        "started": step.started,
        "ended": step.ended,
        "tool_version": step.tool,
        "end_reason": step.end_reason,
        "repeat": step.key.repeat,
        "duration_ns": _duration_ns(step),
        "emulated": step.emulated or facts.machine.emulated is True,
        "answers": [result.model_dump(mode="json") for result in step.results],
    }
    return StepDigest(
        row,
        machine_of(facts, target, labels.machines.get(target)),
        None
        if peer is None
        else machine_of(record.system(peer.target), peer.target, labels.machines.get(peer.target)),
        configuration_of(facts),
        list(_results(step)),
        [_mark(mark.name, mark.severity, mark.detail, mark.series) for mark in step.marks],
    )


def _duration_ns(step: Step) -> int | None:
    if step.start_ns is not None and step.end_ns is not None:
        return step.end_ns - step.start_ns
    try:
        span = datetime.fromisoformat(step.ended) - datetime.fromisoformat(step.started)
    except (ValueError, TypeError):
        return None
    return round(span.total_seconds() * 10**9) or None


def configuration_of(facts: Facts) -> Row:
    """Return the kernel and every other fact that is a setting. Records with equal settings get the
    same key.
    """
    settings = {
        name: value
        for name, value in flat(facts.as_json()).items()
        if name not in VOLATILE and name.split(".")[0] not in VOLATILE
    }
    return {
        "key": key_of(settings),
        "kernel": facts.kernel.release,
        "kernel_version": facts.kernel.version,
        "preemption": facts.kernel.preemption.model,
        "settings": settings,
    }


def _results(step: Step) -> Iterable[tuple[Row, Row]]:
    for summary in (*step.series, *([] if step.total is None else [step.total])):
        whole = summary is step.total
        figures: Row = {"number": summary.series}
        figures |= {name: getattr(summary, name) for name in ("count", "missed", "lost", "impossible")}
        figures |= {
            "mean_ns": summary.mean_ns,
            "std_ns": summary.std_ns,
            "lower_bounds": summary.lower_bounds,
        }
        figures |= _figures(summary) | _figures(summary.filled, "filled_")
        yield series_of(step, summary, whole=whole), figures


def _figures(distribution: Distribution, prefix: str = "") -> Row:
    return {f"{prefix}{name}": getattr(distribution, name) for name in FIGURES}


def series_of(step: Step, summary: SeriesSummary, *, whole: bool) -> Row:
    """Return the row of a series, without machine, kernel and settings.

    `name`: PROBE/METRIC/LOAD/DEPLOYMENT, followed by the labels of a part, such as `[cpu=1]`. Series with the
    same name differ in their parameters.
    """
    key = step.key
    parameters = {
        name: value
        for name, value in key.parameters.values.items()
        if value is not None and name not in NOT_OF_THE_SERIES
    }
    if (definitions := definitions_of(step)) is not None and definitions > 1:
        parameters["definitions"] = definitions  # values by other definitions are another series
    labels = {} if whole else dict(summary.labels)
    parts = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
    name = f"{key.probe}/{summary.metric}/{key.load}/{key.deployment}"
    row: Row = {
        "name": name if whole else f"{name}[{parts}]",
        "probe": key.probe,
        "metric": summary.metric,
        "unit": summary.unit,
        "load": key.load,
        "deployment": key.deployment,
        "tool": key.tool,
        "whole": whole,
        "labels": labels,
        "parameters": parameters,
    }
    return {"key": key_of(row, sorted(key.targets)), **row}


OWN_NAME, ADDRESS = "name", "address"


@dataclass(frozen=True)
class MachineDigest:
    """A machine. `key`: `SOURCE:...`. `shared`: other machines with the same image may have this key. `host`
    is only for display.
    """

    key: str
    source: str
    shared: bool
    host: str


def machine_of(facts: Facts, target: str, name: str | None = None) -> MachineDigest:
    """Return the machine with these facts. `target`: the run's name for it. `name`: the user's name for it.

    Without a serial number, the target's address is part of the key, so that boards with the same image have
    different keys. The key of a local machine then also has its host name.
    """
    host = facts.host or target
    if name is not None:
        return MachineDigest(f"{OWN_NAME}:{name}", OWN_NAME, shared=False, host=host)
    source, number = facts.identity.source, facts.identity.hash
    if source is not None and number is not None and source != SHARED:
        return MachineDigest(f"{source}:{number}", source, shared=False, host=host)
    where = f"{target}\0{host}" if target == "local" else target
    if number is not None:
        both = hashlib.sha256(f"{number}\0{where}".encode(errors="replace")).hexdigest()[:32]
        return MachineDigest(f"{SHARED}:{both}", SHARED, shared=True, host=host)
    return MachineDigest(
        f"{ADDRESS}:{host if target == 'local' else target}", ADDRESS, shared=True, host=host
    )
