# SPDX-License-Identifier: MIT
"""The options of `rtgauge show` and `rtgauge compare` about how often a task can run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.extension_options import ComparesMore, OnPages, ShownPart
from rtgauge.errors import InputError
from rtgauge_ext.papers.frequency.frequency_options import FrequencyOptions, check_fraction

if TYPE_CHECKING:
    from rtgauge.record.reader import Record
    from rtgauge.report.compare.extension_parts import PartMaker

Fraction = Annotated[
    str,
    typer.Option(
        metavar="PART", help="Largest allowed latency as a fraction of the period, e.g. 0.5, 1/3, 25%."
    ),
]


@dataclass(frozen=True)
class FrequencyPart(ShownPart):
    """The options of `rtgauge show`."""

    frequency: Annotated[
        bool,
        typer.Option(
            "--frequency", help="Show the highest frequency at which a task can run; of several records, too."
        ),
    ] = False
    fraction: Fraction = "0.5"
    confidence: Annotated[
        float, typer.Option(metavar="P", help="With --frequency: confidence of each one-sided bound.")
    ] = 0.95

    def frequency_options(self) -> FrequencyOptions:
        """Return the options of the calculation. Raises InputError if one is wrong."""
        if not 0.5 <= self.confidence < 1:
            raise InputError(
                f"--confidence {self.confidence:g}: give at least 0.5 and less than 1, e.g. 0.95"
            )
        return FrequencyOptions(check_fraction(self.fraction), self.confidence)

    def option(self) -> str | None:
        """Return the option that asks for the frequencies; see ShownPart."""
        return "--frequency" if self.frequency else None

    def show(self, records: Sequence[Record], page: str | None, figures: Path | None, *, json: bool) -> None:
        """Show the frequencies; see ShownPart."""
        from rtgauge_ext.papers.frequency.show import show

        written = None if page is None else Path(page or "frequency.html")
        show(records, self.frequency_options(), written, figures, json=json)


@dataclass(frozen=True)
class ComparedByPapers(OnPages, ComparesMore):
    """The options of `rtgauge compare`."""

    fraction: Fraction = "0.5"
    tails: Annotated[
        bool,
        typer.Option(
            "--tails/--no-tails",
            help="Estimate the latency that is exceeded once in a million activations or more rarely.",
        ),
    ] = True

    def part_maker(self) -> PartMaker:
        """Return what makes the papers' part of a comparison."""
        from rtgauge_ext.papers.comparison_part import papers_comparison

        return partial(papers_comparison, tails=self.tails)

    def frequency_options(self) -> FrequencyOptions:
        """Return the options of the calculation. Raises InputError if one is wrong."""
        return FrequencyOptions(check_fraction(self.fraction))
