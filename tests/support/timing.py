# SPDX-License-Identifier: MIT
"""Writes records of wakeup, response and periodic steps from plain lists of values, so that frequencies and
advice can be tested without measuring.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rtgauge.record.histogram import bin_of, signed_bin_of
from rtgauge.record.model import LoadReport, Mark, Result, Run, Step, StepKey
from rtgauge.record.reader import Record
from rtgauge.record.stream import SeriesLine
from rtgauge.record.summary import summarise_step
from rtgauge.record.windows import Windows
from rtgauge.record.windows_file import write_windows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FACTS = {
    "host": "board",
    "os": "Debian",
    "kernel": {"release": "6.12.0", "preemption": {"model": "full"}},
    "machine": {"virtual": False, "emulated": False},
}


def facts(model: str = "full", **more: Any) -> dict[str, Any]:
    """Facts of a machine whose kernel's preemption model is this."""
    return {**FACTS, "kernel": {"release": f"6.12.0-{model.lower()}", "preemption": {"model": model}}, **more}


@dataclass
class Series:
    """One series: its values (ns, signed), in order, and the missed activations: with latencies, or `lost`
    without.
    """

    values: Sequence[int]
    metric: str = "latency"
    labels: dict[str, str | int] = field(default_factory=lambda: {"cpu": 0})
    missed: Sequence[int] = ()
    lost: int = 0
    windows: int = 1


@dataclass
class Drawn:
    """One step."""

    series: list[Series]
    probe: str = "wakeup"
    parameters: dict[str, Any] = field(default_factory=lambda: {"interval_ns": 1_000_000})
    load: str = "idle"
    repeat: int = 1
    marks: list[Mark] = field(default_factory=list)
    deployment: str = "as-is"
    results: list[Result] = field(default_factory=list)


def _window(number: int, index: int, values: np.ndarray, item: Series) -> dict[str, Any]:
    missed = np.asarray(item.missed if index == 0 else (), dtype=np.int64)
    lost = item.lost if index == 0 else 0
    bins, counts = np.unique(signed_bin_of(values), return_counts=True)
    missed_bins, missed_counts = np.unique(bin_of(missed), return_counts=True)
    return {
        "series": number, "phase": "measure", "index": index, "start_ns": index * 10**9,
        "end_ns": (index + 1) * 10**9,
        "count": len(values), "missed": len(missed) + lost,
        "min_ns": int(values.min()) if len(values) else None,
        "max_ns": int(values.max()) if len(values) else None,
        "sum_ns": int(values.sum()),
        "m2_ns2": float(((values - values.mean()) ** 2).sum()) if len(values) else 0.0,
        "bins": bins.tolist(), "counts": counts.tolist(), "missed_bins": missed_bins.tolist(),
        "missed_counts": missed_counts.tolist(),
    }  # fmt: skip


def _step(number: int, drawn: Drawn) -> tuple[Step, Windows]:
    rows = [
        _window(at, index, part, item)
        for at, item in enumerate(drawn.series)
        for index, part in enumerate(np.array_split(np.asarray(item.values, dtype=np.int64), item.windows))
    ]
    windows = Windows.of_rows(rows)
    lines = [
        SeriesLine(type="series", series=at, metric=item.metric, unit="ns", labels=item.labels)
        for at, item in enumerate(drawn.series)
    ]
    summary = summarise_step(windows, lines)
    step = Step(
        id=f"{number:02d}-{drawn.probe}-{drawn.load}" + (f"-{drawn.repeat}" if drawn.repeat > 1 else ""),
        key=StepKey(
            probe=drawn.probe, parameters=drawn.parameters, load=drawn.load, deployment=drawn.deployment,
            targets={"self": "local"}, repeat=drawn.repeat
        ),
        tool="rtgauge-engine 0.1.0", started="2026-11-21T10:03:22Z", ended="2026-11-21T10:03:32Z", start_ns=0,
        end_ns=10**10, end_reason="duration",
        parameters=drawn.parameters, cpus=[0], load=LoadReport(name=drawn.load), series=summary.series,
        total=summary.total, outliers=[], marks=drawn.marks,
        results=drawn.results,
    )  # fmt: skip
    return step, windows


def record(folder: Path, steps: Sequence[Drawn], system: dict[str, Any] | None = None) -> Record:
    """Write the steps as a record into `folder` and read it."""
    finished: list[Step] = []
    for number, drawn in enumerate(steps, 1):
        step, windows = _step(number, drawn)
        place = folder / "steps" / step.id
        place.mkdir(parents=True)
        (place / "step.json").write_text(step.model_dump_json(), encoding="utf-8")
        with (place / "windows.parquet").open("wb") as file:
            write_windows(windows, file)
        finished.append(step)
    (folder / "targets" / "local").mkdir(parents=True)
    (folder / "targets" / "local" / "system.json").write_text(
        json.dumps(FACTS if system is None else system), encoding="utf-8"
    )
    run = Run(
        id=folder.name, created="2026-11-21T10:03:22Z", state="complete", rtgauge="0.1.0",
        command=["rtgauge", "run"], plan={"name": "test"},
        targets=["local"], steps=[step.id for step in finished], planned=[step.key for step in finished],
    )  # fmt: skip
    (folder / "run.json").write_text(run.model_dump_json(), encoding="utf-8")
    return Record.open(folder)
