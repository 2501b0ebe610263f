# SPDX-License-Identifier: MIT
"""`rtgauge show` and `rtgauge list`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli import completion
from rtgauge.cli.extension_options import AddedValues, ShownPart
from rtgauge.cli.extension_resumer import resumer_of
from rtgauge.cli.shared_options import (
    AllowLeftOut,
    Details,
    Figures,
    Json,
    Require,
    grouped,
    option,
)
from rtgauge.errors import InputError, RecordError
from rtgauge.record.records_folder import RECORDS

if TYPE_CHECKING:
    from rtgauge.cli.decided import DecidedAnswer
    from rtgauge.record.reader import Record


@dataclass(frozen=True)
class Judging:
    """Options for the requirement."""

    require: Require = None
    allow_left_out: AllowLeftOut = False


@dataclass(frozen=True)
class Parts:
    """Options that choose what of a record to show."""

    why: Annotated[
        bool, typer.Option("--why", help="Show where the time of each explained latency went.")
    ] = False
    step: Annotated[str | None, option("ID", "With --why: only this step, e.g. 01-wakeup-idle.")] = None
    marks: Annotated[
        bool, typer.Option("--marks", help="Show the marks: what each means, and what to do about it.")
    ] = False

    def chosen(self, others: Sequence[ShownPart]) -> str | None:
        """Return the option that was given, of these or of extensions; None for the summary. Raises
        InputError for more than one.
        """
        own = [f"--{name}" for name in ("why", "marks") if getattr(self, name)]
        given = [*own, *(option for part in others if (option := part.option()) is not None)]
        if len(given) > 1:
            raise InputError(f"{given[0]} and {given[1]} exclude each other; give one of them")
        if self.step is not None and not self.why:
            raise InputError("--step needs --why")
        return given[0] if given else None


@dataclass(frozen=True)
class ShowFiles:
    """Options for files to write."""

    page: Annotated[
        str | None, option("[FILE.html]", "Write the HTML page; without FILE.html, the page in the record.")
    ] = None
    figures: Figures = None


@grouped
def show(
    *,
    records: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORD",
            autocompletion=completion.records,
            help="A record: its folder, the beginning of its name in rtgauge-runs, latest, or latest~1 for "
            "the one before.",
        ),
    ],
    judge: Judging,
    parts: Parts,
    files: ShowFiles,
    added: AddedValues,
    details: Details = False,
    json: Json = False,
) -> None:
    """Show a record: the answer and its tables, its page, or the causes of its latencies.

    \b
    Examples:
      rtgauge show latest
      rtgauge show latest --details
      rtgauge show latest --require "latency<=200us"
          check it against a requirement
      rtgauge show latest --page
          write its page again; one file that needs no network
      rtgauge show latest --page page.html --figures figures
      rtgauge show latest --why
          what delayed each explained latency, part by part
      rtgauge show latest --marks
          what makes the measurement doubtful

    Exit status: 0; with --require or --allow-left-out as for rtgauge run.
    """
    from rtgauge.cli.record_argument import open_record

    of_extensions = added.of(ShownPart)
    part = parts.chosen(of_extensions)
    options = added.frequency()
    for own in of_extensions:
        if own.option() is not None:
            return own.show([open_record(each) for each in records], files.page, files.figures, json=json)
    if len(records) > 1:
        raise InputError("give one record; to compare several: rtgauge compare RECORD...")
    resumer = resumer_of(records[0])
    if resumer is not None and resumer.show is not None:
        if part is not None or judge.require is not None or files != ShowFiles():
            raise InputError(
                f"{records[0]} is {resumer.kind}, for which rtgauge can show only the answer; name one of "
                "its records"
            )
        return resumer.show(records[0], json)
    opened = open_record(records[0])
    if part == "--why":
        return show_explained(opened, parts.step, json=json)
    if part == "--marks":
        return _show_marks(opened, json=json)
    return _show_answer(opened, judge, files, options, details=details, json=json)


def _show_answer(
    record: Record,
    judge: Judging,
    files: ShowFiles,
    options: object | None,
    *,
    details: bool,
    json: bool,
) -> None:
    from rtgauge.cli.command_end import document_of, judged
    from rtgauge.cli.console import Console
    from rtgauge.cli.decided import decided, not_answered
    from rtgauge.report.terminal_summary import print_conclusion, print_summary
    from rtgauge.verdict.exit_status import exit_status

    new_question = judge.require is not None or judge.allow_left_out
    answer = None if new_question else decided(record)
    opened = judged(record, judge.require, allow_left_out=judge.allow_left_out)
    writes = files.page is not None or files.figures is not None
    lines: Sequence[str] = _written(opened, files, options, answer) if writes else ()
    if json:
        document = document_of(opened)
        if answer is not None:
            judged_fields = {"outcome": answer.result.outcome.value, "answer": answer.result.conclusion}
            document = document.model_copy(update=judged_fields)
        typer.echo(document.model_dump_json(indent=1))
    elif answer is not None:
        answer.print(details=details, brief=writes)
    elif writes:
        print_conclusion(opened, Console())
    else:
        print_summary(opened, Console(), details=details)
    for line in lines:
        typer.echo(line, err=json)
    if missing := not_answered(record.run):
        typer.echo(f"rtgauge: only the measurements of this record are shown{missing}", err=True)
    if new_question:
        raise typer.Exit(exit_status(opened.run.verdicts, opened.steps))


def _written(
    record: Record, files: ShowFiles, options: object | None, answer: DecidedAnswer | None
) -> Sequence[str]:
    """Write the page and the figures, and return a line for each file. `answer`: the answer of a gate or a
    tuning, which has its own page.
    """
    from rtgauge.report.fact_rows import system_lines
    from rtgauge.report.figures.figure_files import write_figures
    from rtgauge.report.record_page import Drawn, html, save_page

    drawn = Drawn.of(record, options)
    lines: list[str] = []
    if files.page is not None:
        text = html(record, drawn) if answer is None else answer.page
        lines.append(f"page     {save_page(record, text, Path(files.page) if files.page else None)}")
    if files.figures is not None:
        subtitle = "\n".join(system_lines(record))
        written = write_figures(drawn.figures.values(), files.figures, subtitle, cpus=len(drawn.source.cpus))
        lines += [f"figure   {path}" for path in written]
    return lines


def show_explained(record: Record, step: str | None, *, json: bool) -> None:
    """Print the answer, and where the time of each explained latency went. `step`: only this one.

    Raises InputError if the record has no such step, or none is explained.
    """
    from rtgauge.cli.console import Console
    from rtgauge.cli.record_argument import with_one_step
    from rtgauge.explain.analysis.culprits import explained_steps
    from rtgauge.explain.page.explained_document import explained_document
    from rtgauge.explain.page.presenter import print_latencies
    from rtgauge.report.record_view import RecordView
    from rtgauge.report.terminal_summary import print_conclusion

    explained = explained_steps(record, with_one_step(record, step).steps)
    if not explained:
        raise InputError("this record does not explain any latency; measure again with --explain")
    if json:
        typer.echo(explained_document(str(record.path), explained).model_dump_json(indent=1))
        return
    console = Console()
    print_conclusion(record, console)
    console.print()
    print_latencies(RecordView(record), explained, console)


def _show_marks(record: Record, *, json: bool) -> None:
    from json import dumps

    from rtgauge.cli.console import Console
    from rtgauge.cli.marks_command import explain_mark
    from rtgauge.report.terminal_table import print_text

    console = Console()
    marks = [(step.id, mark) for step in record.steps for mark in step.marks]
    if json:
        typer.echo(dumps([{"step": step, **mark.model_dump(mode="json")} for step, mark in marks], indent=1))
        return
    if not marks:
        typer.echo("none of the steps has a mark")
    for name in dict.fromkeys(mark.name for _, mark in marks):
        explain_mark(name)
        for step, mark in marks:
            if mark.name == name:
                print_text(console, f"{step}: {mark.detail}", 4)


def list_records(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of records.")] = RECORDS,
    json: Json = False,
) -> None:
    """List the records in a folder, oldest first.

    \b
    Examples:
      rtgauge list
      rtgauge show NAME
          NAME is a name in the first column; latest is the newest record
    """
    from json import dumps

    from rtgauge.cli.console import Console
    from rtgauge.record.reader import Record, record_folders
    from rtgauge.report.terminal_summary import print_list

    if not out.is_dir():
        raise InputError(f"there is no folder {out}; rtgauge run creates it")
    records: list[Record] = []
    for folder in record_folders(out):
        try:
            records.append(Record.open(folder))
            records[-1].folder.close()
        except RecordError as error:
            typer.echo(f"rtgauge: left out: {error}", err=True)
    if json:
        typer.echo(
            dumps(
                [
                    {
                        "record": str(record.path),
                        **record.run.model_dump(mode="json", exclude={"planned", "plan"}),
                    }
                    for record in records
                ],
                indent=1,
            )
        )
    elif not records:
        typer.echo(f"no records in {out}")
    else:
        print_list(records, Console())
