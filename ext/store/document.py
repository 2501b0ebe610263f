# SPDX-License-Identifier: MIT
"""Defines the documents that `rtgauge store --json` prints, and the rows that a store returns. Times are
integers in ns.
"""

from __future__ import annotations

from rtgauge.extension import Document
from rtgauge.record.model import Model, Severity, VerdictWord


class Added(Model):
    """The result of adding one record. `error`: why it was not added."""

    path: str
    record: str | None
    """The record's name; null if it could not be read."""
    outcome: str | None
    """Added, updated, moved or unchanged; null if it failed."""
    error: str | None = None


class StoreAdded(Model):
    """The document of `store add --json`."""

    store: str
    added: list[Added]


class StoreRemoved(Model):
    """The document of `store rm --json`."""

    store: str
    removed: list[str]


class StoreRebuilt(Model):
    """The document of `store rebuild --json`."""

    store: str
    read: int
    """Number of records that were read again."""
    failed: list[Added]
    missing: list[str]
    """Records whose folder no longer exists."""
    put_aside: str | None
    """Path to which a damaged store was moved; null if the store was not damaged."""


class MachineRow(Model):
    """A machine that the store knows."""

    key: str
    source: str
    """What identifies the machine: name, dmi, device-tree, soc, machine-id or address."""
    shared: bool
    """Whether another machine with the same image may have this key."""
    host: str
    """The machine's last host name."""
    records: int
    first: str
    last: str


class RecordRow(Model):
    """A record in the store. `missing`: its folder no longer exists."""

    record: str
    path: str
    missing: bool
    sha256: str
    created: str
    state: str
    plan: str | None
    commit: str | None
    labels: dict[str, str]
    requirement: str | None
    verdict: VerdictWord | None
    """The verdict on the whole run."""
    worst: Severity | None
    """The highest severity of a mark."""
    steps: int
    hosts: list[str]
    machines: list[str]
    kernels: list[str]


class SeriesRow(Model):
    """A series of the store, measured on any machines."""

    series: str
    unit: str
    tool: str
    parameters: dict[str, object]
    results: int
    machines: int
    first: str
    last: str


class SeriesPoint(Model):
    """One step's result for a series."""

    record: str
    step: str
    started: str
    machine: str
    host: str
    configuration: str
    """Hash of the machine's settings; machines with equal settings have the same hash."""
    kernel: str | None
    boot_id: str | None
    commit: str | None
    worst: Severity | None
    duration_ns: int | None
    count: int
    missed: int
    min_ns: int | None
    p50_ns: int | None
    p99_ns: int | None
    p99_9_ns: int | None
    p99_99_ns: int | None
    p99_999_ns: int | None
    max_ns: int | None
    filled_p50_ns: int | None
    filled_p99_ns: int | None
    filled_p99_9_ns: int | None
    filled_p99_99_ns: int | None
    filled_p99_999_ns: int | None
    filled_max_ns: int | None
    lower_bounds: list[str]


class SeriesHistory(Model):
    """A series with its results, the oldest first. `omitted`: how many older results are not listed."""

    series: SeriesRow
    omitted: int
    points: list[SeriesPoint]


class StoreListed(Model):
    """The document of `store list --json`. A list is null if it was not asked for, and `records` may have
    fewer records than the store.
    """

    store: str
    total: int
    """How many records the store has."""
    records: list[RecordRow] | None = None
    series: list[SeriesRow] | None = None
    machines: list[MachineRow] | None = None


class RecordPoint(SeriesPoint):
    """A record's result, with the name of its series."""

    series: str


class StoreShown(Model):
    """The document of `store show --json`: a record with its results, or series with their results."""

    store: str
    record: RecordRow | None = None
    results: list[RecordPoint] | None = None
    courses: list[SeriesHistory] | None = None


DOCUMENT = Document(
    "what rtgauge store add, list, show, rm and rebuild print with --json",
    (StoreAdded, StoreListed, StoreShown, StoreRemoved, StoreRebuilt),
)
