# SPDX-License-Identifier: MIT
"""`rtgauge resume` continues what was interrupted, or gives it more time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli import completion
from rtgauge.cli.extension_options import AddedOptions, AddedValues, WhileMeasuring
from rtgauge.cli.extension_resumer import ResumeOptions, resumer_of
from rtgauge.cli.run_command import DisplayOptions, hold_ns, resumed
from rtgauge.cli.shared_options import Out, WaitForLock, grouped, option, wait_s
from rtgauge.errors import InputError, RtgaugeError
from rtgauge.record.records_folder import RECORDS

if TYPE_CHECKING:
    from rtgauge.runner.measure_run import RunOptions


@dataclass(frozen=True)
class MoreTime:
    """Options that give more time, each for one kind of record."""

    max_pairs: Annotated[int | None, option("N", "New total of pairs for a gate or a bisection.")] = None
    hold: Annotated[
        str | None, option("TIME", "How long a remote machine waits for the next rtgauge resume of a run.")
    ] = None


@dataclass(frozen=True)
class ResumeFiles:
    """Files to write from the result."""

    known: Annotated[Path | None, option("FILE", "Accepted changes and muted series of a gate (TOML).")] = (
        None
    )
    junit: Annotated[Path | None, option("FILE", "Also write a gate as JUnit XML.")] = None
    markdown: Annotated[Path | None, option("FILE", "Also write a gate as Markdown.")] = None


def record_to_resume(record: str | None, out: Path) -> Path:
    """Return the folder of a record, of a study's newest record, or of the newest unfinished one in `out` if
    none is named. Raises InputError or RecordError if there is none.
    """
    from rtgauge.plan.study_state import newest_record
    from rtgauge.record.reader import find_record
    from rtgauge.runner.measure_run import find_partial
    from rtgauge.study import study_registry

    if record is None:
        return find_partial(out)
    return newest_record(out, record) if record in study_registry.studies() else find_record(Path(record))


def question_of_record(words: Sequence[str], out: Path) -> str | None:
    """Return what the record asks that the words after `rtgauge resume` name, or the newest unfinished one in
    `out` if they name none. None if there is no such record.
    """
    from rtgauge.cli.decided import question_of
    from rtgauge.record.reader import read_run

    named = [word for word in words if not word.startswith("-")]
    for word in named or [None]:
        with suppress(RtgaugeError, OSError):
            resumer = None if word is None else resumer_of(Path(word))
            if word is not None and resumer is not None:
                return resumer.question(Path(word))
            return question_of(read_run(record_to_resume(word, out)))
    return None


def _refuse_others(
    kind: str,
    question: Callable[[], str],
    allowed: set[str] | frozenset[str],
    *given: MoreTime | ResumeFiles | DisplayOptions | AddedOptions,
) -> None:
    """Raise InputError, which says what the record asks, if an option is given that this kind of record does
    not take.
    """
    for group in given:
        for each in fields(group):
            if each.name not in allowed and getattr(group, each.name) != each.default:
                name = f"--{each.name.replace('_', '-')}"
                refused = f"rtgauge resume does not take {name} for {kind}; leave out {name}"
                raise InputError(f"{refused}; the record asks: {question()}")


@grouped
def resume(
    *,
    record: Annotated[
        str | None,
        typer.Argument(
            metavar="RECORD",
            autocompletion=completion.records,
            help="A record, a study's name, or what else rtgauge can continue. Default: the newest "
            "unfinished record in --out.",
            show_default=False,
        ),
    ] = None,
    more: MoreTime,
    files: ResumeFiles,
    out: Out = RECORDS,
    wait: WaitForLock = "0",
    shown: DisplayOptions,
    added: AddedValues,
) -> None:
    """Continue what was interrupted, or give it more time: a run, a study, a gate or another search.

    What a record asks stays as it was. Steps that are finished are not repeated. A finished gate or search
    shows its result again, or continues if it gets more time.

    \b
    Examples:
      rtgauge resume
          the newest unfinished record
      rtgauge resume latest --max-pairs 24
          more pairs for a gate

    The exit status means the same as for the command that began it.
    """
    from rtgauge.analysis.gate_options import options_of
    from rtgauge.cli.decided import asker_of, not_answered, question_of
    from rtgauge.record.reader import Record
    from rtgauge.runner.measure_run import RunOptions

    named = Path(record) if record is not None else None
    resumer = None if named is None else resumer_of(named)
    if named is not None and resumer is not None:
        _refuse_others(
            resumer.kind, partial(resumer.question, named), resumer.takes, more, files, shown, *added.groups
        )
        return resumer.resume(named, ResumeOptions(more.max_pairs, wait_s(wait), shown.json))
    folder = record_to_resume(record, out)
    opened = Record.open(folder)
    question = partial(question_of, opened.run)
    options = RunOptions(
        out=folder.parent, command=["rtgauge", *sys.argv[1:]], hold_ns=hold_ns(more.hold), wait_s=wait_s(wait)
    )
    if options_of(opened.run) is not None:
        allowed = {"max_pairs", "known", "junit", "markdown", "details", "json"}
        _refuse_others("a gate", question, allowed, more, files, shown, *added.groups)
        return _resume_gate(folder, options, more, files, shown)
    asker = asker_of(opened.run)
    if asker is not None:
        _refuse_others(asker.kind, question, asker.takes, more, files, shown, *added.groups)
        asker.resume(folder, options, added, shown.json)
    if missing := not_answered(opened.run):
        raise InputError(f"rtgauge cannot continue {folder}{missing}")
    own = {each.name for group in added.of(WhileMeasuring) for each in fields(group)}
    _refuse_others("a run", question, {"hold", "details", "json", *own}, more, files, shown, *added.groups)
    raise typer.Exit(resumed(folder, options, shown, added))


def _resume_gate(
    folder: Path, options: RunOptions, more: MoreTime, files: ResumeFiles, shown: DisplayOptions
) -> None:
    from rtgauge.cli.gate_command import conclude, known_changes, resumed_gate

    changes = known_changes(files.known)
    record = resumed_gate(folder, options, more.max_pairs)
    raise typer.Exit(
        conclude(record, changes, (files.junit, files.markdown), details=shown.details, json=shown.json)
    )
