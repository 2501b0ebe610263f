# SPDX-License-Identifier: MIT
"""`rtgauge marks` explains each mark and what to do about it."""

from __future__ import annotations

from typing import Annotated

import typer

from rtgauge.cli import completion
from rtgauge.errors import InputError
from rtgauge.known_extensions import from_where
from rtgauge.nearest_name import nearest
from rtgauge.record.marks import mark_kinds


def marks(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            autocompletion=completion.marks,
            help="Only these marks.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Explain what each mark means, and what to do about it.

    A mark is a named doubt about a measurement. A note does not change the answer. A doubtful step cannot
    show that a requirement holds, unless the mark only means that threads were delayed. An invalid step does
    not count.

    \b
    Examples:
      rtgauge marks
      rtgauge marks throttled
    """
    for name in names or sorted(mark_kinds()):
        if name not in mark_kinds():
            raise InputError(
                f"there is no mark {name}{from_where('marks', name) or nearest(name, mark_kinds())}"
            )
        explain_mark(name)


def explain_mark(name: str) -> None:
    """Print what a mark means, and what to do about it. An unknown mark has only its name."""
    from rtgauge.cli.console import Console
    from rtgauge.report.terminal_table import print_text

    console, kind = Console(), mark_kinds().get(name)
    if kind is None:
        other = (
            ": another version of rtgauge, or an extension that is not installed, made this mark, so its "
            "meaning is not known here"
        )
        print_text(console, f"{name}{from_where('marks', name) or other}")
        return
    print_text(console, f"{name} ({' or '.join(kind.value.severities)}): {kind.value.meaning}")
    if kind.value.remedy:
        print_text(console, kind.value.remedy, 4)
