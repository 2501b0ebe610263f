# SPDX-License-Identifier: MIT
"""The answer of a tuning: prints it, and makes its page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.cli.decided import print_decided
from rtgauge.record.reader import Record

if TYPE_CHECKING:
    from rtgauge_ext.tune.result import TuneResult


@dataclass(frozen=True)
class TuneAnswer:
    """A tuning's result and its record."""

    result: TuneResult
    record: Record

    @classmethod
    def of(cls, record: Record) -> TuneAnswer:
        """Decide a tuning, finished or not."""
        from rtgauge_ext.tune.result import TuneResult

        return cls(TuneResult.of(record), record)

    @property
    def page(self) -> str:
        """The page as text."""
        from rtgauge_ext.tune.page import page

        return page(self.result, self.record)

    def print(self, *, details: bool = False, brief: bool = False) -> None:  # noqa: ARG002 - all details are shown
        """Print the answer, its basis and its tables. `brief`: only the answer."""
        from rtgauge_ext.tune.page import basis, tables

        result = self.result
        shown = tables(result) if result.tests else []
        print_decided(result, basis(result), shown, self.record, values=None, brief=brief)
