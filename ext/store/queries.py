# SPDX-License-Identifier: MIT
"""Runs the queries of a store."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, distinct, func, select

from rtgauge.record.model import Severity, worst_severity
from rtgauge_ext.store.database import clear_problems
from rtgauge_ext.store.document import (
    MachineRow,
    RecordPoint,
    RecordRow,
    SeriesHistory,
    SeriesPoint,
    SeriesRow,
)
from rtgauge_ext.store.tables import CONFIGURATION, LABEL, MACHINE, RECORD, RESULT, SERIES, STEP, VERDICT

if TYPE_CHECKING:
    from rtgauge_ext.store.store import Store

Query = Any
"""A SELECT whose type parameter holds the types of the columns."""
FROM_RESULT = [name for name in SeriesPoint.model_fields if name in RESULT.c]
"""Columns of a result that a point takes over unchanged."""


@dataclass(frozen=True)
class RecordFilter:
    """Which records a query asks for.

    `machine`: its key, the user's name for it, or its host name. `labels`: labels that the record must have.
    `last`: how many of the newest records (0: all).
    """

    machine: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    last: int = 0

    def among(self, query: Query) -> Query:
        """Return the query, limited to the records asked for and, if a machine is named, to its steps."""
        if self.machine is not None:
            query = query.where(
                RECORD.c.id.in_(
                    select(STEP.c.record_id)
                    .join(MACHINE, MACHINE.c.id == STEP.c.machine_id)
                    .where(self.of_machine())
                )
            )
        for key, value in self.labels.items():
            having = select(LABEL.c.record_id).where(LABEL.c.key == key, LABEL.c.value == value)
            query = query.where(RECORD.c.id.in_(having))
        return query

    def of_machine(self) -> Any:
        """Return the SQL condition that selects the machine in the table MACHINE."""
        return MACHINE.c.key.in_([str(self.machine), f"name:{self.machine}"]) | (
            MACHINE.c.host == self.machine
        )


def count(store: Store) -> int:
    """Return the number of records in the store."""
    with clear_problems(store.path), store.engine.begin() as connection:
        return connection.scalar(select(func.count()).select_from(RECORD)) or 0


def records(store: Store, record_filter: RecordFilter, name: str | None = None) -> list[RecordRow]:
    """Return the records, the oldest first. `name`: only the record with this name."""
    query = record_filter.among(select(RECORD)).order_by(RECORD.c.created.desc(), RECORD.c.id.desc())
    query = query.where(RECORD.c.name == name) if name is not None else query
    query = query.limit(record_filter.last) if record_filter.last else query
    with clear_problems(store.path), store.engine.begin() as connection:
        rows = connection.execute(query).mappings().all()[::-1]
        return _rows(store, connection, rows, every=not record_filter.last and name is None)


def _rows(store: Store, connection: Connection, rows: Sequence[Any], *, every: bool) -> list[RecordRow]:
    def of(table: Any, query: Query) -> dict[int, list[Any]]:
        chosen = query if every else query.where(table.c.record_id.in_([row["id"] for row in rows]))
        by_record: dict[int, list[Any]] = {}
        for number, *rest in connection.execute(chosen):
            by_record.setdefault(number, []).append(rest)
        return by_record

    labels = of(LABEL, select(LABEL.c.record_id, LABEL.c.key, LABEL.c.value))
    verdicts = of(VERDICT, select(VERDICT.c.record_id, VERDICT.c.word).where(VERDICT.c.step_id.is_(None)))
    steps = of(
        STEP,
        select(STEP.c.record_id, STEP.c.worst, MACHINE.c.host, MACHINE.c.key, CONFIGURATION.c.kernel)
        .join(MACHINE, MACHINE.c.id == STEP.c.machine_id)
        .join(CONFIGURATION, CONFIGURATION.c.id == STEP.c.configuration_id),
    )
    return [
        RecordRow(
            record=row["name"],
            path=str(store.place_of(row["path"]) or row["path"]),
            missing=store.is_there(row["path"]) is False,
            **{name: row[name] for name in ("sha256", "created", "state", "plan", "commit", "requirement")},
            labels=dict(labels.get(row["id"], [])),
            verdict=next((word for (word,) in verdicts.get(row["id"], [])), None),
            worst=worst_severity(Severity(worst) for worst, *_ in steps.get(row["id"], []) if worst),
            steps=len(steps.get(row["id"], [])),
            hosts=_distinct(host for _, host, _, _ in steps.get(row["id"], [])),
            machines=_distinct(key for _, _, key, _ in steps.get(row["id"], [])),
            kernels=_distinct(kernel for *_, kernel in steps.get(row["id"], []) if kernel),
        )
        for row in rows
    ]


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def machines(store: Store) -> list[MachineRow]:
    """Return every machine with the number of its records, and the dates of the first and the last."""
    query = (
        select(
            MACHINE.c.key, MACHINE.c.source, MACHINE.c.shared, MACHINE.c.host,
            func.count(distinct(STEP.c.record_id)).label("records"),
            func.min(STEP.c.started).label("first"), func.max(STEP.c.started).label("last"),
        )
        .join(STEP, STEP.c.machine_id == MACHINE.c.id)
        .group_by(MACHINE.c.id)
        .order_by(MACHINE.c.key)
    )  # fmt: skip
    with clear_problems(store.path), store.engine.begin() as connection:
        return [MachineRow(**row) for row in connection.execute(query).mappings()]


def _matches(name: str, pattern: str) -> bool:
    """Return whether a name matches. `*` matches any text, but a part's labels only if the pattern has
    labels.
    """
    if "[" in name and "[" not in pattern:
        return False
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None


def series(store: Store, record_filter: RecordFilter, pattern: str | None = None) -> dict[int, SeriesRow]:
    """Return id -> series. `pattern`: a name or a pattern such as `wakeup/latency/*`; None: only the series
    that stand for a whole step.
    """
    with clear_problems(store.path), store.engine.begin() as connection:
        named = connection.execute(select(SERIES.c.id, SERIES.c.name, SERIES.c.whole)).all()
        chosen = [
            number for number, name, whole in named if (whole if pattern is None else _matches(name, pattern))
        ]
        query = (
            select(
                SERIES.c.id, SERIES.c.name, SERIES.c.unit, SERIES.c.tool, SERIES.c.parameters,
                func.count(RESULT.c.id), func.count(distinct(STEP.c.machine_id)),
                func.min(STEP.c.started), func.max(STEP.c.started),
            )
            .join(RESULT, RESULT.c.series_id == SERIES.c.id)
            .join(STEP, STEP.c.id == RESULT.c.step_id)
            .join(MACHINE, MACHINE.c.id == STEP.c.machine_id)
            .join(RECORD, RECORD.c.id == STEP.c.record_id)
            .where(SERIES.c.id.in_(chosen))
            .group_by(SERIES.c.id)
            .order_by(SERIES.c.name, SERIES.c.id)
        )  # fmt: skip
        query = record_filter.among(query)
        if record_filter.machine is not None:
            query = query.where(record_filter.of_machine())
        keys = ("series", "unit", "tool", "parameters", "results", "machines", "first", "last")
        return {
            number: SeriesRow(**dict(zip(keys, rest, strict=True)))
            for number, *rest in connection.execute(query)
        }


def _points() -> Query:
    return (
        select(
            RECORD.c.name.label("record"),
            STEP.c.name.label("step"),
            STEP.c.started,
            MACHINE.c.key.label("machine"),
            MACHINE.c.host,
            CONFIGURATION.c.key.label("configuration"),
            CONFIGURATION.c.kernel,
            STEP.c.boot_id,
            RECORD.c.commit,
            STEP.c.worst,
            STEP.c.duration_ns,
            *(RESULT.c[name] for name in FROM_RESULT),
        )
        .join(STEP, STEP.c.id == RESULT.c.step_id)
        .join(RECORD, RECORD.c.id == STEP.c.record_id)
        .join(MACHINE, MACHINE.c.id == STEP.c.machine_id)
        .join(CONFIGURATION, CONFIGURATION.c.id == STEP.c.configuration_id)
    )


def courses(store: Store, record_filter: RecordFilter, pattern: str) -> list[SeriesHistory]:
    """Return every series that this name or pattern matches, with its results; empty if no series matches."""
    all_series: list[SeriesHistory] = []
    for number, row in series(store, record_filter, pattern).items():
        query = record_filter.among(_points()).where(RESULT.c.series_id == number)
        if record_filter.machine is not None:
            query = query.where(record_filter.of_machine())
        query = query.order_by(STEP.c.started.desc(), RESULT.c.id.desc())
        query = query.limit(record_filter.last) if record_filter.last else query
        with clear_problems(store.path), store.engine.begin() as connection:
            points = [SeriesPoint(**each) for each in connection.execute(query).mappings()][::-1]
        all_series.append(SeriesHistory(series=row, omitted=row.results - len(points), points=points))
    return all_series


def results(store: Store, name: str) -> list[RecordPoint]:
    """Return all results of a record, in the record's order."""
    query = (
        _points()
        .add_columns(SERIES.c.name.label("series"))
        .join(SERIES, SERIES.c.id == RESULT.c.series_id)
        .where(RECORD.c.name == name)
        .order_by(STEP.c.id, RESULT.c.id)
    )
    with clear_problems(store.path), store.engine.begin() as connection:
        return [RecordPoint(**each) for each in connection.execute(query).mappings()]
