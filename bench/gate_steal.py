# SPDX-License-Identifier: MIT
"""How gates decide if the host takes CPU time, drawn from real runs of one side, kept in gate_steal.csv.

    gate_steal.py                 print how gates drawn from the runs decide
    gate_steal.py --keep FOLDER...   write the runs of the records in these folders to gate_steal.csv

A gate takes consecutive runs, or runs drawn from all, in the orders that rtgauge draws. The candidate is as
measured, or 1.5 or 2 times as slow. A rule says which pairs count: only pairs from whose runs the host took
nothing, or also pairs from both of whose runs it took CPU time alike. The runs last 2.5 s, so a
single tick is as large a share of them as the mark `steal` calls doubtful in the default of 10 s.
"""

import argparse
import csv
import math
from collections import Counter
from pathlib import Path

import numpy as np

from rtgauge.analysis.gate_test import TRIED, Outcome, decide
from rtgauge.plan.alternating_plan import first_sides
from rtgauge.record.alternation import BLOCK, DEFAULT_PAIRS, most_measured
from rtgauge.record.reader import Record
from rtgauge.verdict.gate_pairs import stolen_ns, taken_alike

DATA = Path(__file__).with_suffix(".csv")
COLUMNS = ("start", "load", "p50_ns", "p95_ns", "p99_ns", "stolen_ns")
PAIRS = DEFAULT_PAIRS
MOST = most_measured(PAIRS)
RULES = ("nothing taken", "alike")
NOT_MEASURED = "not measured"


def keep(folders: list[Path]) -> None:
    """Write the runs of the records in these folders to DATA, in the order of measurement."""
    rows: list[list[str]] = []
    for path in (found.parent for folder in folders for found in folder.glob("*/run.json")):
        for step in Record.open(path).steps:
            if step.total is not None:
                figures = step.total.filled
                values = (figures.p50_ns, figures.p95_ns, figures.p99_ns, stolen_ns(step))
                rows.append([str(step.started), step.key.load, *map(str, values)])
    with DATA.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(sorted(rows))


def outcome(ratios: np.ndarray, counts: np.ndarray) -> str:
    """The answer of a gate whose pairs count or not, in the order of measurement."""
    if not counts[:TRIED].any():
        return NOT_MEASURED
    decision = decide(ratios[counts].tolist(), larger_than=0.1, max_pairs=PAIRS)
    return NOT_MEASURED if decision.outcome is Outcome.GO_ON else decision.outcome.value


def drawn(runs: int, *, consecutive: bool, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The runs (baseline, candidate) of each pair of a gate."""
    if consecutive:
        at = (generator.integers(runs) + np.arange(2 * MOST)) % runs
    else:
        at = generator.integers(runs, size=2 * MOST)
    seed = int(generator.integers(2**16))
    orders = np.array([side for block in range(-(-MOST // BLOCK)) for side in first_sides(seed, block)])[
        :MOST
    ]
    first, second = at[::2], at[1::2]
    return np.where(orders == 0, first, second), np.where(orders == 0, second, first)


def table(rows: list[dict[str, str]], quantile: str, gates: int, generator: np.random.Generator) -> None:
    """Print how gates decide, a row for each rule and each kind of draw."""
    for load in dict.fromkeys(row["load"] for row in rows):
        of = [row for row in rows if row["load"] == load]
        values = np.log([float(row[f"{quantile}_ns"]) for row in of])
        stolen = np.array([int(row["stolen_ns"]) for row in of])
        for consecutive in (True, False):
            answers = {(rule, factor): Counter[str]() for rule in RULES for factor in (1.0, 1.5, 2.0)}
            better, left_out = Counter[str](), Counter[str]()
            for _ in range(gates):
                before, after = drawn(len(of), consecutive=consecutive, generator=generator)
                marked = (stolen[before] > 0) | (stolen[after] > 0)
                alike = np.array([
                    taken_alike(int(stolen[a]), int(stolen[b])) for a, b in zip(before, after, strict=True)
                ])  # fmt: skip
                for rule, counts in zip(RULES, (~marked, ~marked | alike), strict=True):
                    ratios = values[after] - values[before]
                    left_out[rule] += int((~counts[:PAIRS]).sum())
                    better[rule] += outcome(-ratios, counts) == Outcome.WORSE.value
                    for factor in (1.0, 1.5, 2.0):
                        answers[rule, factor][outcome(ratios + math.log(factor), counts)] += 1
            for rule in RULES:
                same = answers[rule, 1.0]
                found = [answers[rule, factor]["worse"] for factor in (1.5, 2.0)]
                shares = [
                    same["worse"],
                    better[rule],
                    same["pass"],
                    same["cannot tell"],
                    same[NOT_MEASURED],
                    *found,
                ]
                print(
                    f"| {load} {quantile} | {'consecutive' if consecutive else 'drawn from all'} | {rule} "
                    f"| {left_out[rule] / gates / PAIRS:.1%} | "
                    + " | ".join(f"{each / gates:.2%}" for each in shares)
                    + " |",
                    flush=True,
                )  # fmt: skip


def main() -> None:
    """Keep runs, or print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--gates", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.keep is not None:
        keep(arguments.keep)
        return
    with DATA.open(newline="") as file:
        rows = list(csv.DictReader(file))
    print("| runs | draw | pairs that count | left out | worse | better | not worse | cannot tell |", end="")
    print(" not measured | x 1.5 found | x 2 found |\n|---|---|---|---|---|---|---|---|---|---|---|")
    for quantile in ("p50", "p99"):
        table(rows, quantile, arguments.gates, np.random.default_rng(arguments.seed))


if __name__ == "__main__":
    main()
