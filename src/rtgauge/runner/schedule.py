# SPDX-License-Identifier: MIT
"""The steps of a run: their names, how long they take, which remain, and the run.json of a plan of which
nothing is measured yet.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rtgauge
from rtgauge.plan.plan import Plan
from rtgauge.probe import registry as probes
from rtgauge.record.files import clean_name
from rtgauge.record.model import Run, Step, StepKey
from rtgauge.runner.context import now_utc
from rtgauge.system.deployment.definition import AS_IS
from rtgauge.system.priorities import Controller
from rtgauge.target.lease import LEASE_NS
from rtgauge.units import NS_PER_S

HOLD_S = (60.0, 15 * 60.0)
"""Least and most: a run of short steps is soon measured again, and must not keep its target from others."""
STEP_OVERHEAD_S = 0.6
DEPLOYMENT_S = 0.3
STEP_ARMINGS, LOAD_ARMINGS, EMULATED_LOAD_ARMINGS = 1.6, 3.0, 18.0
"""How many times as long as arming a probe and stopping it again a step takes beside its measuring, and a
load beside its warm-up, on a target where
that is more than STEP_OVERHEAD_S. An emulated guest is slowed down by what loads it. Measured on guests of
the lab, with the loads of `quick`.
"""


@dataclass(frozen=True)
class RunOptions:
    """Where the record goes, the command line, and whether the record is kept."""

    out: Path
    command: Sequence[str]
    kept: bool = True
    with_windows: bool = True
    """Whether the record needs its windows: to be judged, drawn, compared."""
    hold_ns: int | None = None
    """How long another machine goes on, beyond its longest step, after the connection broke and while nobody
    resumes.

    None: as long as that step, within
    HOLD_S."""
    wait_s: float = 0.0
    """How long to wait for a machine that another run holds."""


def how_to_resume(record: Path) -> str:
    """The end of every line that ends a run early and keeps its record."""
    return f"; go on with: rtgauge run --resume {shlex.quote(str(record))}"


def expected_s(key: StepKey, load_warm_up_ns: int, *, arming_s: float = 0.0, emulated: bool = False) -> float:
    """How long a step takes, about, in s.

    `arming_s`: how long it took on its target to arm a probe and to stop it again. `emulated`: the target is,
    and has
    the host's clock, so that a load slows it down.
    """
    measured = (probes.get(key.probe).expected_ns(key.parameters) or 0) / NS_PER_S
    deploying = 0.0 if key.deployment == AS_IS else DEPLOYMENT_S
    loading = 0.0
    if key.load != "idle":
        loading = load_warm_up_ns / NS_PER_S + max(
            STEP_OVERHEAD_S, arming_s * (EMULATED_LOAD_ARMINGS if emulated else LOAD_ARMINGS)
        )
    return measured + max(STEP_OVERHEAD_S, arming_s * STEP_ARMINGS) + deploying + loading


def step_ids(steps: Sequence[StepKey]) -> list[str]:
    """A folder name a step: number, probe, load, and what else distinguishes it."""
    repeats = max((key.repeat for key in steps), default=1) > 1
    several = len({key.targets["self"] for key in steps}) > 1
    names: list[str] = []
    for number, key in enumerate(steps, 1):
        parts = [
            f"{number:02d}",
            *([clean_name(key.targets["self"].removeprefix("ssh://"))] if several else []),
            key.probe,
            re.sub(r"[^A-Za-z0-9]+", "-", key.load)[:60].strip("-"),
        ]
        parts += [re.sub(r"[^A-Za-z0-9]+", "-", key.deployment)[:60]] if key.deployment != AS_IS else []
        parts += [key.tool] if key.tool != "rtgauge" else []
        parts += [f"r{key.repeat}"] if repeats else []
        names.append("-".join(parts))
    return names


def lease_of(steps: Sequence[StepKey], load_warm_up_ns: int, options: RunOptions) -> int:
    """How long, in ns, a target goes on without a word from this run."""
    if not options.kept:
        return LEASE_NS
    longest_s = max((expected_s(key, load_warm_up_ns) for key in steps), default=0.0)
    hold_ns = (
        round(min(max(longest_s, HOLD_S[0]), HOLD_S[1]) * NS_PER_S)
        if options.hold_ns is None
        else options.hold_ns
    )
    # A study may go on under load with a step as long as the longest idle one.
    return round(longest_s * NS_PER_S) + load_warm_up_ns + hold_ns


def steps_on(name: str, steps: Sequence[StepKey]) -> list[StepKey]:
    """The steps that are measured on the target of that name."""
    return [key for key in steps if key.targets["self"] == name]


def remaining_steps(run: Run, finished: Sequence[Step]) -> list[StepKey]:
    """The steps that are planned and not done."""
    done = {step.key.model_dump_json() for step in finished}
    return [key for key in run.planned if key.model_dump_json() not in done]


def all_targets(plan: Plan) -> list[str]:
    """Those that have steps, and those that are the other end of one."""
    return list(dict.fromkeys([*plan.targets, *(key.peer[1] for key in plan.steps if key.peer is not None)]))


def new_run(plan: Plan, options: RunOptions, record: str) -> Run:
    """What run.json says of a plan of which nothing is measured yet."""
    return Run(
        id=record,
        created=now_utc(),
        state="partial",
        rtgauge=rtgauge.__version__,
        command=list(options.command),
        plan={
            **plan.written,
            "load-warm-up-ns": plan.load_warm_up_ns,
            **_controller_keys(plan.controller),
            **_boot_keys(by_boot=plan.by_boot),
        },
        targets=all_targets(plan),
        seed=plan.seed,
        requirement=plan.require,
        allow_left_out=plan.allow_left_out,
        planned=list(plan.steps),
    )


def plan_of(run: Run) -> Plan:
    """The plan that `new_run` was given."""
    return Plan(
        name=str(run.plan.get("name", "run")),
        description="",
        seed=run.seed or 0,
        require=run.requirement,
        cross_check=None,  # its steps are among the others
        load_warm_up_ns=run.plan.get("load-warm-up-ns", 0),
        controller=controller_of(run),
        targets=list(dict.fromkeys(key.targets["self"] for key in run.planned)),
        steps=run.planned,
        written=run.plan,
        by_boot=run.plan.get("deployments-by") == "boot",
        allow_left_out=run.allow_left_out,
    )


def _controller_keys(controller: Controller | None) -> dict[str, Any]:
    """What a resumed run has to know about the controller."""
    return {} if controller is None else {"controller": True, "raise": list(controller.raised)}


def controller_of(run: Run) -> Controller | None:
    """The controller as a resumed run has to know it."""
    raised = run.plan.get("raise", [])
    return Controller(tuple(raised)) if run.plan.get("controller") or raised else None


def _boot_keys(*, by_boot: bool) -> dict[str, Any]:
    """What a resumed run has to know about how its deployments are brought about."""
    return {"deployments-by": "boot"} if by_boot else {}
