# SPDX-License-Identifier: MIT
"""The answer of a record that `rtgauge gate` or `rtgauge tune` made: prints it, and makes its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.analysis.gate_wish import wish_of
from rtgauge.record.reader import PAGE, Record
from rtgauge.tune.wish import KEY

if TYPE_CHECKING:
    from rtgauge.report.table import Table
    from rtgauge.tune.result import TuneResult
    from rtgauge.verdict.gate_result import GateResult

STYLES = {0: "green", 1: "red"}
"""The colours of the answers that tell, by exit status."""


@dataclass(frozen=True)
class GateAnswer:
    """A gate's result and its record."""

    result: GateResult
    record: Record

    @classmethod
    def of(cls, record: Record) -> GateAnswer:
        """Decide a gate that measures no more, and find what delayed only its candidate."""
        from rtgauge.explain.analysis.new_culprits import new_culprits
        from rtgauge.verdict.gate_result import GateResult

        result = GateResult.final(record)
        return cls(result.model_copy(update={"culprits": new_culprits(record)}), record)

    @property
    def page(self) -> str:
        """The page as text."""
        from rtgauge.report import gate_report

        return gate_report.page(self.result, self.record)

    def print(self, *, details: bool = False, brief: bool = False) -> None:
        """Print the answer, its basis and its tables. `brief`: only the answer."""
        from rtgauge.report.gate_report import basis, pairs_table, series_table

        result = self.result
        tables = [] if result.primary is None else [series_table(result)]
        if tables and (details or any(pair.why_not is not None for pair in result.pairs)):
            tables.append(pairs_table(result))
        _print(result, basis(result), tables, self.record, values=result.values, brief=brief)


@dataclass(frozen=True)
class TuneAnswer:
    """A tuning's result and its record."""

    result: TuneResult
    record: Record

    @classmethod
    def of(cls, record: Record) -> TuneAnswer:
        """Decide a tuning, finished or not."""
        from rtgauge.tune.result import TuneResult

        return cls(TuneResult.of(record), record)

    @property
    def page(self) -> str:
        """The page as text."""
        from rtgauge.tune.page import page

        return page(self.result, self.record)

    def print(self, *, details: bool = False, brief: bool = False) -> None:  # noqa: ARG002 - all details are shown
        """Print the answer, its basis and its tables. `brief`: only the answer."""
        from rtgauge.tune.page import basis, tables

        result = self.result
        shown = tables(result) if result.tests else []
        _print(result, basis(result), shown, self.record, values=None, brief=brief)


def decided(record: Record) -> GateAnswer | TuneAnswer | None:
    """Return the answer of a gate's or a tuning's record; None for another record.

    Raises RecordError if its plan is damaged.
    """
    if wish_of(record.run) is not None:
        return GateAnswer.of(record)
    return TuneAnswer.of(record) if KEY in record.run.plan else None


def _print(
    result: GateResult | TuneResult,
    basis: Sequence[str],
    tables: Sequence[Table],
    record: Record,
    *,
    values: str | None,
    brief: bool,
) -> None:
    from rtgauge.cli.conclusion import print_answer, print_head
    from rtgauge.cli.console import Console

    style = STYLES.get(result.status, "yellow")
    if brief:
        print_head(result, style, Console(), values=values)
        return
    page = record.folder.has(PAGE)
    where = str(record.folder.file(PAGE)) if page else str(record.path)
    print_answer(result, style, basis, tables, "page" if page else "record", where, values=values)
