# SPDX-License-Identifier: MIT
"""What `rtgauge show` and `rtgauge resume` do with the record of a tuning."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from rtgauge.cli.decided import Asker, print_decided
from rtgauge.record.reader import Record

if TYPE_CHECKING:
    from rtgauge.cli.extension_options import AddedValues
    from rtgauge.record.model import Run
    from rtgauge.runner.measure_run import RunOptions
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


def _question(run: Run) -> str:
    from rtgauge.units import format_share, plural
    from rtgauge_ext.tune.tuning_options import options_of

    options = options_of(run)
    gain = f"a gain of {format_share(options.larger_than)}"
    settings = plural(len(options.choices), "setting")
    return f"{options.requirement} under {', '.join(options.loads)}, {gain}, {settings} to try"


def _resume(folder: Path, options: RunOptions, added: AddedValues, json: bool) -> NoReturn:
    from rtgauge_ext.tune.added_options import MoreOfTuning
    from rtgauge_ext.tune.command import finish_tuning, resumed_tuning

    (more,) = added.of(MoreOfTuning)
    finish_tuning(resumed_tuning(folder, options, more.budget), more.files, json=json)


TUNING = Asker("a tuning", frozenset({"budget", "files", "json"}), _question, TuneAnswer.of, _resume)
