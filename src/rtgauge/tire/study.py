# SPDX-License-Identifier: MIT
"""The largest tire that holds hard real time: first how long a step takes, then the search from where that points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rtgauge.errors import InputError
from rtgauge.plan.plan import Overrides, Plan, make_plan
from rtgauge.probe.tire import MOST_NODES, THREAD_WORDS
from rtgauge.record.model import Step, StepKey
from rtgauge.record.reader import Record
from rtgauge.study.study_state import kept_of
from rtgauge.suggest import nearest
from rtgauge.tire.analysis.from_record import fast_runs, is_tire, paced_runs
from rtgauge.tire.analysis.prediction import predicted_frontiers
from rtgauge.tire.analysis.results import Condition, Searched, condition_of, meanings
from rtgauge.tire.analysis.runs import SERIAL, SOLVERS, PacedRun
from rtgauge.tire.analysis.search import Outcome, Search, State, Trial, state_of, whole_nodes
from rtgauge.units import format_duration, parse_duration_ns

START = 0.9
"""A search begins a little below the n whose mean step takes a whole period."""
START_WITHOUT = 4000
FAST_SHARE = 5
"""A real-fast run is so many times shorter than a paced one: it needs a mean, not every late step."""
SHORTEST_NS = 100_000_000
SIZES = (400, 1600, 6400)
POLICIES = ("fifo", "rr", "other")


@dataclass(frozen=True)
class Aims:
    """What a study of the tire is asked for. `threads`: numbers and words; `rest`: parameters for every step."""

    solvers: tuple[str, ...] = SOLVERS
    threads: tuple[str, ...] = THREAD_WORDS
    policies: tuple[str, ...] = ("fifo",)
    sizes: tuple[int, ...] = SIZES
    period_ns: int = 10_000_000
    duration_ns: int = 2_000_000_000
    repeats: int | None = None
    rest: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def fast_duration(self) -> str:
        """Of a real-fast run."""
        return format_duration(max(SHORTEST_NS, self.duration_ns // FAST_SHARE))

    @property
    def paced_duration(self) -> str:
        """Whole periods."""
        return format_duration(-(-self.duration_ns // self.period_ns) * self.period_ns)

    @property
    def bisections(self) -> int:
        """Of a search; as many runs confirm what they found."""
        return self.repeats if self.repeats is not None else 5

    @property
    def several(self) -> tuple[str, ...]:
        """The thread counts beside one."""
        return tuple(word for word in self.threads if word not in ("1", "one"))


def _listed(key: str, value: Any) -> list[str]:
    """What is given with commas between, or alone."""
    words = [word.strip() for word in str(value).split(",")]
    if not all(words) or isinstance(value, bool):
        raise InputError(f"--set {key}={value}: write one or several with commas between")
    return words


def _chosen(key: str, value: Any, known: Sequence[str]) -> tuple[str, ...]:
    words = _listed(key, value)
    for word in words:
        if word not in known:
            raise InputError(f"--set {key}={value}: unknown {key} '{word}'{nearest(word, known)}")
    return tuple(dict.fromkeys(words))


def _number(key: str, word: str, most: int) -> int:
    if not (word.isascii() and word.isdigit()) or not 1 <= int(word) <= most:
        raise InputError(f"--set {key}={word}: write numbers from 1 to {most}")
    return int(word)


def _threads(value: Any) -> tuple[str, ...]:
    words = _listed("threads", value)
    return tuple(dict.fromkeys(word if word in THREAD_WORDS else str(_number("threads", word, 1024)) for word in words))


def _duration_ns(key: str, value: Any) -> int:
    try:
        ns = parse_duration_ns(str(value))
    except ValueError as error:
        raise InputError(f"{key} {value}: {error}") from None
    if ns <= 0:
        raise InputError(f"{key} {value}: give more than 0")
    return ns


def aims_of(asked: Overrides, default: Aims, name: str) -> Aims:
    """What the command line asks of a study; `default` where it says nothing. Raises InputError."""
    for what, given in (("load", asked.loads), ("deployment", asked.deployments)):
        if given is not None and len(given) > 1:
            raise InputError(f"the study {name} measures under one {what}: give one, and run it once for each")
    rest = dict(asked.parameters)
    aims = default
    if "duration" in rest:
        aims = replace(aims, duration_ns=_duration_ns("--duration", rest.pop("duration")))
    if "period" in rest:
        aims = replace(aims, period_ns=_duration_ns("--set period", rest.pop("period")))
    if "solver" in rest:
        aims = replace(aims, solvers=_chosen("solver", rest.pop("solver"), SOLVERS))
    if "policy" in rest:
        aims = replace(aims, policies=_chosen("policy", rest.pop("policy"), POLICIES))
    if "threads" in rest:
        aims = replace(aims, threads=_threads(rest.pop("threads")))
    if "nodes" in rest:
        sizes = sorted({_number("nodes", word, MOST_NODES) for word in _listed("nodes", rest.pop("nodes"))})
        aims = replace(aims, sizes=tuple(sizes))
    if aims.duration_ns < aims.period_ns:
        raise InputError(f"a run of {format_duration(aims.duration_ns)} has not one period of {format_duration(aims.period_ns)}: give a longer --duration")
    return replace(aims, repeats=asked.repeats, rest=rest)


def tire_entry(aims: Aims, solver: str, nodes: int, threads: str | int, policy: str, **more: Any) -> dict[str, Any]:
    """A real-fast step of the tire as a plan has it; `more` may make it anything else."""
    base = {"probe": "tire", "solver": solver, "nodes": nodes, "threads": threads, "policy": policy, "warm-up": "50ms", "duration": aims.fast_duration}
    if "steps" in more:
        del base["duration"]
    return {**base, **more}


def paced_entry(aims: Aims, solver: str, nodes: int, threads: str | int, policy: str) -> dict[str, Any]:
    """A step of the tire that is released every period."""
    return tire_entry(aims, solver, nodes, threads, policy, period=format_duration(aims.period_ns), duration=aims.paced_duration)


def plan_of(name: str, entries: Sequence[dict[str, Any]], asked: Overrides, aims: Aims, **changes: Any) -> Plan:
    """The plan of these steps, with what else the command line says; `changes` over it. Raises InputError."""
    return make_plan({"name": name, "step": list(entries)}, f"study {name}", replace(asked, **{"parameters": aims.rest, **changes}))


def keys_of(name: str, entries: Sequence[dict[str, Any]], asked: Overrides, aims: Aims, record: Record, target: str, repeats: int = 1) -> list[StepKey]:
    """The same as keys, for one target of a record that was begun, in a random order that is its own."""
    if not entries:
        return []
    return plan_of(name, entries, asked, aims, targets=[target], repeats=repeats, seed=record.run.seed).steps


def fast_entries(aims: Aims, threads: Sequence[str | int]) -> list[dict[str, Any]]:
    """Real-fast runs of each solver and size; `serial` has one thread and is left out of others."""
    return [
        tire_entry(aims, solver, nodes, count, policy)
        for policy in aims.policies
        for solver in aims.solvers
        for count in threads
        for nodes in aims.sizes
        if solver != SERIAL or str(count) in ("1", "one")
    ]


def steps_on(record: Record, target: str) -> list[Step]:
    """The record's steps on one target."""
    return [step for step in record.steps if step.key.targets.get("self") == target]


def thread_numbers(steps: Sequence[Step], aims: Aims) -> list[int]:
    """The thread counts that were asked for as numbers, each once; a word that no step has tried is left out."""
    known = {"one": 1, **meanings(steps)}
    return sorted({int(word) if word.isdigit() else known[word] for word in aims.threads if word.isdigit() or word in known})


@dataclass(frozen=True)
class Wanted:
    """One search: of which solver under which policy."""

    solver: str
    policy: str
    period_ns: int
    search: Search


def _fits(run: PacedRun, wanted: Wanted) -> bool:
    of = run.configuration
    same = (of.solver, of.policy, of.threads, run.period_ns) == (wanted.solver, wanted.policy, wanted.search.threads, wanted.period_ns)
    return same and of.without == "none" and not of.free_running


def trials_of(paced: Sequence[PacedRun], wanted: Wanted) -> dict[Trial, Outcome]:
    """The runs that count for a search."""
    return {(run.configuration.nodes, run.repeat): Outcome(run.deadlines, run.missed) for run in paced if _fits(run, wanted)}


def most_nodes(record: Record, steps: Sequence[Step], solver: str) -> int:
    """The largest tire that half of the target's memory holds, by what those that were run have taken."""
    target = steps[0].key.targets.get("self", "") if steps else ""
    total = record.system(target).get("memory", {}).get("total_bytes")
    sizes = [(result.values.get("step_bytes"), result.values.get("nodes")) for step in steps if is_tire(step) for result in step.results]
    solvers = [step.key.parameters.get("solver") for step in steps if is_tire(step) for _ in step.results]
    each = [taken / nodes for (taken, nodes), of in zip(sizes, solvers, strict=True) if of == solver and isinstance(taken, int) and isinstance(nodes, int)]
    if not isinstance(total, int) or not each:
        return MOST_NODES
    return whole_nodes(total / 2 / min(each), most=MOST_NODES)


def searches(record: Record, steps: Sequence[Step], aims: Aims, policies: Sequence[str]) -> list[Wanted]:
    """Every search of one target: from where the cost model points."""
    fast = fast_runs(steps)
    cpus = max((len(step.cpus) for step in steps if is_tire(step)), default=1) or 1
    expected = {(one.solver, one.policy, one.threads): one.mean for one in predicted_frontiers(fast, aims.period_ns, cpus)}
    found: list[Wanted] = []
    for policy in policies:
        for solver in aims.solvers:
            for threads in thread_numbers(steps, aims):
                if solver == SERIAL and threads > 1:
                    continue
                mean = expected.get((solver, policy, threads))
                start = START_WITHOUT if mean is None else mean.value * START
                search = Search(threads, 0, most_nodes(record, steps, solver), bisections=aims.bisections, confirmations=aims.bisections)
                start = whole_nodes(start, search.least, search.most)
                found.append(Wanted(solver, policy, aims.period_ns, replace(search, start=start)))
    return found


def states(record: Record, steps: Sequence[Step], aims: Aims, policies: Sequence[str]) -> list[tuple[Wanted, State]]:
    """How far each search is."""
    paced = paced_runs(steps, whole_only=True)
    return [(wanted, state_of(wanted.search, trials_of(paced, wanted))) for wanted in searches(record, steps, aims, policies)]


def search_keys(name: str, record: Record, target: str, asked: Overrides, aims: Aims, policies: Sequence[str]) -> list[StepKey]:
    """What the searches of one target want next, in a random order."""
    keys: list[StepKey] = []
    for wanted, state in states(record, steps_on(record, target), aims, policies):
        for nodes, repeat in state.wanted:
            entry = paced_entry(aims, wanted.solver, nodes, wanted.search.threads, wanted.policy)
            keys += [key.model_copy(update={"repeat": repeat}) for key in keys_of(name, [entry], asked, aims, record, target)]
    return keys


def ended(record: Record, steps: Sequence[Step], aims: Aims, policies: Sequence[str]) -> list[Searched]:
    """The searches that have come to their end."""
    return [
        Searched(solver=wanted.solver, policy=wanted.policy, period_ns=wanted.period_ns, frontier=state.frontier)
        for wanted, state in states(record, steps, aims, policies)
        if state.frontier is not None
    ]


class TireSearch:
    """`rtgauge probe tire --search`: nothing but the frontier."""

    name = "tire-search"
    description = "study: the largest tire that holds hard real time, for each number of threads"
    default = Aims(repeats=5)

    def aims(self, asked: Overrides) -> Aims:
        """What is asked. Raises InputError."""
        aims = aims_of(asked, self.default, self.name)
        if aims.sizes != SIZES:
            raise InputError("a search finds the number of nodes by itself: leave nodes out")
        return aims

    def searched_policies(self, aims: Aims) -> tuple[str, ...]:
        """Those under which the frontier is searched."""
        return aims.policies

    def begin(self, asked: Overrides) -> Plan:
        """How long a step takes: three sizes of each, and on one thread as well, from which the model speaks of several."""
        aims = self.aims(asked)
        threads = list(dict.fromkeys(["1" if word == "one" else word for word in ("1", *aims.threads)]))
        first, *others = fast_entries(aims, threads)
        entries = [{**first, "duration": aims.paced_duration}, *others]  # as long as any that comes after
        return plan_of(self.name, entries, asked, aims, repeats=1)

    def more(self, record: Record, asked: Overrides) -> Sequence[StepKey]:
        """The next round of every search."""
        aims = self.aims(asked)
        policies = self.searched_policies(aims)
        return [key for target in record.run.targets for key in search_keys(self.name, record, target, asked, aims, policies)]


STUDY = TireSearch()


def searched(record: Record) -> dict[Condition, list[Searched]]:
    """The searches of a record that came to their end, for each target, load and deployment; none where it is no record of a study of the tire."""
    from rtgauge.study import garre2014

    kept = kept_of(record.run)
    study = None if kept is None else {STUDY.name: STUDY, garre2014.STUDY.name: garre2014.STUDY}.get(kept.name)
    if study is None or kept is None:
        return {}
    aims = study.aims(kept.asked)
    groups: dict[Condition, list[Step]] = {}
    for step in record.steps:
        groups.setdefault(condition_of(step), []).append(step)
    return {condition: ended(record, steps, aims, study.searched_policies(aims)) for condition, steps in groups.items()}
