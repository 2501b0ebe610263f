# SPDX-License-Identifier: MIT
"""How often `rtgauge bisect` ends at a wrong commit: simulated searches among 64 commits.

python -m ext.bisect.bench.bisection_simulation [SEARCHES]
"""

from __future__ import annotations

import sys

from ext.bisect.tests.unit.test_bisection import COMMITS, Halved, Runs, options_for
from rtgauge.errors import RtgaugeError
from rtgauge_ext.bisect.bisection import CommitSearch

CASES = ((0.004, 0.2), (0.04, 0.2), (0.08, 0.2), (0.04, 0.1))
"""(spread of the runs of one commit, change by the first bad one)."""


def main() -> None:
    """Print a line for each case."""
    searches = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    names = [f"{number:040x}" for number in range(COMMITS)]
    for spread, delay in CASES:
        right, wrong, boots = 0, 0, 0
        for seed in range(searches):
            first_bad = 1 + (seed * 37) % (COMMITS - 1)
            runs = Runs(names, first_bad, seed, spread=spread, delay=delay, broken=frozenset())
            try:
                bisected = CommitSearch(
                    options_for(names, seed), Halved(names), runs.measure, lambda _: None
                ).result()
            except RtgaugeError:
                continue
            right += list(bisected.first_bad) == [names[first_bad]]
            wrong += list(bisected.first_bad) != [names[first_bad]]
            boots += len(runs.booted)
        mean = boots / max(right + wrong, 1)
        print(
            f"spread {spread:.1%}, change {delay:.0%}: {right} right, {wrong} wrong, "
            f"{searches - right - wrong} cannot tell, {mean:.0f} runs"
        )


if __name__ == "__main__":
    main()
