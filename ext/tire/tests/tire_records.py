# SPDX-License-Identifier: MIT
"""Writes the record of a study of the tire on a machine whose costs are known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rtgauge.probe import probe_registry as probes
from rtgauge.probe.descriptor import normalise
from rtgauge.record.model import LoadReport, Mark, Result, Run, Severity, Step, StepKey
from rtgauge_ext.tire.analysis.frontier_search import FrontierSearch, state_of
from rtgauge_ext.tire.analysis.runs import PacedRun, paced_runs

if TYPE_CHECKING:
    from pathlib import Path

    from ext.tire.tests.synthetic import Machine
    from rtgauge_ext.tire.analysis.frontier_search import Trial

PERIOD_NS = 10_000_000
WORDS = {"cores": 2, "hardware-threads": 2, "twice": 4}
FACTS = {
    "host": "tyre-bench",
    "kernel": {"release": "6.1.0-rt"},
    "cpu": {"online": "0-1", "model": "AMD EPYC"},
    "memory": {"total_bytes": 4 * 2**30},
}


def tire_step(
    number: int,
    written: dict[str, Any],
    values: dict[str, Any],
    *,
    repeat: int = 1,
    marks: tuple[Mark, ...] = (),
    load: str = "idle",
) -> Step:
    """A step with this result and without windows."""
    parameters = normalise(probes.get("tire"), written, "test")
    base = {
        "mode": "real-time" if parameters.period_ns else "real-fast",
        "nodes": parameters.nodes,
        "threads": WORDS.get(parameters.threads) or int(parameters.threads),
        "cpu_ns": 1,
        "node_steps_per_s": 1.0,
        "voluntary_switches": 0,
        "involuntary_switches": 0,
        "barrier_ns": None,
        "block": 1,
        "step_bytes": 200 * parameters.nodes,
        "rest_ns": 0,
        "activations": None,
        "deadline_missed": None,
        "late": None,
        "missed": None,
        "step_min_ns": 1,
        "step_max_ns": 1,
    }
    return Step(
        id=f"{number:03d}-tire-{load}",
        key=StepKey(
            probe="tire",
            parameters=parameters,
            load=load,
            deployment="as-is",
            targets={"self": "local"},
            repeat=repeat,
        ),
        tool="rtgauge-engine 0.1.0",
        started="2026-11-21T10:00:00Z",
        ended="2026-11-21T10:00:01Z",
        start_ns=0,
        end_ns=10**9,
        end_reason="duration",
        parameters=parameters.values,
        cpus=[0, 1],
        load=LoadReport(name=load),
        series=[],
        total=None,
        outliers=[],
        results=[Result(name="tire", labels={"solver": parameters.solver}, values={**base, **values})],
        marks=list(marks),
    )


def fast_step(
    machine: Machine,
    number: int,
    solver: str,
    nodes: int,
    threads: str = "1",
    *,
    policy: str = "fifo",
    without: str = "none",
    repeat: int = 1,
) -> Step:
    run = machine.fast(solver, nodes, WORDS.get(threads) or int(threads), without=without, policy=policy)
    written = {"solver": solver, "nodes": nodes, "threads": threads, "policy": policy, "without": without}
    return tire_step(
        number,
        written,
        {"steps": run.steps, "wall_ns": run.wall_ns, "step_max_ns": run.step_max_ns, "barrier_ns": 150.0},
        repeat=repeat,
    )


def paced_step(
    machine: Machine,
    number: int,
    solver: str,
    nodes: int,
    threads: int,
    *,
    policy: str = "fifo",
    repeat: int = 1,
) -> Step:
    """All deadlines are missed where a step takes longer than the period, one where it takes nearly as
    long.
    """
    step_ns = machine.step_ns(solver, nodes, threads)
    missed = 200 if step_ns > PERIOD_NS else 1 if step_ns > 0.95 * PERIOD_NS else 0
    written = {
        "solver": solver,
        "nodes": nodes,
        "threads": str(threads),
        "policy": policy,
        "period": "10ms",
        "duration": "2s",
    }
    values = {
        "steps": 200,
        "wall_ns": round(step_ns * 200),
        "activations": 200,
        "deadline_missed": missed,
        "late": missed,
        "missed": 0,
    }
    mark = Mark(name="period-short", severity=Severity.NOTE, detail="every deadline is missed")
    return tire_step(number, written, values, repeat=repeat, marks=(mark,) if missed == 200 else ())


def study_steps(machine: Machine) -> list[Step]:
    """What garre2014 measures of a machine, smaller."""
    steps: list[Step] = []

    def add(step: Step) -> None:
        steps.append(step)

    for repeat in (1, 2, 3):
        for nodes in (400, 1600, 6400, 25600):
            for solver in ("serial", "semaphore", "halo"):
                for policy in ("fifo", "other"):
                    add(fast_step(machine, len(steps), solver, nodes, policy=policy, repeat=repeat))
                for without in ("springs", "integration") if solver != "halo" else ():
                    add(fast_step(machine, len(steps), solver, nodes, without=without, repeat=repeat))
                for threads in ("2", "4") if solver != "serial" else ():
                    add(fast_step(machine, len(steps), solver, nodes, threads, repeat=repeat))
    for word in WORDS:
        add(fast_step(machine, len(steps), "halo", 1024, word))
    for policy in ("fifo", "other"):
        for threads in (1, 2, 4):
            for nodes in (8000, 16000, 32000, 40000, 48000, 64000, 80000, 96000, 128000):
                add(paced_step(machine, len(steps), "semaphore", nodes, threads, policy=policy))
    return steps


def write_study(
    parent: Path, machine: Machine, *, study: str | None = "garre2014", searched: bool = True
) -> Path:
    """The record of a finished study; `searched`: with the runs of its searches, whose start is that of the
    study's own prediction.
    """
    folder = parent / "2026-11-21T10-03-22Z-tyre-garre2014-0001"
    steps = study_steps(machine)
    plan: dict[str, Any] = {"name": "garre2014"}
    if study is not None:
        plan["study"] = {"name": study, "asked": {"repeats": 2}}
    if searched:
        _write(folder, steps, plan)
        steps += _search_runs(folder, machine, len(steps))
    _write(folder, steps, plan)
    return folder


def _search_runs(folder: Path, machine: Machine, number: int) -> list[Step]:
    from rtgauge.plan.make_plan import Overrides
    from rtgauge.record.reader import Record
    from rtgauge_ext.tire.analysis.aims import GARRE2014, aims_of_study
    from rtgauge_ext.tire.analysis.searches import searches, states

    record = Record.open(folder)
    aims = aims_of_study(GARRE2014, Overrides(repeats=2))
    steps: list[Step] = []
    assert all(state.wanted for _, state in states(record, record.steps, aims, ("fifo",)))
    for expected in searches(record, record.steps, aims, ("fifo",)):
        trials: dict[Trial, PacedRun] = {}
        search: FrontierSearch = expected.search
        while todo := state_of(search, trials).wanted:
            for nodes, repeat in todo:
                step = paced_step(
                    machine, number + len(steps), expected.solver, nodes, search.threads, repeat=repeat
                )
                (trials[nodes, repeat],) = paced_runs([step])
                steps.append(step)
    return steps


def _write(folder: Path, steps: list[Step], plan: dict[str, Any]) -> None:
    for step in steps:
        place = folder / "steps" / step.id
        place.mkdir(parents=True, exist_ok=True)
        (place / "step.json").write_text(step.model_dump_json(), encoding="utf-8")
    system = folder / "targets" / "local"
    system.mkdir(parents=True, exist_ok=True)
    (system / "system.json").write_text(json.dumps(FACTS), encoding="utf-8")
    run = Run(
        id=folder.name,
        created="2026-11-21T10:03:22Z",
        ended="2026-11-21T10:24:25Z",
        state="complete",
        rtgauge="0.1.0",
        command=["rtgauge", "run", "garre2014"],
        plan=plan,
        targets=["local"],
        seed=42,
        steps=[step.id for step in steps],
        planned=[step.key for step in steps],
    )
    (folder / "run.json").write_text(run.model_dump_json(), encoding="utf-8")
