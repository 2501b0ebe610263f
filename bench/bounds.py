# SPDX-License-Identifier: MIT
"""How often the bounds, intervals and rates that rtgauge prints hold: the table in docs/benchmarks.md.

`drawn_systems.py` draws latencies of machines whose long-run distribution is known. They go the way of a
record's: windows, verdict, exposure, tables. Each cell is the share of draws in which the bound holds. The
kinds of machines are independent latencies, bursts, episodes, a slow drift, and runs (or boots) whose level
differs. In that kind, bounds on one run are compared with this run's own level.

PYTHONPATH=src python bench/bounds.py [--draws 2000] [--seed 1] [--only TEXT]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.drawn_systems import DRIFT, KINDS, MEDIAN_NS, Machine, boots
from tests.support.repeated_runs import side_of, windows_of
from tests.unit.records import run as empty_run
from tests.unit.records import step as drawn_step

from rtgauge.analysis import gate_test
from rtgauge.analysis.comparison import ComparisonOptions, quantile_differences
from rtgauge.analysis.median_of_runs import median_interval
from rtgauge.analysis.quantile_difference import RunFigures, between_pairs, between_runs
from rtgauge.analysis.violation_bounds import Counted, design_effect, upper_bound
from rtgauge.plan.alternating_plan import first_sides
from rtgauge.record.model import Step, Verdict, VerdictWord
from rtgauge.record.windows import Windows
from rtgauge.verdict.decision import judge
from rtgauge.verdict.requirement import Requirement
from rtgauge.verdict.run_verdict import exposure_of
from rtgauge_ext.papers.frequency.frequency import line_of
from rtgauge_ext.papers.frequency.frequency_options import FrequencyOptions
from rtgauge_ext.tire.analysis.estimate import fit, median_of, ratio_of

Draw = Callable[[str, np.random.Generator], dict[str, bool]]
"""Draws one measurement of a machine of this kind. Returns for each printed bound whether it holds."""

TEMPLATE, _ = drawn_step([MEDIAN_NS])
RUN = empty_run()


def latencies(machine: Machine, generator: np.random.Generator) -> np.ndarray:
    """Latencies of a run in whole ns, a row a second."""
    return np.minimum(machine.latencies(generator), 9e9).astype(np.int64)


def bound_of(machine: Machine, share: float) -> int:
    """The bound (ns) that a share of the latencies breaks in the long run."""
    if machine.kind in {"bursty", "episodic"}:
        return 5 * MEDIAN_NS
    return round(machine.quantile_ns(1 - share))


def drawn(machine: Machine, load: str, repeat: int, generator: np.random.Generator) -> tuple[Step, Windows]:
    """A step of this machine."""
    key = TEMPLATE.key.model_copy(update={"load": load, "repeat": repeat})
    step = TEMPLATE.model_copy(update={"id": f"{load}-{repeat}", "key": key})
    return step, windows_of(latencies(machine, generator))


def verdict(seconds: int, share: float) -> Draw:
    """The share in the verdict on one step, and false "fails" of a machine that just keeps a requirement."""

    def draw(kind: str, generator: np.random.Generator) -> dict[str, bool]:
        machine = Machine(kind, seconds=seconds, bad=share)
        bound_ns, truth = bound_of(machine, share), machine.share_above(bound_of(machine, share))
        if kind == "repeated":
            level = float(generator.normal(0, DRIFT))
            machine = Machine("independent", seconds=seconds)
            bound_ns, truth = round(bound_ns * np.exp(-level)), machine.share_above(bound_ns * np.exp(-level))
        step, windows = drawn(machine, "idle", 1, generator)
        requirement = Requirement("latency", bound_ns, 1 - Fraction(truth))
        judged = judge(requirement, step, windows)
        name = f"verdict, share of {share:.0%}, {seconds} s"
        return {
            f"{name}: at most": judged.evidence["violation_share_at_most"] >= truth,
            f"{name}: fails": judged.word != VerdictWord.FAILS,
        }

    return draw


def exposure(runs: int, share: float) -> Draw:
    """The exposure of two loads, one of which is disturbed, with this many runs of each."""

    def draw(kind: str, generator: np.random.Generator) -> dict[str, bool]:
        machine = Machine(kind, seconds=10, bad=share)
        calm = Machine("independent", seconds=10)
        if kind == "repeated" and runs == 1:
            return {}
        bound_ns = bound_of(machine, share)
        requirement = Requirement("latency", bound_ns, Fraction(1, 2))
        steps = [
            drawn(each, load, repeat, generator)
            for load, each in (("idle", calm), ("cpu", machine))
            for repeat in range(runs)
        ]
        judged = [(step, judge(requirement, step, windows)) for step, windows in steps]
        found = exposure_of(requirement, judged, RUN)
        assert found is not None
        truth = (machine.share_above(bound_ns) + calm.share_above(bound_ns)) / 2
        return {
            f"exposure, share of {share:.0%}, {runs} run{'s' * (runs > 1)}": found.share_excluded >= truth
        }

    return draw


def exposure_of_rates(runs: int) -> Draw:
    """The exposure of runs whose rates of violations differ by 85 % (standard deviation; log-normal)."""

    def draw(kind: str, generator: np.random.Generator) -> dict[str, bool]:
        if kind != "repeated":
            return {}
        machine, mean, spread = Machine("independent", seconds=10), 0.05, np.sqrt(np.log(1 + 0.85**2))
        bound_ns = bound_of(machine, mean)
        requirement = Requirement("latency", bound_ns, Fraction(1, 2))
        judged: list[tuple[Step, Verdict]] = []
        for repeat in range(runs):
            rate = min(mean * float(np.exp(spread * generator.standard_normal() - spread**2 / 2)), 0.9)
            late = latencies(machine, generator) * (bound_ns / machine.quantile_ns(1 - rate))
            key = TEMPLATE.key.model_copy(update={"load": "cpu", "repeat": repeat})
            step = TEMPLATE.model_copy(update={"id": f"cpu-{repeat}", "key": key})
            judged.append((step, judge(requirement, step, windows_of(late.astype(np.int64)))))
        found = exposure_of(requirement, judged, RUN)
        assert found is not None
        return {f"exposure, rates of runs differ by 85 %, {runs} runs": found.share_excluded >= mean}

    return draw


def frequency(runs: int) -> Draw:
    """The bounds of the 95 % limit in `frequency`."""

    def draw(kind: str, generator: np.random.Generator) -> dict[str, bool]:
        machine = Machine(kind, seconds=60 // runs)
        if kind == "repeated" and runs == 1:
            return {}
        side = side_of("one", [latencies(machine, generator) for _ in range(runs)])
        line = line_of(side, FrequencyOptions(tails=False))
        assert line is not None
        limit, truth = line.limits[0], machine.quantile_ns(0.95)
        name = f"frequency, 95 % limit, {runs} run{'s' * (runs > 1)}"
        return {
            f"{name}: upper": limit.high_ns is None or limit.high_ns >= truth,
            f"{name}: lower": (limit.low_ns or 0) <= truth,
        }

    return draw


def comparison(runs: int) -> Draw:
    """The intervals of `compare` between a machine and itself."""

    def draw(kind: str, generator: np.random.Generator) -> dict[str, bool]:
        machine = Machine(kind, seconds=30 if runs == 1 else 10)
        if kind == "repeated" and runs == 1:
            return {}
        sides = [
            side_of(name, [latencies(machine, generator) for _ in range(runs)]) for name in ("one", "two")
        ]
        rows = quantile_differences([(sides[0], sides[1])], ComparisonOptions())
        return {
            f"compare, {row.quantile}, {runs} : {runs}": (row.low_ns is None or row.low_ns <= 0)
            and (row.high_ns is None or row.high_ns >= 0)
            for row in rows
            if row.p_different is not None and row.quantile in {"p50", "p99"}
        }

    return draw


def compared_boots(kind: str, generator: np.random.Generator) -> dict[str, bool]:
    """The intervals of `compare` between a machine and itself: five boots of each side."""
    levels, _ = boots(kind, 10, generator)
    figures = (MEDIAN_NS * np.exp(levels)).astype(np.int64)
    swapped = generator.random(5) < 0.5
    pairs = np.where(swapped[:, None], figures.reshape(5, 2)[:, ::-1], figures.reshape(5, 2))
    found = {
        "compare, 5 runs, then 5 of the other side": between_runs(_runs(figures[:5]), _runs(figures[5:])),
        "compare, 5 pairs": between_pairs(_runs(pairs[:, 0]), _runs(pairs[:, 1])),
    }
    held: dict[str, bool] = {}
    for name, difference in found.items():
        interval = difference.interval(alpha=0.05, within_ns=2_000)
        low, high = interval.low_ns, interval.high_ns
        held[name] = (low is None or low <= 0) and (high is None or high >= 0)
    return held


def _runs(figures: npt.NDArray[np.int64]) -> RunFigures:
    return RunFigures(figures.tolist(), figures.tolist())


def lost(kind: str, generator: np.random.Generator) -> dict[str, bool]:
    """The share of lost cycles in `sustained`, and of missed deadlines in the tire's search: a period (or
    tire) is sustained if five runs lose nothing. On average, they would lose something twice.
    """
    shorter, activations = Machine(kind, seconds=20, bad=0.05), 5 * 20 * 500
    bound_ns = bound_of(shorter, 0.05)
    if generator.random() > np.exp(-2):
        return {"sustained and tire, lost or missed": True}  # something was lost: nothing is claimed
    seen = (latencies(shorter, generator) > bound_ns).sum(axis=1)
    effect = design_effect([[Counted.of_windows(seen, np.full(20, shorter.per_s))]])
    at_once = shorter.late_in_a_burst(bound_ns)
    return {
        "sustained and tire, lost or missed": upper_bound(0, activations / effect)
        >= 2 * at_once / activations
    }


def history(number: int) -> Draw:
    """The interval of the median of boots."""

    def draw(kind: str, generator: np.random.Generator) -> dict[str, bool]:
        levels, truth = boots(kind, number, generator)
        low, high = median_interval(levels.tolist()) or (-np.inf, np.inf)
        return {f"history, median of {number} boots": low <= truth <= high}

    return draw


def pairs(kind: str, generator: np.random.Generator) -> dict[str, bool]:
    """The intervals of gate and tune: the change of a machine against itself, over all looks."""
    levels, _ = boots(kind, 24, generator)
    seed = int(generator.integers(2**32))
    order = [side for block in range(2) for side in first_sides(seed, block)]
    two = levels.reshape(12, 2)
    ratios = np.where(np.array(order) == 0, two[:, 1] - two[:, 0], two[:, 0] - two[:, 1])
    decision = gate_test.decide(ratios.tolist(), larger_than=0.1, max_pairs=12)
    assert decision.low is not None and decision.high is not None
    return {"gate and tune, interval of 12 pairs": decision.low <= 0 <= decision.high}


def tire(number: int) -> Draw:
    """The median of repeats, and the speed-up, which is a ratio of two medians."""

    def draw(kind: str, generator: np.random.Generator) -> dict[str, bool]:
        (levels, truth), (others, _) = (boots(kind, number, generator) for _ in range(2))
        median = median_of(np.exp(levels).tolist())
        ratio = ratio_of(np.exp(levels).tolist(), np.exp(others).tolist())
        return {
            f"tire, {what} of {number} repeats": (each.low or 0) <= true <= (each.high or np.inf)
            for what, each, true in (("median", median, np.exp(truth)), ("speed-up", ratio, 1.0))
        }

    return draw


SIZES = (64, 256, 1024, 4096, 16384, 65536)
CONFIGURATIONS = 72
"""How many runs `rtgauge run garre2014` measures in each round, in random order."""


def line(kind: str, generator: np.random.Generator) -> dict[str, bool]:
    """The slope of a line through the step times of six sizes, in three rounds of all configurations."""
    truth = 30.0
    nodes: list[int] = []
    step_ns: list[float] = []
    levels, median = boots(kind, 3 * CONFIGURATIONS, generator)
    for round_at in range(0, len(levels), CONFIGURATIONS):
        places = generator.choice(CONFIGURATIONS, len(SIZES), replace=False)
        for size, place in zip(SIZES, places, strict=True):
            nodes.append(size)
            step_ns.append((300 + truth * size) * float(np.exp(levels[round_at + place] - median)))
    fitted = fit(nodes, step_ns)
    assert fitted is not None
    slope = fitted.slope
    return {"tire, ns per node, 3 repeats": (slope.low or 0) <= truth <= (slope.high or np.inf)}


DRAWS: list[Draw] = [
    *(
        verdict(seconds, share)
        for seconds, share in ((10, 0.05), (10, 0.01), (19, 0.05), (60, 0.05), (60, 0.01))
    ),
    *(exposure(runs, share) for runs, share in ((1, 0.05), (3, 0.05), (5, 0.05))),
    *(exposure_of_rates(runs) for runs in (2, 3, 5)),
    *(frequency(runs) for runs in (1, 5)),
    *(comparison(runs) for runs in (1, 5)),
    lost,
    *(history(number) for number in (3, 6, 12, 20, 40)),
    pairs,
    *(tire(number) for number in (3, 6)),
    line,
    compared_boots,
]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only the bounds with this text")
    chosen = parser.parse_args()
    print(f"| {chosen.draws} draws each | {' | '.join(KINDS)} |\n|{'---|' * (len(KINDS) + 1)}", flush=True)
    for number, draw in enumerate(DRAWS):
        names = {
            name: kind
            for kind in KINDS
            for name in draw(kind, np.random.default_rng(0))
            if chosen.only in name
        }
        if not names:
            continue
        held: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
        for at, kind in enumerate(KINDS):
            generator = np.random.default_rng([chosen.seed, number, at])
            for _ in range(chosen.draws):
                found = draw(kind, generator)
                held[kind].update(name for name, holds in found.items() if holds)
                held[kind].update(f"{name} drawn" for name in found)
        for name in names:
            cells = [
                f"{held[kind][name] / every:.3f}" if (every := held[kind][f"{name} drawn"]) else ""
                for kind in KINDS
            ]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
