# SPDX-License-Identifier: MIT
"""How often a gate calls like with like worse, and how often it finds a change: by simulated boots.

`gate_simulation.py [--decisions N] [--seed N]` prints a table in Markdown. Boots are log-normal with a given
spread: independent; with a drift (AR(1), 0.5 from boot to boot); with 15 % of the boots slower by half; with
heavy tails (Student's t with 3 degrees of freedom). Each decision has at most 12 pairs, of +10 % to find.

With `--rate` a bound decides: events of each run are drawn from Poisson's distribution, with a mean that
differs between boots, and three times as many are to be found; `--pairs`: at most so many.
"""

import argparse
import math
from collections import Counter

import numpy as np

from rtgauge.analysis.gate import Outcome, decide
from rtgauge.analysis.gate_rate import decide_rate
from rtgauge.plan.alternation import first_sides
from rtgauge.record.alternation import BLOCK

LARGER_THAN, PAIRS = 0.1, 12
SPREADS = (0.02, 0.04, 0.08, 0.2)


def boots(kind: str, spread: float, gates: int, generator: np.random.Generator) -> np.ndarray:
    """Logarithms of the value of each boot, in the order of measurement: (gates, 2 x PAIRS)."""
    values = generator.normal(0, spread, (gates, 2 * PAIRS))
    if kind == "drift":
        for boot in range(1, values.shape[1]):
            values[:, boot] = 0.5 * values[:, boot - 1] + math.sqrt(1 - 0.5**2) * values[:, boot]
    elif kind == "slow boots":
        values += math.log(1.5) * (generator.random(values.shape) < 0.15)
    elif kind == "heavy tails":
        values = generator.standard_t(3, values.shape) * spread / math.sqrt(3)
    return values


def outcomes(
    values: np.ndarray, change: float, generator: np.random.Generator
) -> tuple[Counter[str], float, int]:
    """(how often each outcome, mean pairs, how often worse at the first look)."""
    counted: Counter[str] = Counter()
    pairs = early = 0

    def orders() -> list[int]:
        seed = int(generator.integers(2**32))
        return [side for block in range(PAIRS // BLOCK) for side in first_sides(seed, block)]

    for row in values.reshape(len(values), PAIRS, 2):
        baseline_first = np.array(orders()) == 0
        ratios = np.where(baseline_first, row[:, 1] - row[:, 0], row[:, 0] - row[:, 1]) + math.log1p(change)
        decision = decide(ratios.tolist(), larger_than=LARGER_THAN, max_pairs=PAIRS)
        counted[decision.outcome] += 1
        pairs += decision.pairs
        early += decision.outcome is Outcome.WORSE and decision.pairs == BLOCK
    return counted, pairs / len(values), early


def rates(kind: str, gates: int, most: int, generator: np.random.Generator) -> np.ndarray:
    """The rate of each boot, of 1 on average or at the median: (gates, most, 2)."""
    boot = generator.normal(0, 1, (gates, 2 * most))
    factors = np.ones_like(boot)
    if kind == "drift":
        for at in range(1, 2 * most):
            boot[:, at] = 0.5 * boot[:, at - 1] + math.sqrt(1 - 0.5**2) * boot[:, at]
        factors = np.exp(0.7 * boot)
    elif kind == "slow boots":
        factors = np.where(generator.random(boot.shape) < 0.15, 20, 1)
    elif kind == "heavy tails":
        factors = np.exp(generator.standard_t(3, boot.shape) * 0.7).clip(0, 1_000)
    elif kind == "negative binomial":
        factors = generator.gamma(0.5, 2, boot.shape)
    pairs = factors.reshape(gates, most, 2)
    swapped = generator.random((gates, most)) < 0.5
    pairs[swapped] = pairs[swapped][:, ::-1]
    return pairs


def rate_table(decisions: int, most: int, generator: np.random.Generator) -> None:
    """Print how often a rate is called worse."""

    def outcomes_of(means: np.ndarray) -> Counter[str]:
        # At most 400 stretches of time.
        events = np.minimum(generator.poisson(means), 400).tolist()
        return Counter(decide_rate(each, larger_than=1, max_pairs=most).outcome for each in events)

    print("| boots | events of a run | false alarms in 500 | three times as many found |")
    print("|---|---|---|---|")
    few = decisions // 4
    for kind in ("alike", "drift", "slow boots", "heavy tails", "negative binomial"):
        for mean in (0.2, 2, 20):
            same = outcomes_of(mean * rates(kind, decisions, most, generator))
            worse = outcomes_of(mean * rates(kind, few, most, generator) * [1, 3])
            print(
                f"| {kind} | {mean:g} | {same[Outcome.WORSE] / decisions * 500:.2f} "
                f"| {worse[Outcome.WORSE] / few:.1%} |",
                flush=True,
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", action="store_true")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="of a gate with --rate")
    arguments = parser.parse_args()
    generator = np.random.default_rng(arguments.seed)
    if arguments.rate:
        rate_table(arguments.decisions, arguments.pairs, generator)
        return
    print("| boots | spread | false alarms in 500 | pass | pairs | +10 % found | by the first look | pairs |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in ("independent", "drift", "slow boots", "heavy tails"):
        for spread in SPREADS:
            same, same_pairs, _ = outcomes(boots(kind, spread, arguments.decisions, generator), 0, generator)
            worse, pairs, early = outcomes(
                boots(kind, spread, arguments.decisions // 4, generator), LARGER_THAN, generator
            )
            found = arguments.decisions // 4
            print(
                f"| {kind} | {spread:.0%} | {same[Outcome.WORSE] / arguments.decisions * 500:.2f} "
                f"| {same[Outcome.PASS] / arguments.decisions:.1%} | {same_pairs:.1f} "
                f"| {worse[Outcome.WORSE] / found:.1%} | {early / found:.1%} | {pairs:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
