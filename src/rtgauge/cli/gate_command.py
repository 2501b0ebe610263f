# SPDX-License-Identifier: MIT
"""`rtgauge gate` decides whether a candidate is worse than its baseline."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.shared_options import (
    Deciding,
    Json,
    MeasuringOptions,
    Out,
    WaitForLock,
    duration_option,
    grouped,
    option,
    wait_s,
)
from rtgauge.errors import InputError
from rtgauge.record.records_folder import RECORDS

if TYPE_CHECKING:
    from rtgauge.record.reader import Record
    from rtgauge.runner.context import Progress
    from rtgauge.runner.interrupt import Interrupt
    from rtgauge.runner.measure_run import RunOptions
    from rtgauge.runner.step_loop import RunOutcome
    from rtgauge.verdict.known_changes import KnownChanges

PAGE = "gate.html"
EACH_RUN = "each-run"
"""The value of --boot."""


@grouped
def gate(
    *,
    plan: Annotated[
        str, typer.Argument(metavar="PLAN", help="A preset or a TOML file, as for `rtgauge run`.")
    ] = "quick",
    baseline: Annotated[
        str | None, option("A", 'A target, a deployment or "KEY=VALUE ...", as in `rtgauge run --alternate`.')
    ] = None,
    candidate: Annotated[str | None, option("B", "The side to judge: is it worse than A?")] = None,
    deciding: Deciding,
    require: Annotated[
        str | None,
        option(
            "TEXT", 'Decide by how often this bound is exceeded, e.g. "latency<=200us", not by a quantile.'
        ),
    ] = None,
    larger_than: Annotated[
        str | None,
        option(
            "PERCENT",
            "Smallest change that matters; a smaller change passes. Default: 10%, or 100% with --require.",
        ),
    ] = None,
    rare: Annotated[
        str | None,
        option(
            "PERCENT",
            "Measure enough pairs to catch a state that only this share of the boots has, e.g. 10%; they may "
            "be more than the default of --max-pairs.",
        ),
    ] = None,
    boot: Annotated[str | None, option("WHEN", "each-run: boot the lab guest before each run.")] = None,
    pause_between: Annotated[str, option("TIME", "Pause between the runs, e.g. 10min.")] = "0s",
    baseline_kernel: Annotated[
        str | None, option("TEXT", "Text that the kernel release of the baseline must contain.")
    ] = None,
    candidate_kernel: Annotated[
        str | None, option("TEXT", "Text that the kernel release of the candidate must contain.")
    ] = None,
    measured: MeasuringOptions,
    known: Annotated[Path | None, option("FILE", "Accepted changes and muted series (TOML).")] = None,
    out: Out = RECORDS,
    junit: Annotated[Path | None, option("FILE", "Also write JUnit XML.")] = None,
    markdown: Annotated[Path | None, option("FILE", "Also write Markdown for a pull request.")] = None,
    wait: WaitForLock = "0",
    details: Annotated[bool, typer.Option("--details", help="Print every pair.")] = False,
    json: Json = False,
) -> None:
    """Tell whether a candidate is worse than its baseline, by measuring pairs of runs.

    One series and one quantile decide. Each pair runs both sides once, in random order. Measuring ends when
    the pairs decide or --max-pairs is reached. If both sides are alike, at most one decision in 500 says
    "worse".

    \b
    Examples:
      rtgauge gate --baseline lab:stock --candidate lab:new --boot each-run
          two kernels, a boot before each run
      rtgauge gate --baseline M --candidate MI --load cpu --duration 20s
          two deployments under one load
      rtgauge gate --baseline policy=fifo --candidate policy=rr --larger-than 5%
          a smaller change
      rtgauge gate --baseline M --candidate MI --series wakeup/latency/cpu
          the series that decides
      rtgauge gate --baseline M --candidate MI --require "latency<=200us"
          decide by how often a bound is exceeded
      rtgauge resume latest --max-pairs 24
          continue, with more pairs

    \b
    Exit status:
      0    not worse
      1    worse, or not worse but the candidate fails the requirement
      2    wrong input
      3    could not measure: wrong kernel or deployment, too few
           samples, doubtful marks
      4    cannot tell; prints the command that would settle it
      130  interrupted; rtgauge resume continues
    """
    from rtgauge.record.alternation import Alternation
    from rtgauge.record.files import check_file
    from rtgauge.runner.measure_run import RunOptions, start_run
    from rtgauge.study.gate_study import gate_plan, next_pairs

    options = RunOptions(out=out, command=["rtgauge", *sys.argv[1:]], wait_s=wait_s(wait))
    changes = known_changes(known)
    if baseline is None or candidate is None:
        raise InputError("name both sides: --baseline A --candidate B (targets, deployments or KEY=VALUE)")
    if boot not in (None, EACH_RUN):
        raise InputError(f"--boot {boot}: give {EACH_RUN}, and only with guests of the lab")
    gate_options = deciding.gate_options(larger_than, (baseline_kernel, candidate_kernel), require, rare)
    sides = Alternation(
        sides=(baseline, candidate),
        boot_between=boot == EACH_RUN,
        pause_between_ns=duration_option("--pause-between", pause_between),
    )
    chosen = gate_plan(plan, measured.overrides(), sides, gate_options)
    for name, file in (("--junit", junit), ("--markdown", markdown)):
        if file is not None:
            check_file(file, name)
    record = measured_record(partial(start_run, chosen, options, more=next_pairs))
    raise typer.Exit(conclude(record, changes, (junit, markdown), details=details, json=json))


def known_changes(known: Path | None) -> KnownChanges:
    """Read the file of --known. Raises InputError if it is wrong."""
    from rtgauge.verdict.known_changes import KnownChanges

    return KnownChanges() if known is None else KnownChanges.read(known)


def resumed_gate(folder: Path, options: RunOptions, max_pairs: int | None) -> Record:
    """Continue a gate unless it is decided, and return its record. `max_pairs`: more pairs than before, or
    None.
    """
    from rtgauge.record.reader import Record
    from rtgauge.runner.measure_run import resume_run
    from rtgauge.study.gate_study import next_pairs, with_more_pairs
    from rtgauge.verdict.gate_result import GateOutcome, GateResult

    record = Record.open(folder)
    replaced_keys = with_more_pairs(record, max_pairs)
    complete = record.run.state == "complete"
    if complete and GateResult.of(record).outcome is not GateOutcome.UNFINISHED:
        return record
    reopened = complete and bool(replaced_keys)
    return measured_record(
        partial(resume_run, folder, options, more=next_pairs, complete=reopened, replaced_keys=replaced_keys)
    )


def conclude(
    record: Record,
    changes: KnownChanges,
    files: tuple[Path | None, Path | None],
    *,
    details: bool,
    json: bool,
) -> int:
    """Print a gate's result, write its page and files (JUnit, Markdown), and return the exit status."""
    from rtgauge.cli.decided import GateAnswer
    from rtgauge.exporters.junit import gate_junit
    from rtgauge.report import gate_report

    measured = GateAnswer.of(record)
    result = changes.applied(measured.result, datetime.now(UTC).date())
    answer = GateAnswer(result, record)
    record.folder.write(PAGE, answer.page.encode(errors="replace"))
    junit, markdown = files
    if junit is not None:
        _write(junit, gate_junit(result), "--junit")
    if markdown is not None:
        _write(markdown, gate_report.markdown(result).encode(), "--markdown")
    if json:
        typer.echo(result.model_dump_json(indent=1))
    else:
        answer.print(details=details)
    return result.status


def measured_record(measure: Callable[[Progress, Interrupt], RunOutcome]) -> Record:
    """Measure, and return the record with its page.

    Raises the errors of `measure`, and RtgaugeError if the page cannot be written.
    """
    from rtgauge.cli.command_end import settle
    from rtgauge.cli.progress import make_display
    from rtgauge.runner.interrupt import Interrupt

    display = make_display()
    with Interrupt(display.stopping) as interrupt, display as progress:
        path, run, _ = measure(progress, interrupt)
    record, problem = settle(path, run)
    if problem is not None:
        raise problem
    return record


def _write(path: Path, data: bytes, option: str) -> None:
    from rtgauge.record.files import clear_errors, write_whole

    with clear_errors(path, option=option, kind="file"):
        write_whole(path, data)
