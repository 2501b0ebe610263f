# SPDX-License-Identifier: MIT
"""How often a gate is wrong, and how often it finds a change, in simulated boots. Their model is not its own.

`gate_simulation.py [--decisions N] [--pairs N] [--seed N]` prints tables in Markdown. Boots are log-normal
with a given spread: independent; with a drift (AR(1), 0.5 from boot to boot); with 15 % of the boots slower
by half; with heavy tails (Student's t with 3 degrees of freedom); with a period of 3.6 to 4.4 or of 2.2 to 9
runs (a sine or a square, ten times the spread of the boots), also with a random pause of up to one run before
each run. The gates look for +10 %. In the second table,
the candidate is worse in some boots only, by +10 % on average.

With `--rate` a bound decides: violations of each run come singly or in bursts, their number is drawn from
Poisson's distribution with a mean that differs between boots, and three times as many are to be found. With
`--share` the candidate breaks its bound exactly as often as a requirement allows, on average over its boots.
"""

import argparse
import math
from collections import Counter
from collections.abc import Callable

import numpy as np

from rtgauge.analysis import gate_test
from rtgauge.analysis.gate_rate import PairCounts, SideCounts, decide_rate
from rtgauge.analysis.gate_test import decide, looks
from rtgauge.plan.alternating_plan import first_sides
from rtgauge.record.alternation import BLOCK

LARGER_THAN = 0.1
SPREADS = (0.02, 0.04, 0.08, 0.2)
PERIODS = {"period near 4 runs": (3.6, 4.4), "period of 2 to 9 runs": (2.2, 9.0)}
PAUSES = ", random pauses"
ACTIVATIONS, WINDOWS = 10_000, 40


def boots(kind: str, spread: float, gates: int, pairs: int, generator: np.random.Generator) -> np.ndarray:
    """Logarithms of the value of each boot, in the order of measurement: (gates, 2 x pairs)."""
    values = generator.normal(0, spread, (gates, 2 * pairs))
    if kind == "drift":
        for boot in range(1, values.shape[1]):
            values[:, boot] = 0.5 * values[:, boot - 1] + math.sqrt(1 - 0.5**2) * values[:, boot]
    elif kind == "slow boots":
        values += math.log(1.5) * (generator.random(values.shape) < 0.15)
    elif kind == "heavy tails":
        values = generator.standard_t(3, values.shape) * spread / math.sqrt(3)
    elif (period := kind.removesuffix(PAUSES)) in PERIODS:
        pauses = generator.uniform(0, 1, values.shape) if kind.endswith(PAUSES) else np.zeros(values.shape)
        at = np.arange(2 * pairs) + np.cumsum(pauses, axis=1)
        wave = np.sin(
            2 * np.pi * (at / generator.uniform(*PERIODS[period], (gates, 1)))
            + generator.uniform(0, 2 * np.pi, (gates, 1))
        )
        square = generator.random((gates, 1)) < 0.5
        values += spread * 10 * np.where(square, np.sign(wave), wave)
    return values


def by_sides(values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """ln(candidate / baseline) of each pair, (gates, pairs), in the orders that rtgauge draws."""
    gates, pairs = len(values), values.shape[1] // 2
    seeds = generator.integers(2**32, size=200).tolist()
    orders = np.array(
        [[side for block in range(-(-pairs // BLOCK)) for side in first_sides(seed, block)] for seed in seeds]
    )[generator.integers(len(seeds), size=gates), :pairs]
    first, second = values[:, ::2], values[:, 1::2]
    return np.where(orders == 0, second - first, first - second)


def outcomes(ratios: np.ndarray, rare: float | None = None) -> tuple[Counter[str], float]:
    """(how often each outcome, mean pairs)."""
    pairs = ratios.shape[1]
    decisions = [decide(row, larger_than=LARGER_THAN, max_pairs=pairs, rare=rare) for row in ratios.tolist()]
    return Counter(each.outcome.value for each in decisions), float(
        np.mean([each.pairs for each in decisions])
    )


def quantile_table(decisions: int, pairs: int, generator: np.random.Generator) -> None:
    """Print how often like with like, +10 % and exactly +10 % are called worse or pass."""
    print("| boots | spread | false alarms in 500 | pass | pairs | +10 % found | false passes in 100 |")
    print("|---|---|---|---|---|---|---|")
    for kind in (
        "independent",
        "drift",
        "slow boots",
        "heavy tails",
        *PERIODS,
        *(f"{each}{PAUSES}" for each in PERIODS),
    ):
        for spread in SPREADS:
            same, mean = outcomes(by_sides(boots(kind, spread, decisions, pairs, generator), generator))
            more = by_sides(boots(kind, spread, decisions, pairs, generator), generator) + math.log1p(
                LARGER_THAN
            )
            found, _ = outcomes(more)
            alarms = same["worse"] / decisions * 500
            print(
                f"| {kind} | {spread:.0%} | {alarms:.2f} | {same['pass'] / decisions:.1%} "
                f"| {mean:.1f} | {found['worse'] / decisions:.1%} | {found['pass'] / decisions * 100:.2f} |",
                flush=True,
            )


def worse_in_some_boots(kind: str, shape: tuple[int, int], generator: np.random.Generator) -> np.ndarray:
    """How much worse each boot of the candidate is (ln), +10 % on average."""
    mean = math.log1p(LARGER_THAN)
    if kind == "exponential":
        return generator.exponential(mean, shape)
    if kind == "Gamma 0.5":
        return generator.gamma(0.5, 2 * mean, shape)
    factor, share = {"x3 in 1 of 10": (3, 0.1), "x10 in 1 of 20": (10, 0.05), "x1.5 in 1 of 4": (1.5, 0.25)}[
        kind
    ]
    return math.log(factor) * (generator.random(shape) < share)


def skewed_table(decisions: int, pairs: int, generator: np.random.Generator) -> None:
    """Print how often a candidate that is worse in some boots only passes."""
    print("\n| worse | false passes in 100 | with --rare 10% (48 pairs) |")
    print("|---|---|---|")
    for kind in ("exponential", "Gamma 0.5", "x1.5 in 1 of 4", "x3 in 1 of 10", "x10 in 1 of 20"):
        passed: list[float] = []
        for most, rare in ((pairs, None), (48, 0.1)):
            ratios = by_sides(boots("independent", 0.02, decisions, most, generator), generator)
            found, _ = outcomes(ratios + worse_in_some_boots(kind, ratios.shape, generator), rare)
            passed.append(found["pass"] / decisions * 100)
        print(f"| {kind} | {passed[0]:.2f} | {passed[1]:.2f} |", flush=True)


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
    elif kind == "Gamma 0.5":
        factors = generator.gamma(0.5, 2, boot.shape)
    pairs = factors.reshape(gates, most, 2)
    swapped = generator.random((gates, most)) < 0.5
    pairs[swapped] = pairs[swapped][:, ::-1]
    return pairs


def violations(
    means: np.ndarray, *, bursts: bool, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The violations of runs with these means, and their variances as the windows show them. A burst has ten
    violations on average.
    """
    events = generator.poisson(np.repeat((means / WINDOWS)[..., None], WINDOWS, axis=-1))
    if bursts:
        events += np.where(events > 0, generator.negative_binomial(np.maximum(events, 1), 0.1), 0)
    late = np.minimum(events, ACTIVATIONS // WINDOWS)
    return late.sum(axis=-1), late.var(axis=-1, ddof=1) * WINDOWS


def rate_table(decisions: int, most: int, generator: np.random.Generator) -> None:
    """Print how often a rate is called worse, and how often twice the rate passes."""

    def outcomes_of(means: np.ndarray, *, bursts: bool) -> Counter[str]:
        late, variances = violations(means, bursts=bursts, generator=generator)
        return Counter(
            decide_rate(PairCounts.of(*each), larger_than=1, max_pairs=most).outcome.value
            for each in zip(late.tolist(), variances.tolist(), strict=True)
        )

    print("| boots | of a run | false alarms in 500 | false passes in 100 | three times as many found |")
    print("|---|---|---|---|---|")
    few = decisions // 4
    for kind in ("alike", "drift", "slow boots", "heavy tails", "Gamma 0.5"):
        for bursts in (False, True):
            # With the last mean, nearly every window has a violation.
            for mean in (2, 20, 200):
                same = outcomes_of(mean * rates(kind, decisions, most, generator), bursts=bursts)
                twice = outcomes_of(mean * rates(kind, decisions, most, generator) * [1, 2], bursts=bursts)
                worse = outcomes_of(mean * rates(kind, few, most, generator) * [1, 3], bursts=bursts)
                what = f"{mean:g} {'bursts' if bursts else 'single'}"
                print(
                    f"| {kind} | {what} | {same['worse'] / decisions * 500:.2f} "
                    f"| {twice['pass'] / decisions * 100:.2f} | {worse['worse'] / few:.1%} |",
                    flush=True,
                )


def share_table(decisions: int, generator: np.random.Generator) -> None:
    """Print how often a candidate is said to meet its bound, if it breaks it exactly as often as allowed on
    average over its boots, or a third as often. What is said is wrong if more boots break the bound than it
    allows for.
    """
    print(
        "| boots | violations of a run | said in 100: 12 pairs | 48 pairs | wrong: 12 pairs | 48 pairs |",
        end="",
    )
    print(" said of a third as many: 12 pairs | 48 pairs |")
    print("|---|---|---|---|---|---|---|---|")
    drawn: dict[str, Callable[[tuple[int, int]], np.ndarray]] = {
        "alike": np.ones,
        "Gamma 4": lambda shape: generator.gamma(4, 0.25, shape),
        "Gamma 1": lambda shape: generator.gamma(1, 1, shape),
        "Gamma 0.5": lambda shape: generator.gamma(0.5, 2, shape),
        "one bad boot in ten": lambda shape: np.where(generator.random(shape) < 0.1, 9.1, 0.1),
        "one bad boot in three": lambda shape: np.where(generator.random(shape) < 1 / 3, 2.8, 0.1),
    }

    def said(kind: str, most: int, mean: float, part: float) -> tuple[float, float]:
        """In how many of 100 gates it is said, and wrong."""
        late, variances = violations(
            part * mean * drawn[kind]((decisions, most)), bursts=False, generator=generator
        )
        breaks = float((part * drawn[kind]((1, 1_000_000)) > 1).mean())
        first = gate_test.first_pass(most, 0.1 if most == 48 else None)
        level = gate_test.OVERLOOK / len(looks(most))
        allowed, every = mean / ACTIVATIONS, np.full(most, float(ACTIVATIONS))
        all_said = all_wrong = 0
        for row, spread in zip(late.astype(float), variances, strict=True):
            for n in (pairs for pairs in looks(most) if pairs >= first):
                if SideCounts(row[:n], row[:n], spread[:n], every[:n]).meets(allowed, 1 - level):
                    all_said += 1
                    all_wrong += breaks > gate_test.rarest_shown(n)
                    break
        return all_said / decisions * 100, all_wrong / decisions * 100

    for kind in drawn:
        for mean in (2, 20):
            exactly = [said(kind, most, mean, 1) for most in (12, 48)]
            third = [said(kind, most, mean, 1 / 3) for most in (12, 48)]
            figures = [*(each for each, _ in exactly), *(wrong for _, wrong in exactly)]
            figures += [each for each, _ in third]
            print(f"| {kind} | {mean} | {' | '.join(f'{each:.2f}' for each in figures)} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", action="store_true")
    parser.add_argument("--share", action="store_true")
    parser.add_argument("--pairs", type=int, default=12)
    arguments = parser.parse_args()
    generator = np.random.default_rng(arguments.seed)
    if arguments.rate:
        rate_table(arguments.decisions, arguments.pairs, generator)
    elif arguments.share:
        share_table(arguments.decisions, generator)
    else:
        quantile_table(arguments.decisions, arguments.pairs, generator)
        skewed_table(arguments.decisions, arguments.pairs, generator)


if __name__ == "__main__":
    main()
