# SPDX-License-Identifier: MIT
"""Computes the history of a series: quantiles, the spread between boots, and suspected changes. A gate can
confirm a change.
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field
from sqlalchemy import select

from rtgauge.analysis import gate_test
from rtgauge.analysis.median_of_runs import LEAST_RUNS, median_interval
from rtgauge.errors import InputError
from rtgauge.extension import Document
from rtgauge.nearest_name import nearest
from rtgauge.record.alternation import DEFAULT_PAIRS
from rtgauge.record.marks import is_doubt
from rtgauge.record.model import Model
from rtgauge.record.quantiles import NAMES, field_of, times_longer
from rtgauge_ext.store import queries
from rtgauge_ext.store.change_points import LENGTHS, change_points
from rtgauge_ext.store.database import clear_problems
from rtgauge_ext.store.tables import CONFIGURATION, LABEL, RECORD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rtgauge_ext.store.document import SeriesPoint, SeriesRow
    from rtgauge_ext.store.store import Store

QUANTILES = {name: f"filled_{field_of(name)}" for name in NAMES if name != "p95"}
"""The quantile -> the field of a SeriesPoint. Missed activations count."""
GROUPS = ("kernel", "commit", "day", "boot", "machine")
LABEL_OF, SETTING_OF = "label:", "setting:"
MOST_NAMED = 5
"""The most changed settings that are named in one place. Otherwise they are only counted."""


class HistoryGroup(Model):
    """Consecutive runs with the same kernel, commit, day, ... A quantile is the median of the boots; a boot
    with several runs counts with their geometric mean.
    """

    group: str
    first: str
    last: str
    runs: int
    boots: int
    """Number of boots with a run, even if none of their runs counts."""
    quantiles_ns: dict[str, int | None]
    low_ns: int | None = Field(
        description="lower end of the 95 % interval of the median, calculated from the differences between "
        f"boots. It allows for boots that resemble the boot before. Null for fewer than {LEAST_RUNS} boots"
    )
    high_ns: int | None
    max_ns: int | None
    doubtful: int
    """Number of runs with a doubtful or invalid mark; the figures leave these runs out."""


class SuspectedChange(Model):
    """A place in the history at which the level of the boots changed."""

    record: str
    """The first record after the change."""
    boots_before: int
    """Number of boots with a figure before the change."""
    started: str
    change: float
    """Relative change of the geometric mean: 0.1 is +10 %."""
    differs: dict[str, tuple[str | None, str | None]]
    """Each kernel, commit, label or setting that differs, with its values before and after."""


class History(Model):
    """The history of one series on one machine."""

    series: str
    tool: str
    machine: str
    host: str
    shared: bool
    """Whether another machine with the same image may have this key."""
    parameters: dict[str, object]
    quantile: str
    groups: list[HistoryGroup]
    boots: int
    """Number of boots with a run, even if none of their runs counts."""
    boots_counted: int
    """Number of boots with a figure that counts."""
    boot_names: frozenset[str] = Field(default=frozenset(), exclude=True)
    spread_between_boots: float | None
    """Relative standard deviation between boots, without the suspected changes."""
    spread_within_boots: float | None
    """Relative standard deviation between the runs of one boot; null if each boot had one run."""
    machines: int
    """Number of machines that have figures of this series."""
    spread_between_machines: float | None
    """Relative standard deviation between machines (of their geometric means), without the part that comes
    from boots; null for one machine, or if each has one boot.
    """
    detectable: float | None = Field(
        description=f"smallest relative change that a gate of {DEFAULT_PAIRS} pairs would detect with this "
        f"spread between boots"
    )
    changes: list[SuspectedChange]
    enough: bool
    """Whether there are enough boots to look for changes."""


class StoreHistory(Model):
    """The document of `rtgauge store history --json`."""

    store: str
    histories: list[History]


DOCUMENT = Document("what rtgauge store history --json prints", (StoreHistory,))


def histories(
    store: Store, record_filter: queries.RecordFilter, pattern: str, quantile: str, by: str
) -> list[History]:
    """Return a history for each series of this name or pattern, and each machine.

    `by`: one of GROUPS, `label:KEY` or `setting:NAME`. Raises InputError for another `by` or another
    quantile.
    """
    if quantile not in QUANTILES:
        raise InputError(f"--quantile {quantile} is not one of {', '.join(QUANTILES)}")
    if by not in GROUPS and not by.startswith((LABEL_OF, SETTING_OF)):
        raise InputError(f"--by {by} is unknown{nearest(by, (*GROUPS, 'label:KEY', 'setting:NAME'))}")
    _check_known(store, by)
    shared = {row.key: row.shared for row in queries.machines(store)}
    matching: list[History] = []
    for course in queries.courses(store, record_filter, pattern):
        known = _Known(store, course.points)
        of_machine: dict[str, list[SeriesPoint]] = {}
        for point in course.points:
            of_machine.setdefault(point.machine, []).append(point)
        parts = _levels_of_machines(of_machine.values(), quantile)
        for machine, points in of_machine.items():
            history = _history(points, quantile, known, by, course.series, shared=shared.get(machine, False))
            history.machines, history.spread_between_machines = len(parts), _spread_of_means(parts)
            matching.append(history)
    return matching


def _check_known(store: Store, by: str) -> None:
    """Raise InputError if no record has the label or setting that `by` names."""
    with clear_problems(store.path), store.engine.begin() as connection:
        if by.startswith(LABEL_OF):
            known = {f"{LABEL_OF}{key}" for key in connection.scalars(select(LABEL.c.key).distinct())}
        elif by.startswith(SETTING_OF):
            every = connection.scalars(select(CONFIGURATION.c.settings))
            known = {f"{SETTING_OF}{name}" for settings in every for name in settings}
        else:
            return
    if by not in known:
        what = "label" if by.startswith(LABEL_OF) else "setting"
        raise InputError(
            f"--by {by}: none of the records in the store has such a "
            f"{what}{nearest(by, known) if known else ''}"
        )


class _Known:
    """The known labels and settings of points."""

    def __init__(self, store: Store, points: Sequence[SeriesPoint]) -> None:
        with clear_problems(store.path), store.engine.begin() as connection:
            keys = {point.configuration for point in points}
            self._settings: Mapping[str, Mapping[str, object]] = {
                key: settings
                for key, settings in connection.execute(select(CONFIGURATION.c.key, CONFIGURATION.c.settings))
                if key in keys
            }
            self._labels: dict[str, dict[str, str]] = {}
            labels = select(RECORD.c.name, LABEL.c.key, LABEL.c.value).join(
                LABEL, LABEL.c.record_id == RECORD.c.id
            )
            for record, key, value in connection.execute(labels):
                self._labels.setdefault(record, {})[key] = value

    def of(self, point: SeriesPoint) -> dict[str, str]:
        """Return everything that may explain a change, as name -> value."""
        named = {"kernel": point.kernel, "commit": point.commit}
        labels = {f"{LABEL_OF}{key}": value for key, value in self._labels.get(point.record, {}).items()}
        settings = {
            f"{SETTING_OF}{key}": str(value) for key, value in self._settings[point.configuration].items()
        }
        return {key: value for key, value in named.items() if value is not None} | labels | settings

    def group_of(self, by: str) -> Callable[[SeriesPoint], str]:
        """Return the function that gives the name of a point's group."""
        if by.startswith((LABEL_OF, SETTING_OF)) or by in ("kernel", "commit"):
            return lambda point: self.of(point).get(by, "unknown")
        if by == "boot":
            return _boot_of
        if by == "machine":
            return lambda point: point.host
        return lambda point: point.started[:10]


def _boot_of(point: SeriesPoint) -> str:
    """Return the boot of a run; if it is unknown, the record, because few records span boots."""
    return point.boot_id or point.record


def _resolution(boots: Sequence[Sequence[SeriesPoint]], quantile: str) -> list[float]:
    """Return the step in which each boot's logarithm is known: a bin of the histogram, or the largest power
    of ten in ns of which all values are multiples.
    """
    values = [[_value(run, quantile) or 1 for run in runs] for runs in boots]
    step_ns = 1
    while all(value % (10 * step_ns) == 0 for of_boot in values for value in of_boot):
        step_ns *= 10
    return [max(gate_test.RESOLUTION, step_ns / min(of_boot)) for of_boot in values]


def _boots(points: Sequence[SeriesPoint], quantile: str) -> list[list[SeriesPoint]]:
    """Return the runs with a figure, grouped by boot."""
    certain = [point for point in points if _value(point, quantile) is not None]
    return [list(runs) for _, runs in groupby(certain, key=_boot_of)]


def _levels(boots: Sequence[Sequence[SeriesPoint]], quantile: str) -> list[float]:
    """Return each boot's mean logarithm of the quantile."""
    return [float(np.mean([math.log(_value(run, quantile) or 1) for run in runs])) for runs in boots]


def _levels_of_machines(machines: Iterable[Sequence[SeriesPoint]], quantile: str) -> list[list[float]]:
    """Return the levels of each machine's boots; a machine without boots is left out."""
    levels = (_levels(_boots(points, quantile), quantile) for points in machines)
    return [of_machine for of_machine in levels if of_machine]


def _spread_of_means(parts: Sequence[Sequence[float]]) -> float | None:
    """Return the standard deviation of the parts' means, without the spread that comes from within the parts
    (moments of a one-way random effects model). None for fewer than two parts, or if each part has one value.
    """
    within = _pooled_spread(parts)
    if len(parts) < 2 or within is None:
        return None
    adds = within**2 * float(np.mean([1 / len(part) for part in parts]))
    return math.sqrt(max(float(np.var([np.mean(part) for part in parts], ddof=1)) - adds, 0.0))


def _history(
    points: Sequence[SeriesPoint], quantile: str, known: _Known, by: str, series: SeriesRow, *, shared: bool
) -> History:
    boots = _boots(points, quantile)
    levels = _levels(boots, quantile)
    resolution = _resolution(boots, quantile) if boots else 0.0
    places = change_points(levels, resolution, least=math.log1p(gate_test.LEAST_CHANGE))
    parts = [levels[a:b] for a, b in zip([0, *places], [*places, len(levels)], strict=True)]
    between = _pooled_spread(parts)
    group_of = known.group_of(by)
    return History(
        series=series.series,
        tool=series.tool,
        machine=points[-1].machine,
        host=points[-1].host,
        shared=shared,
        parameters=series.parameters,
        quantile=quantile,
        groups=[_group(name, list(of), quantile) for name, of in groupby(points, key=group_of)],
        boots=len({_boot_of(point) for point in points}),
        boots_counted=len(boots),
        boot_names=frozenset(_boot_of(point) for point in points),
        spread_between_boots=between,
        spread_within_boots=_pooled_spread(
            [[math.log(_value(run, quantile) or 1) for run in runs] for runs in boots]
        ),
        machines=1,
        spread_between_machines=None,
        detectable=None if between is None else gate_test.detectable(between, DEFAULT_PAIRS),
        changes=[
            _change(place, boots[place - 1][-1], boots[place][0], (part, following), known)
            for place, part, following in zip(places, parts, parts[1:], strict=False)
        ],
        enough=len(levels) >= LENGTHS[0],
    )


def _value(point: SeriesPoint, quantile: str) -> int | None:
    """Return a run's quantile; None if it is doubtful, unknown, a bound, or not above 0."""
    field = QUANTILES[quantile]
    value: int | None = getattr(point, field)
    bounded = field.removeprefix("filled_") in point.lower_bounds
    short = times_longer(field.removeprefix("filled_"), point.count + point.missed) is not None
    return None if value is None or value <= 0 or bounded or short or is_doubt(point.worst) else value


def _pooled_spread(parts: Sequence[Sequence[float]]) -> float | None:
    """Return the pooled standard deviation within the parts; None if each part has one value."""
    freedom = sum(len(part) - 1 for part in parts)
    if freedom < 1:
        return None
    squares = sum(float(((np.asarray(part) - np.mean(part)) ** 2).sum()) for part in parts if part)
    return math.sqrt(squares / freedom)


def _group(name: str, points: Sequence[SeriesPoint], quantile: str) -> HistoryGroup:
    boots = _boots(points, quantile)
    low, high = map(_ns, median_interval(_levels(boots, quantile)) or (None, None))
    return HistoryGroup(
        group=name,
        first=points[0].started,
        last=points[-1].started,
        runs=len(points),
        boots=len({_boot_of(point) for point in points}),
        quantiles_ns={each: _median_ns(points, each) for each in QUANTILES},
        low_ns=low,
        high_ns=high,
        max_ns=max(
            (
                point.filled_max_ns
                for point in points
                if point.filled_max_ns is not None and not is_doubt(point.worst)
            ),
            default=None,
        ),
        doubtful=sum(is_doubt(point.worst) for point in points),
    )


def _median_ns(points: Sequence[SeriesPoint], quantile: str) -> int | None:
    levels = _levels(_boots(points, quantile), quantile)
    return _ns(float(np.median(levels))) if levels else None


def _ns(log: float | None) -> int | None:
    return None if log is None or log >= math.log(2**63) else round(math.exp(log))


def _change(
    place: int,
    last: SeriesPoint,
    first: SeriesPoint,
    levels: tuple[Sequence[float], Sequence[float]],
    known: _Known,
) -> SuspectedChange:
    before, after = levels
    of_last, of_first = known.of(last), known.of(first)
    names = [name for name in {**of_last, **of_first} if of_last.get(name) != of_first.get(name)]
    return SuspectedChange(
        record=first.record,
        boots_before=place,
        started=first.started,
        change=math.expm1(float(np.mean(after) - np.mean(before))),
        differs={name: (of_last.get(name), of_first.get(name)) for name in names},
    )
