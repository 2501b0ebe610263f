# SPDX-License-Identifier: MIT
"""`rtgauge compare`: records, loads, deployments or kernels side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rtgauge.record.reader import Record

DEFAULT_RESAMPLES = 1_999


def _progress() -> tuple[Callable[[str, int, int], None] | None, Callable[[], None]]:
    """What shows progress on standard error where that is a terminal, and what takes it away."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        return None, lambda: None
    bar = Progress(console=console, transient=True)
    task = bar.add_task("reading", total=None)
    bar.start()
    return (lambda what, done, total: bar.update(task, description=what, completed=done, total=total)), bar.stop


def _operations(records: Sequence[Record], *, as_json: bool, page: Path | None, figures: Path | None) -> None:
    """Records of several operations, which have no common scale: the table of what each costs on each system."""
    from rtgauge.analysis.microbenchmarks import microbenchmarks
    from rtgauge.errors import InputError

    for option, value in (("--out", page), ("--figures", figures)):
        if value is not None:
            raise InputError(f"{option}: records of several operations are compared in a table only; leave {option} away, or see each record's own page")
    found = microbenchmarks(records)
    if as_json:
        typer.echo(found.model_dump_json(indent=1))
        return
    from rich.console import Console

    from rtgauge.report.compare.terminal import print_grids
    from rtgauge.report.microbenchmarks import terminal_grids

    console = Console()
    print_grids(terminal_grids(found, console.width), console)


def compare(
    records: Annotated[list[Path], typer.Argument(metavar="RECORD...", help="Folders of records; one is enough where it holds several loads or deployments.")],
    baseline: Annotated[
        str | None,
        typer.Option(metavar="RECORD|LABEL", help="What the others are compared with: a record, label, deployment, load or kernel; default: Single."),
    ] = None,
    within: Annotated[str, typer.Option(metavar="DURATION", help="Differences up to this are called the same.")] = "2us",
    alpha: Annotated[float, typer.Option(help="Level of every test; intervals have a confidence of 1 - alpha.")] = 0.05,
    scale: Annotated[str, typer.Option(metavar="percent|counts", help="What the paper's chi-square statistic is computed from.")] = "percent",
    resamples: Annotated[int, typer.Option(min=0, help="Resamples of the bootstrap; 0: no intervals.")] = DEFAULT_RESAMPLES,
    tails: Annotated[bool, typer.Option("--tails/--no-tails", help="Estimate the latency exceeded once in a million activations and rarer.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Also compare emulated machines with others.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE.html", help="Also write a page with the figures.")] = None,
    figures: Annotated[Path | None, typer.Option(metavar="DIR", help="Also write every figure as PNG, SVG and PDF into this folder.")] = None,
) -> None:
    """Compare what was measured: figures, settings that differ, the selection of the papers, differences of quantiles with intervals, and tails."""
    from rtgauge.analysis.comparison import Options
    from rtgauge.analysis.comparison import compare as compare_sides
    from rtgauge.analysis.microbenchmarks import has_several_operations
    from rtgauge.analysis.selection import Scale
    from rtgauge.analysis.sides import pairs, sides_of
    from rtgauge.cli.durations import duration_option
    from rtgauge.errors import InputError
    from rtgauge.record.reader import Record

    within_ns = duration_option("--within", within)
    if not 0 < alpha < 1:
        raise InputError(f"--alpha {alpha:g} is not between 0 and 1; 0.05 is usual")
    if scale not in set(Scale):
        raise InputError(f"--scale {scale} is neither percent nor counts")
    opened = [Record.open(record) for record in records]
    if has_several_operations(opened):
        _operations(opened, as_json=json, page=out, figures=figures)
        return
    sides = sides_of(opened, force=force)
    chosen = pairs(sides, baseline)
    progress, end = _progress()
    try:
        result = compare_sides(sides, chosen, Options(alpha, within_ns, Scale(scale), resamples, tails), progress)
    finally:
        end()
    if json:
        typer.echo(result.model_dump_json(indent=1))
    else:
        from rich.console import Console

        from rtgauge.report.compare.terminal import print_comparison

        print_comparison(result, Console())
    if out is not None:
        from rtgauge.report.compare.page import render

        render(result, sides, chosen, out)
        typer.echo(f"page     {out}", err=json)
    if figures is not None:
        from rtgauge.report.compare.figures import save_figures

        for path in save_figures(sides, chosen, figures):
            typer.echo(f"figure   {path}", err=json)
