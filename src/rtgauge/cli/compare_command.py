# SPDX-License-Identifier: MIT
"""`rtgauge compare` compares records, loads, deployments or kernels side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from rtgauge.cli.extension_options import AddedValues
from rtgauge.cli.shared_options import ComparedSides, ComparisonStatistics, PrintedComparison, grouped, option


@grouped
def compare(
    *,
    sides: ComparedSides,
    statistics: ComparisonStatistics,
    require: Annotated[
        str | None,
        option(
            "TEXT", 'Requirement to judge every record by, e.g. "period=1ms latency<=200us hardness=100%".'
        ),
    ] = None,
    fail_if_worse: Annotated[
        bool,
        typer.Option(
            "--fail-if-worse",
            help="For CI: exit status 1 if repeated runs show that a side is worse than its baseline by more "
            "than --within, 4 if they cannot tell.",
        ),
    ] = False,
    shown: PrintedComparison,
    added: AddedValues,
) -> None:
    """Compare records, or the loads or deployments of one record.

    The first line is the conclusion. Runs are compared with runs: the repeats of a step, or the records with
    the same label. A single run says nothing about other runs. Then come the differences between quantiles
    with confidence intervals, and the statistics. --details adds the settings that differ. Probes,
    microbenchmark operations and tasks have no common scale, so they are compared separately.

    \b
    Examples:
      rtgauge compare RECORD
          the loads or deployments of one record
      rtgauge compare BEFORE AFTER --page compare.html
          two records, with a page
      rtgauge compare --side before=RECORD --side after=latest
          two records with names of your own
      rtgauge compare --fail-if-worse --side old=R1 --side new=R2 \\
                      --side old=R3 --side new=R4
          two runs per side, alternately; exit status 1 if new is worse than old
      rtgauge compare STOCK RT --figures figures
          two kernels: the papers' table of microbenchmarks, and figure files
      rtgauge compare STOCK RT XENOMAI RTAI --page systems.html
          four systems measured with one plan, on one page
      rtgauge compare TASKS --metric latency
          release latency of each task of a task set, idle and loaded
    """
    from rtgauge.cli.compare_records import compare_records

    status = compare_records(sides, statistics, shown, added, require, fail_if_worse=fail_if_worse)
    raise typer.Exit(status)
