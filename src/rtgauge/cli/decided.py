# SPDX-License-Identifier: MIT
"""What a record of a deciding command, such as `rtgauge gate`, asks, and its answer and page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol, cast

from rtgauge.analysis.gate_options import GateOptions, options_of
from rtgauge.cli.command_end import Answer
from rtgauge.extension import load, registered
from rtgauge.known_extensions import from_where
from rtgauge.record.reader import PAGE, Record
from rtgauge.units import format_size, plural

if TYPE_CHECKING:
    from rtgauge.cli.extension_options import AddedValues
    from rtgauge.record.model import Run, StepKey
    from rtgauge.report.table import Table
    from rtgauge.runner.measure_run import RunOptions
    from rtgauge.verdict.gate_result import GateResult

MOST_NAMED = 3
"""The most probes that are named. Otherwise the rest is only counted."""
STYLES = {0: "green", 1: "red"}
"""The colours of the answers that tell, by exit status."""


class DecidedResult(Answer, Protocol):
    """The document of a command that decides."""

    @property
    def outcome(self) -> StrEnum:
        """The answer in a word."""
        ...

    @property
    def status(self) -> int:
        """The exit status."""
        ...


class DecidedAnswer(Protocol):
    """The answer of a record that a deciding command made."""

    @property
    def result(self) -> DecidedResult:
        """Its document."""
        ...

    @property
    def page(self) -> str:
        """The page as text."""
        ...

    def print(self, *, details: bool = False, brief: bool = False) -> None:
        """Print the answer, its basis and its tables. `brief`: only the answer."""
        ...


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
        print_decided(result, basis(result), tables, self.record, values=result.values, brief=brief)


@dataclass(frozen=True)
class Asker:
    """What an extension tells `rtgauge show` and `rtgauge resume` about the records of its command."""

    kind: str
    """For errors: `a tuning`."""
    takes: frozenset[str]
    """Names of the options of `rtgauge resume` that it takes, such as `json`."""
    question: Callable[[Run], str]
    """Says what a record asks. Raises RecordError if its plan is damaged."""
    answer: Callable[[Record], DecidedAnswer]
    """Decides a record, finished or not."""
    resume: Callable[[Path, RunOptions, AddedValues, bool], NoReturn]
    """Continues the record in a folder, prints the result (as JSON or not), and ends with the exit status."""


def not_answered(run: Run) -> str:
    """Return which extension is missing to answer or continue a record, as the end of an error; empty if none
    is.
    """
    return next(
        (missing_extension for key in run.plan if (missing_extension := from_where("askers", key))), ""
    )


def asker_of(run: Run) -> Asker | None:
    """Return the asker of a record; None if no extension answers its plan.

    Raises InputError if the extension cannot be used.
    """
    name = next((name for name in registered("askers") if name in run.plan), None)
    return None if name is None else cast("Asker", load("askers", name, Asker))


def decided(record: Record) -> DecidedAnswer | None:
    """Return the answer of a record that a deciding command made; None for another record.

    Raises RecordError if its plan is damaged.
    """
    if options_of(record.run) is not None:
        return GateAnswer.of(record)
    asker = asker_of(record.run)
    return None if asker is None else asker.answer(record)


def print_decided(
    result: DecidedResult,
    basis: Sequence[str],
    tables: Sequence[Table],
    record: Record,
    *,
    values: str | None,
    brief: bool,
) -> None:
    """Print an answer with its basis and tables, or only the answer (`brief`). `values`: what it rests on."""
    from rtgauge.cli.command_end import print_answer, print_head
    from rtgauge.cli.console import Console

    style = STYLES.get(result.status, "yellow")
    if brief:
        print_head(result, style, Console(), values=values)
        return
    page = record.folder.has(PAGE)
    where = str(record.folder.file(PAGE)) if page else str(record.path)
    print_answer(result, style, basis, tables, "page" if page else "record", where, values=values)


def question_of(run: Run) -> str:
    """Return what a record asks: "p99 of wakeup latency under idle, 10 % larger, 12 pairs". Raises
    RecordError if its plan is damaged.
    """
    gate = options_of(run)
    if gate is not None:
        return gate_question(gate, run.planned)
    asker = asker_of(run)
    if asker is not None:
        return asker.question(run)
    parts = [measured(run.planned), *([run.requirement] if run.requirement else [])]
    return ", ".join([*parts, plural(len(run.planned), "step")])


def gate_question(options: GateOptions, planned: Sequence[StepKey]) -> str:
    """Return what a gate decides. `planned`: the steps of one of its runs, or of all of them."""
    what = measured(planned)
    if options.series is not None:
        probe, metric, load = f"{options.series}//".split("/")[:3]
        what = f"{probe} {metric} under {load}"
    decides = f"{options.quantile} of" if options.require is None else f"violations of {options.require} by"
    return f"{decides} {what}, {format_size(options.larger_than)}, {plural(options.max_pairs, 'pair')}"


def measured(planned: Sequence[StepKey]) -> str:
    """Return what steps measure, and under which loads: "wakeup latency under idle, cpu"."""
    from rtgauge.probe import probe_registry

    names: list[str] = []
    for probe in map(probe_registry.get, dict.fromkeys(key.probe for key in planned)):
        metrics = [metric.name for metric in probe.metrics]
        names.append(
            f"{probe.name} {'latency' if 'latency' in metrics else metrics[0]}" if metrics else probe.name
        )
    more = len(names) - MOST_NAMED
    what = ", ".join([*names[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])])
    return f"{what} under {', '.join(dict.fromkeys(key.load for key in planned))}"
