# SPDX-License-Identifier: MIT
"""Proposes what to try next, as specifically as the record allows."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from rtgauge.analysis.spikes import Spike, joint_events
from rtgauge.probe.descriptor import key_names
from rtgauge.probe.explain_parameters import is_explained
from rtgauge.probe.notation import options_of
from rtgauge.probe.probe_registry import DEFAULT, probe_of
from rtgauge.record.facts import Facts
from rtgauge.record.model import Mark, Run, Step
from rtgauge.system.deployment.definition import AS_IS
from rtgauge.target.address import LOCAL
from rtgauge.units import NS_PER_UNIT, format_duration, format_share, format_time
from rtgauge.verdict.requirement import Requirement

RUN_OPTIONS = frozenset(
    {"duration", "load", "deployment", "repeats", "target", "cpu", "interval", "policy", "priority"}
)
"""Parameters that are options of `rtgauge run`. A probe's other parameters need --set."""
LOADED = ("cpu", "memory", "network")
"""Loads to propose if only idle was measured."""


def round_up_duration(ns: int) -> str:
    """Return a duration to measure for, rounded up to 10 s, minutes or hours."""
    for unit, limit in (
        (10 * 10**9, NS_PER_UNIT["min"]),
        (NS_PER_UNIT["min"], NS_PER_UNIT["h"]),
        (NS_PER_UNIT["h"], None),
    ):
        rounded = max(1, -(-ns // unit)) * unit
        if limit is None or rounded <= limit:
            return format_duration(rounded)
    raise AssertionError


MOST = 0.5
"""A culprit that took at least this share of the explained latencies' time is a more likely cause than a
doubt about the measurement.
"""
LEAST_EXIT = 0.1
"""C-states are proposed if the longest exit from one takes at least this share of the bound."""
LONGER_NS = (10 * NS_PER_UNIT["min"], NS_PER_UNIT["h"], 12 * NS_PER_UNIT["h"], 7 * NS_PER_UNIT["d"])
"""Durations to propose if the needed one is unknown: the first clearly longer than the measured one."""


@dataclass(frozen=True)
class Blame:
    """The culprit that ranks first in a step's explained latencies.

    `name`: its name in lists. `time_share`: its share of their time (0 to 1). `worst_ns`: its longest time in
    one latency. `is_own_work`: whether the measured thread itself was the culprit. `remedy`: what to change;
    None if nothing is known. `cause`: the mechanisms that took most of the late time, in words.
    """

    name: str
    time_share: float
    worst_ns: int
    is_own_work: bool
    remedy: str | None
    cause: str | None = None


@dataclass(frozen=True)
class PastRun:
    """The run's command and its steps' loads, which no advice should repeat.

    `blame_of`: finds the culprit of a watched thread, or of the whole step (None); None if the step's
    latencies were not explained.
    """

    command: tuple[str, ...]
    loads: frozenset[str]
    blame_of: Callable[[str | None], Blame | None] | None = None
    refused: frozenset[str] = frozenset()
    """What the run left out, such as "load memory" or "deployment MI"."""

    @classmethod
    def of_run(cls, run: Run, steps: Sequence[Step], judged: Step) -> PastRun:
        """Return what the run measured. If its own command did not measure with a plan or a probe, as that of
        a gate or an import, the command measures the `judged` step again.
        """
        measures = run.command[1:2] in (["run"], ["probe"], ["watch"])
        return cls(
            ("rtgauge", *run.command[1:]) if measures else _measuring(judged),
            frozenset(step.key.load for step in steps),
            refused=frozenset(missing.what for missing in run.left_out),
        )

    @classmethod
    def of_step(cls, step: Step) -> PastRun:
        """Return what a step measured, if its run is unknown."""
        return cls(_measuring(step), frozenset({step.key.load}))

    @property
    def is_run(self) -> bool:
        """Return whether the command was `rtgauge run`, not a single probe."""
        return self.command[1:2] == ("run",)


def quoted(argument: str) -> str:
    """Quote an argument as a user would: in double quotes, if it needs quotes and these are enough."""
    plain = shlex.quote(argument)
    return plain if plain == argument or set(argument) & set('"$`\\!') else f'"{argument}"'


def _without(words: Sequence[str], names: Collection[str]) -> list[str]:
    """Remove these options from the command, written as `--name=value` or as `--set name=value`."""
    kept: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if (word.startswith("--") and word[2:] in names) or (
            word == "--set" and rest and rest[0].partition("=")[0] in names
        ):
            rest = rest[1:]
        elif not (word.startswith("--") and "=" in word and word[2:].partition("=")[0] in names):
            kept.append(word)
    return kept


def _measuring(step: Step) -> tuple[str, ...]:
    """Return a command that measures the same as the step, on the same target. Of an imported step, neither
    target nor parameters are known in our terms.
    """
    probe, key = probe_of(step), step.key
    imported = step.end_reason == "imported"
    target = key.targets.get("self", LOCAL)
    there = () if target == LOCAL or imported else ("--target", target)
    called = ("rtgauge", "run") if key.probe == DEFAULT else tuple(probe.called.split())
    if key.probe == DEFAULT or imported:
        return *called, *there
    if probe.watches:
        program = [(name, key.parameters.get(name)) for name in ("program", "pid")]
        options = [word for name, value in program if value is not None for word in (f"--{name}", str(value))]
        return *called, *options[:2], *there
    loaded = () if probe.command is None or key.load == "idle" else ("--load", key.load)
    return *called, *options_of(probe, key.parameters), *loaded, *there


def _measured_ns(step: Step) -> int:
    """Return how long a step measured. An imported step has no times, so its duration or its activations are
    used.
    """
    if step.start_ns is not None and step.end_ns is not None:
        return step.end_ns - step.start_ns
    duration_ns = step.parameters.get("duration_ns")
    if isinstance(duration_ns, int):
        return duration_ns
    interval = step.parameters.get("interval_ns")
    if step.total is None or not isinstance(interval, int):
        return 0
    return step.total.count * interval // max(1, len(step.series))


def _longer(step: Step) -> str | None:
    """Return a duration clearly longer than the step's; None if nobody would wait longer."""
    return next((format_duration(ns) for ns in LONGER_NS if ns > 2 * _measured_ns(step)), None)


def next_for_mark(mark: Mark) -> str:
    """Say how to remove the cause of a mark."""
    return mark.remedy or "remove the cause, then measure again"


HUGE, HUGE_SHARE = 20, 4
"""The largest value is a separate event if it is above HUGE times the 99th percentile and at least HUGE_SHARE
times every outlier at another time.
"""


def _is_one_event(step: Step) -> bool:
    """Return whether the largest value is far above all others, except simultaneous ones."""
    total = step.total
    if (
        total is None
        or total.max_ns is None
        or total.p99_ns is None
        or total.max_ns <= HUGE * max(total.p99_ns, 1)
    ):
        return False
    far = [outlier for outlier in step.outliers if outlier.value_ns * HUGE_SHARE > total.max_ns]
    return len(joint_events(map(Spike.of, far))) <= 1


def _without_priority(step: Step, task: str | None) -> bool:
    """Return whether this watched thread has no real-time policy."""
    return any(
        result.name == "thread"
        and result.labels.get("task") == task
        and result.values.get("policy") in {"other", "batch", "idle"}
        for result in step.results
    )


@dataclass(frozen=True)
class NextStep:
    """Proposes what to try after a step was judged. `task`: the watched thread that was judged."""

    past_run: PastRun
    step: Step
    requirement: Requirement
    facts: Facts
    task: str | None = None

    def again(self, options: Mapping[str, str], flag: str = "") -> str:
        """Return the command with other `options` (parameters, `load`, `deployment`) and one more `flag`."""
        probe = probe_of(self.step)
        replaced = (
            {other for group in probe.parameters.alternatives if group & options.keys() for other in group}
            | options.keys()
            | {"require", "deadline"}
        )
        given = self.past_run.command
        end = given.index("--") if "--" in given else len(given)  # The watched program comes after `--`.
        command = _without(given[:end], replaced)
        for name, value in options.items():
            direct = not self.past_run.is_run or name in RUN_OPTIONS
            command += [f"--{name}", value] if direct else ["--set", f"{name}={value}"]
        command += [*([flag] if flag else []), "--require", str(self.requirement), *given[end:]]
        return " ".join(map(quoted, command)) + self._there

    @property
    def _there(self) -> str:
        """Where to do it, because an imported step was not measured on this machine."""
        return " (on the machine that was measured)" if self.step.end_reason == "imported" else ""

    @property
    def _repeat(self) -> str:
        """The end of a change, to see whether it helped."""
        return f", then repeat the measurement{self._there}"

    @property
    def _let_run(self) -> str:
        """What a longer measurement of a watched program needs, if the program ended by itself."""
        ended = self.step.end_reason == "program-ended"
        return "let the program run for longer, and " if ended else ""

    def with_more(self, duration_ns: int | None) -> str:
        """Propose to measure longer. `duration_ns`: how long is enough; None if unknown."""
        if duration_ns is None:
            longer = _longer(self.step) or format_duration(LONGER_NS[-1])
            return f"{self._let_run}measure longer, e.g.: {self.again({'duration': longer})}"
        return f"{self._let_run}measure longer: {self.again({'duration': round_up_duration(duration_ns)})}"

    def when_close(self) -> str:
        """Propose the next step if the requirement only just holds."""
        longer = _longer(self.step)
        if longer is None:
            return f"see which settings could be improved: rtgauge audit{self._there}"
        return f"{self._let_run}see how the maximum grows with time: {self.again({'duration': longer})}"

    def when_held(self) -> str:
        """Propose the next step if the requirement holds under the measured conditions."""
        possible = [load for load in LOADED if f"load {load}" not in self.past_run.refused]
        if self.past_run.loads <= {"idle"} and probe_of(self.step).command is not None and possible:
            load = ",".join(["idle", *possible]) if self.past_run.is_run else possible[0]
            return f"see whether it holds under load: {self.again({'load': load})}"
        longer = _longer(self.step)
        if longer is None:
            return "measure again after each change of kernel, firmware or settings"
        command = self.again({"duration": longer})
        return f"{self._let_run}measure for about as long as the machine will run: {command}"

    def _against(self, blame: Blame) -> str | None:
        """Propose a change against the culprit that took most of the time; None if no change is known."""
        if blame.is_own_work:
            return (
                f"shorten the thread's own work, which took {format_share(blame.time_share)} of the largest "
                f"latencies, and up to {format_time(blame.worst_ns)} of a single latency{self._repeat}"
            )
        return None if blame.remedy is None else f"{blame.remedy}{self._repeat}"

    def _blame(self) -> Blame | None:
        return None if self.past_run.blame_of is None else self.past_run.blame_of(self.task)

    def against_breaker(self) -> str | None:
        """Propose a change against the culprit that ranks first if it alone breaks the bound; None if it does
        not, or no change is known.
        """
        blame = self._blame()
        return None if blame is None or blame.worst_ns <= self.requirement.bound_ns else self._against(blame)

    def against_cause(self) -> str | None:
        """Propose a change against the culprit that alone breaks the bound or took most of the time; None if
        there is no such culprit, or no change is known.
        """
        blame = self._blame()
        if blame is None or (blame.time_share < MOST and blame.worst_ns <= self.requirement.bound_ns):
            return None
        return self._against(blame)

    @property
    def _c_states_matter(self) -> bool:
        """Whether an exit from a C-state may take a notable part of the bound. The CPU of a task with gaps is
        never idle.
        """
        deepest_us = self.facts.cpu.idle.deepest_latency_us
        if self.requirement.metric == "gap" or deepest_us == "none":
            return False
        return deepest_us is None or deepest_us * NS_PER_UNIT["us"] >= LEAST_EXIT * self.requirement.bound_ns

    def for_failure(self) -> str:
        """Propose the first that applies: a real-time priority, the culprit that alone breaks the bound or
        took most of the time, the remedy of a mark, another culprit, C-states, an explanation of the largest
        value, the kernel, a real machine, an isolated CPU, or the audit. What the run refused is not
        proposed.
        """
        step = self.step
        keys = key_names(probe_of(step))
        if step.parameters.get("policy") == "other" and "policy" in keys:
            return f"measure at a real-time priority: {self.again({'policy': 'fifo', 'priority': '98'})}"
        if (against_cause := self.against_cause()) is not None:
            return against_cause
        if _without_priority(step, self.task):
            how = "chrt -f, or pthread_setschedparam"
            return f"give thread {self.task} a real-time priority ({how}){self._repeat}"
        for mark in step.doubts_on(self.requirement.metric):
            if mark.remedy:
                return mark.remedy
        blame = self._blame()
        if blame is not None and (against_culprit := self._against(blame)) is not None:
            return against_culprit
        dma_latency = step.parameters.get("dma_latency_us")
        # The engine reports `off` as a negative number.
        sleeps_deep = isinstance(dma_latency, int) and dma_latency < 0 and self._c_states_matter
        if sleeps_deep and "dma-latency" in keys:
            return f"keep the CPUs out of deep C-states: {self.again({'dma-latency': '0'})}"
        if _is_one_event(step) and "explain" in keys and not is_explained(step.key.parameters):
            command = tuple(word for word in self.past_run.command if word != "--no-explain")
            plain = replace(self, past_run=replace(self.past_run, command=command))
            return f"see what caused the largest latency, and on which CPU: {plain.again({}, '--explain')}"
        preemption = self.facts.kernel.preemption
        model, is_dynamic = preemption.model, preemption.sources.get("version") == "PREEMPT_DYNAMIC"
        if model in {"none", "voluntary", "lazy"} and is_dynamic:
            return f"boot with preempt=full (supported; this kernel runs with {model}){self._repeat}"
        if model not in {None, "PREEMPT_RT"}:
            return (
                f"boot a PREEMPT_RT kernel (this one's preemption is {model}; Debian: apt-get install "
                f"linux-image-rt-amd64 or -arm64){self._repeat}"
            )
        if self.facts.machine.virtual:
            return f"measure on the bare machine (this one is virtual){self._repeat}"
        isolated = step.deployment is not None and step.deployment.isolated
        if step.key.deployment == AS_IS and not isolated and "deployment MI" not in self.past_run.refused:
            how = (
                self.again({"deployment": "MI"})
                if self.past_run.is_run
                else f"rtgauge deploy apply MI, then: {self.again({})}"
            )
            return f"isolate a CPU for the real-time task and measure on it: {how}"
        return f"see which other settings make it late: rtgauge audit{self._there}"
