# SPDX-License-Identifier: MIT
"""Defines the documents that `rtgauge store --json` prints, and the rows that a store returns. Times are
integers in ns.
"""

from __future__ import annotations

from pydantic import Field

from rtgauge.record.model import Model, Severity, VerdictWord


class Added(Model):
    """One record that was to be added. `error`: why it was not added."""

    path: str
    record: str | None = Field(description="its name; null if it could not be read")
    outcome: str | None = Field(description="added, updated, moved or unchanged; null if it failed")
    error: str | None = None


class StoreAdded(Model):
    """`store add --json`."""

    store: str
    added: list[Added]


class StoreRemoved(Model):
    """`store rm --json`."""

    store: str
    removed: list[str]


class StoreRebuilt(Model):
    """`store rebuild --json`."""

    store: str
    read: int = Field(description="records that were read again")
    failed: list[Added]
    missing: list[str] = Field(description="records whose folder is gone")
    dropped: bool = Field(description="whether these were taken out of the store")
    put_aside: str | None = Field(description="where a damaged store was put")


class MachineRow(Model):
    """A machine that the store knows."""

    key: str
    source: str = Field(description="name, dmi, device-tree, soc, machine-id or address")
    shared: bool = Field(description="whether another machine with the same image may have this key")
    host: str = Field(description="its last host name")
    records: int
    first: str
    last: str


class RecordRow(Model):
    """A record in the store. `missing`: its folder is gone."""

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
    verdict: VerdictWord | None = Field(description="on the whole run")
    worst: Severity | None = Field(description="of the marks on its steps")
    steps: int
    hosts: list[str]
    machines: list[str]
    kernels: list[str]


class SeriesRow(Model):
    """A series: what was measured, on whatever machine."""

    series: str
    unit: str
    tool: str
    parameters: dict[str, object]
    results: int
    machines: int
    first: str
    last: str


class Point(Model):
    """What one step of one record measured of a series."""

    record: str
    step: str
    started: str
    machine: str
    host: str
    configuration: str = Field(description="the same for equal settings of the machine")
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
    max_ns: int | None
    filled_p50_ns: int | None
    filled_p99_ns: int | None
    filled_p99_9_ns: int | None
    filled_p99_99_ns: int | None
    filled_max_ns: int | None
    lower_bounds: list[str]


class Course(Model):
    """A series and its results, the oldest first. `omitted`: how many older ones are not listed."""

    series: SeriesRow
    omitted: int
    points: list[Point]


class StoreListed(Model):
    """`store list --json`. `records`: how many the store has; the lists have what was requested."""

    store: str
    total: int = Field(description="records in the store")
    records: list[RecordRow] | None = None
    series: list[SeriesRow] | None = None
    machines: list[MachineRow] | None = None


class RecordPoint(Point):
    """A result of a record with the name of its series."""

    series: str


class StoreShown(Model):
    """`store show --json`: a record with its results, or courses of series."""

    store: str
    record: RecordRow | None = None
    results: list[RecordPoint] | None = None
    courses: list[Course] | None = None
