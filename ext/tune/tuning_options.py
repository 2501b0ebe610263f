# SPDX-License-Identifier: MIT
"""Defines a tuning's options, which its record keeps."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field, ValidationError

from rtgauge.errors import InputError, RecordError
from rtgauge.plan.make_plan import Overrides, Plan, make_plan
from rtgauge.record.alternation import BLOCK
from rtgauge.record.model import Run, StepKey
from rtgauge.record.strict_model import Model
from rtgauge.runner.step_loop import expected_s
from rtgauge.target.kind import BOOT_S, guest_kind
from rtgauge.units import NS_PER_S, format_duration, format_span, plural
from rtgauge.verdict.requirement import Requirement, parse_requirement
from rtgauge.verdict.run_verdict import check_answerable
from rtgauge_ext.audit.rules import tried_rules
from rtgauge_ext.tune.candidates import Candidate
from rtgauge_ext.tune.search import SearchOptions

KEY = "tune"
"""The key for the options in the plan of run.json."""
LEAST_RUNS = 1 + 4 * BLOCK
"""The fewest runs that make sense: the machine as it is, one test, and the confirmation."""
LONGEST_WASH_OUT_NS = NS_PER_S
WASH_OUT_SHARE = 5
"""Each run's warm-up is the duration divided by this. The previous run's settings wear off in it."""


class TriedSetting(Model):
    """A setting to try: the id of its rule, the value found, and its part of a deployment."""

    rule: str
    found: str
    part: str


class TuningOptions(Model):
    """The requirement to tune for, the settings to try, and how much to measure."""

    requirement: str
    cpus: str | None = Field(default=None, description="the real-time CPUs, such as 2-3; None: all")
    pid: int | None = Field(
        default=None, description="process ID of the watched program; None: a probe is measured"
    )
    interface: str | None = Field(
        default=None, description="the only network interface to change; None: every one without a route"
    )
    choices: list[TriedSetting]
    daemons: list[str] = Field(default=[], description="running daemons that would undo a setting")
    loads: list[str] = Field(min_length=1)
    confirm_loads: list[str] = Field(min_length=1)
    most_runs: int = Field(description="how many runs the budget allows")
    run_s: float = Field(description="estimated length of a run, in seconds")
    fewer: dict[str, dict[str, str]] = Field(
        default={},
        description="for each rule, its variants with fewer isolated CPUs, as parts of a deployment; the "
        "variant with the fewest comes first",
    )
    larger_than: float = Field(default=0.2, gt=0, description="the smallest gain that matters: 0.2 is 20 %")
    confirm_after_boot: bool = Field(
        default=False, description="whether the confirmation waits for another boot"
    )

    @property
    def bound(self) -> Requirement:
        """The parsed requirement."""
        return parse_requirement(self.requirement)

    def search(self, seed: int) -> SearchOptions:
        """Return the options in the form that the search needs."""
        rules = tried_rules()
        conflicts = {
            choice.rule: rule.trial.conflicts
            for choice in self.choices
            if (rule := rules.get(choice.rule)) is not None and rule.trial is not None
        }
        return SearchOptions(
            conflicts,
            self.loads,
            self.confirm_loads,
            self.most_runs,
            seed,
            self.larger_than,
            fewer={rule: [*forms] for rule, forms in self.fewer.items()},
        )


def options_of(run: Run) -> TuningOptions:
    """Return the options of a record's tuning. Raises InputError if the record is not from a tuning,
    RecordError if it is damaged.
    """
    written = run.plan.get(KEY)
    if written is None:
        raise InputError(f"rtgauge tune did not write the record {run.id}; give one that it wrote")
    try:
        return TuningOptions.model_validate(written)
    except ValidationError:
        raise RecordError(f"the record {run.id} is damaged: its plan does not say what it tunes") from None


def tune_plan(
    requirement: Requirement,
    candidates: Sequence[Candidate],
    *,
    daemons: Sequence[str] = (),
    fewer: Sequence[str] = (),
    cpus: str | None,
    pid: int | None,
    loads: Sequence[str],
    confirm_loads: Sequence[str],
    budget_ns: int,
    duration_ns: int,
    larger_than: float,
    target: str,
    seed: int | None,
    reboot: bool = False,
    interface: str | None = None,
    path: str | None = None,
) -> Plan:
    """Return the plan of the first run, which explains the machine as it is. Raises InputError.

    `fewer`: lists of fewer CPUs than `cpus` that may be isolated, the fewest first. The first CPU is
    measured, because it is isolated in every list. `reboot`: boot a lab guest for each set of settings; the
    user boots any other machine before the confirmation. A watched program would not survive a boot. `path`:
    the network path to a far end whose responses are measured, instead of wake-ups.
    """
    metric = "latency" if path is None else "response"
    if pid is None and requirement.metric != metric:
        subject = "" if path is None else " a path"
        raise InputError(
            f"rtgauge tune judges{subject} by {metric}, not by {requirement.metric}; require {metric}<=TIME"
        )
    if pid is not None and reboot:
        raise InputError("a boot would end the program that is watched: leave out --boot each-deployment")
    if set(loads) & set(confirm_loads):
        raise InputError("--confirm-load must name a load that --load does not name")
    measured: dict[str, object] = {
        **({"probe": "wakeup", "window": "250ms"} if path is None else {"probe": "path", "path": path}),
        "interval": format_duration(requirement.period_ns or NS_PER_S // 1000),
        **({} if cpus is None else {"cpu": next(iter(fewer), cpus)}),
    }
    watched: dict[str, object] = {"probe": "watch", "pid": pid}
    if requirement.period_ns is not None:
        watched["period"] = format_duration(requirement.period_ns)
    defaults = (watched if pid is not None else measured) | {
        "duration": f"{duration_ns}ns",
        "warm-up": f"{min(LONGEST_WASH_OUT_NS, duration_ns // WASH_OUT_SHARE)}ns",
        # Idle states count too, because the machine is measured as it is.
        "dma-latency": "off",
        "explain": True,
    }
    in_lab = guest_kind(target) is not None
    by_boot = reboot and in_lab
    overrides = Overrides(targets=[target], seed=seed, boot="each-deployment" if by_boot else None)
    steps = [{"load": load} for load in loads]
    plan = make_plan(
        {"name": KEY, "order": "as-written", "defaults": defaults, "step": steps}, KEY, overrides
    )
    check_answerable(requirement, plan.steps, KEY)
    make_plan({"name": KEY, "step": [{"load": load} for load in confirm_loads]}, "--confirm-load", overrides)
    run_s = sum(expected_s(plain(key), plan.load_warm_up_ns) for key in plan.steps)
    run_s += BOOT_S if by_boot else 0.0
    most_runs = int(budget_ns / NS_PER_S / run_s)
    if most_runs < LEAST_RUNS:
        raise InputError(
            f"--budget {format_duration(budget_ns)} is too short for one test and its confirmation; give at "
            f"least {format_span(LEAST_RUNS * run_s)}, or a shorter --duration"
        )
    options = TuningOptions(
        requirement=str(requirement),
        cpus=cpus,
        pid=pid,
        interface=interface,
        choices=[TriedSetting(rule=each.id, found=each.found, part=each.part) for each in candidates],
        daemons=list(daemons),
        fewer={each.id: each.fewer(fewer) for each in candidates if fewer and each.takes_cpus},
        loads=list(loads),
        confirm_loads=list(confirm_loads),
        most_runs=most_runs,
        run_s=run_s,
        larger_than=larger_than,
        confirm_after_boot=pid is None and (reboot or in_lab) and not by_boot,
    )
    plan.written[KEY] = options.model_dump(mode="json")
    return plan


def plain(key: StepKey) -> StepKey:
    """Return the step without its explanation, which takes time."""
    return key.with_parameters(explain=False)


def resolution(options: TuningOptions, duration_ns: int) -> str:
    """Return in words how many tests the budget is enough for, and which faults a test can show."""
    run_s = duration_ns / NS_PER_S
    tests = (options.most_runs - 1 - 2 * BLOCK) // (2 * BLOCK)
    side_s = BLOCK * run_s
    return (
        f"The budget is enough for at most {plural(tests, 'test')} and a confirmation. A test measures for "
        f"{format_span(side_s)} without the changed setting, and for as long with it. If a fault comes every "
        f"{format_span(side_s / 3)} on average, this is long enough to see it with a probability of 95 %. A "
        "test can show that a fault is gone only if the fault came in nearly every run before, that is, "
        f"every {format_span(run_s / 3)} on average or more often."
    )
