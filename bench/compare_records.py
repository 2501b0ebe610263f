# SPDX-License-Identifier: MIT
"""How long `rtgauge compare` takes for six records of 6 million activations each, from their windows, on one
core.

The records are made: ten minutes at 100 us on one CPU (Delgado and Choi's experiment), a window a second. The
whole process is
measured, imports included, with the files in the page cache, with everything that is shown but the intervals,
whose time is told beside it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from figures import CannotMeasure, Figure, Findings, line
from programs import last_cpu, say

RECORDS, SECONDS, INTERVAL_NS = 6, 600, 100_000
TIMES = 7
SECONDS_LIMIT = 1.2
NS = 10**9
CODE = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv.pop(1))})
from rtgauge.cli.main import main
main()
"""


def make(folder: Path, number: int) -> Path:
    """Writes one record as a run leaves it: its windows, and the figures that follow from them."""
    from rtgauge.record.histogram import bin_of
    from rtgauge.record.merged_windows import merge
    from rtgauge.record.model import LoadReport, Run, SeriesSummary, Step, StepKey, WarmUp
    from rtgauge.record.summary import distribution, filled_distribution
    from rtgauge.record.windows import Windows
    from rtgauge.record.windows_file import write_windows

    rng = np.random.default_rng(number)
    activations = NS // INTERVAL_NS
    rows: list[dict[str, object]] = []
    for index in range(SECONDS):
        values = rng.lognormal(np.log(6_000 + 500 * number), 0.3, activations)
        late = rng.random(activations) < 2e-4
        values[late] += rng.lognormal(np.log(30_000), 0.5, int(late.sum()))
        whole = values.astype(np.int64)
        bins, counts = np.unique(bin_of(whole), return_counts=True)
        rows.append(
            {
                "series": 0,
                "index": index,
                "phase": "measure",
                "start_ns": index * NS,
                "end_ns": (index + 1) * NS,
                "count": activations,
                "missed": 0,
                "min_ns": int(whole.min()),
                "max_ns": int(whole.max()),
                "sum_ns": int(whole.sum()),
                "m2_ns2": float(((whole - whole.mean()) ** 2).sum()),
                "bins": bins.tolist(),
                "counts": counts.tolist(),
                "missed_bins": [],
                "missed_counts": [],
            }
        )
    windows = Windows.of_rows(rows)
    merged = merge(windows, limits_ns={})
    figures = {
        "metric": "latency",
        "unit": "ns",
        "missed": 0,
        "exact_quantiles": False,
        "filled": filled_distribution(merged),
        "warm_up": WarmUp(),
    }
    summary = SeriesSummary(series=0, labels={"cpu": 1}, **figures, **distribution(merged).model_dump())
    deployment = ["CHM", "HM", "HMI", "M", "MI", "Single"][number]
    key = StepKey(
        probe="wakeup",
        parameters={"interval_ns": INTERVAL_NS},
        load="idle",
        deployment=deployment,
        targets={"self": "local"},
        repeat=1,
    )
    moment = "2026-11-21T10:00:00Z"
    step = Step(
        id="01-wakeup-idle",
        key=key,
        tool="made up",
        started=moment,
        ended=moment,
        start_ns=0,
        end_ns=SECONDS * NS,
        end_reason="duration",
        parameters={"interval_ns": INTERVAL_NS},
        cpus=[1],
        load=LoadReport(name="idle"),
        series=[summary],
        total=summary.model_copy(update={"series": None, "labels": {}}),
        outliers=[],
        marks=[],
    )
    record = folder / f"record-{deployment}"
    place = record / "steps" / step.id
    place.mkdir(parents=True)
    with (place / "windows.parquet").open("wb") as file:
        write_windows(windows, file)
    (place / "step.json").write_text(step.model_dump_json(indent=1))
    run = Run(
        id=record.name, created=moment, state="complete", rtgauge="0", command=[], plan={}, targets=["local"],
        steps=[step.id], planned=[key]
    )  # fmt: skip
    (record / "run.json").write_text(run.model_dump_json(indent=1))
    (record / "targets" / "local").mkdir(parents=True)
    (record / "targets" / "local" / "system.json").write_text(json.dumps({"host": "made-up"}))
    return record


def once(records: list[Path], cpu: int, *options: str) -> float:
    """Seconds of one process that compares the records, held on one CPU."""
    begin = time.perf_counter()
    completed = subprocess.run(
        [sys.executable, "-c", CODE, str(cpu), "compare", *map(str, records), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.perf_counter() - begin
    if completed.returncode or "Latency" not in completed.stdout:
        raise CannotMeasure(
            f"comparing failed: {(completed.stderr.strip().splitlines() or ['it printed nothing'])[-1]}"
        )
    return took


def measure(cpu: int) -> Findings:
    with tempfile.TemporaryDirectory(prefix="rtgauge-bench-") as folder:
        say(f"  making {RECORDS} records of {SECONDS * NS // INTERVAL_NS / 1e6:g} million activations")
        records = [make(Path(folder), number) for number in range(RECORDS)]
        plain: list[float] = []
        for number in range(TIMES):
            plain.append(once(records, cpu, "--no-intervals"))
            say(f"  {number + 1} of {TIMES}: {plain[-1]:.2f} s")
        whole = [once(records, cpu) for _ in range(3)]
    name = f"comparing {RECORDS} records of 6 million activations, one core"
    return Findings(
        [Figure(name, plain, "s", at_most=SECONDS_LIMIT), Figure(f"{name}, with the intervals", whole, "s")]
    )


def main() -> None:
    for figure in measure(last_cpu()).figures:
        print(line(figure))


if __name__ == "__main__":
    main()
