# SPDX-License-Identifier: MIT
"""`rtgauge compare`: records, loads, deployments or kernels side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.options import Fraction, Json, Marker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rtgauge.analysis.comparison import Comparison
    from rtgauge.analysis.comparison_scope import Scope
    from rtgauge.analysis.sides import Side
    from rtgauge.record.reader import Record
    from rtgauge.report.compare.page import Chapter
    from rtgauge.report.frequency_tables import Timing

DEFAULT_RESAMPLES = 1_999


def _progress() -> tuple[Callable[[str, int, int], None] | None, Callable[[], None]]:
    """(progress callback or None, function that removes the bar); only a terminal gets a bar."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        return None, lambda: None
    bar = Progress(console=console, transient=True)
    task = bar.add_task("reading", total=None)
    bar.start()
    return (lambda activity, done, total: bar.update(task, description=activity, completed=done, total=total)), bar.stop


def _operations(
    records: Sequence[Record], baseline: str | None, timing: Timing, *, force: bool, as_json: bool, page: Path | None, figures: Path | None
) -> None:
def _print(compared: Sequence[tuple[Scope, Comparison, list[Side], list[tuple[Side, Side]]]]) -> None:
