# SPDX-License-Identifier: MIT
"""The answer of a tuning, and what `rtgauge show` and `rtgauge resume` do with its record."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from rtgauge.cli.decided import Asker, print_decided
from rtgauge.cli.shared_options import duration_option
from rtgauge.record.reader import Record
from rtgauge.target.kind import guest_kind, name_in_scheme

if TYPE_CHECKING:
    from rtgauge.cli.extension_options import AddedValues
    from rtgauge.record.model import Run
    from rtgauge.runner.measure_run import RunOptions
    from rtgauge.target.kind import GuestKind
    from rtgauge_ext.tune.result import TuneResult


PAGE = "tune.html"


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
        from rtgauge_ext.tune.tuning_page import page

        return page(self.result, self.record)

    def print(self, *, details: bool = False, brief: bool = False) -> None:  # noqa: ARG002 - all details are shown
        """Print the answer, its basis and its tables. `brief`: only the answer."""
        from rtgauge_ext.tune.tuning_page import basis, tables

        result = self.result
        shown = tables(result) if result.tests else []
        print_decided(result, basis(result), shown, self.record, values=None, brief=brief)


def finish_tuning(record: Record, files: Path | None, *, json: bool) -> NoReturn:
    """Print a tuning's result, write its page and the files that keep it, and end with its exit status."""
    from rtgauge.record.files import clear_errors

    answer = TuneAnswer.of(record)
    try:
        with clear_errors(record.path):
            record.folder.write(PAGE, answer.page.encode(errors="replace"))
    finally:  # a full disk must not hide the result
        if json:
            typer.echo(answer.result.model_dump_json(indent=1))
        else:
            answer.print()
    if files is not None:
        _keep(answer.result, record, files)
    raise typer.Exit(answer.result.status)


def _keep(result: TuneResult, record: Record, folder: Path) -> None:
    from rtgauge.record.files import clear_errors
    from rtgauge.record.own_folder import OwnFolder
    from rtgauge_ext.tune.keep_files import keep_files

    files = keep_files(result, record)
    if not files:
        typer.echo(f"{folder} was not written, because the tuning did not keep any setting", err=True)
        return
    with clear_errors(folder, option="--files"):
        own = OwnFolder.made(folder)
        for name, text in files.items():
            own.write(name, text.encode())


def resumed_tuning(folder: Path, options: RunOptions, budget: str | None) -> Record:
    """Continue a tuning unless it is complete, and return its record. `budget`: a larger one, or None."""
    from rtgauge.cli.gate_command import measured_record
    from rtgauge.record.reader import Record
    from rtgauge.runner.measure_run import resume_run
    from rtgauge_ext.tune.tuning_study import next_runs, with_more_budget

    record = Record.open(folder)
    changed = with_more_budget(record, None if budget is None else duration_option("--budget", budget))
    complete = record.run.state == "complete"
    if not complete or (changed and next_runs(record)):
        again = partial(resume_run, folder, options, more=next_runs, complete=complete, replaced_keys=changed)
        record = measured_record(again)
    return after_boot(record, options)


def after_boot(record: Record, options: RunOptions) -> Record:
    """Measure a confirmation that waited for a reboot; a lab guest is rebooted here. If none waits, or the
    machine has not been rebooted, return the record unchanged.
    """
    from rtgauge.cli.gate_command import measured_record
    from rtgauge.record.writer import RecordWriter
    from rtgauge.runner.measure_run import resume_run
    from rtgauge.target.open_target import reader
    from rtgauge.target.target_protocol import BOOT_ID
    from rtgauge_ext.tune.tuning_study import next_runs, play

    (target,) = record.run.targets
    if not play(record).awaits_boot or record.run.state != "complete":
        return record
    RecordWriter(record.path, record.run.id).check_folders()
    guests = guest_kind(target)
    if guests is not None:
        _boot_guest(guests, target)
    else:
        with reader(target) as (_, read):
            now = read([BOOT_ID]).text(BOOT_ID)
        if now == record.system(target).boot_id:
            return record
    more = partial(next_runs, booted=True)
    return measured_record(partial(resume_run, record.path, options, more=more, complete=True))


def _boot_guest(guests: GuestKind, target: str) -> None:
    from rtgauge.target.engine_path import installed_engines

    typer.echo(f"{target} boots for the confirmation", err=True)
    reboots = guests.reboots(name_in_scheme(target), installed_engines(), lambda _: None)
    reboots.boot(reboots.append)


def _question(run: Run) -> str:
    from rtgauge.units import format_share, plural
    from rtgauge_ext.tune.tuning_options import options_of

    options = options_of(run)
    gain = f"a gain of {format_share(options.larger_than)}"
    settings = plural(len(options.choices), "setting")
    return f"{options.requirement} under {', '.join(options.loads)}, {gain}, {settings} to try"


def _resume(folder: Path, options: RunOptions, added: AddedValues, json: bool) -> NoReturn:
    from rtgauge_ext.tune.added_tune_options import MoreOfTuning

    (more,) = added.of(MoreOfTuning)
    finish_tuning(resumed_tuning(folder, options, more.budget), more.files, json=json)


TUNING = Asker("a tuning", frozenset({"budget", "files", "json"}), _question, TuneAnswer.of, _resume)
