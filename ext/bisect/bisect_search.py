# SPDX-License-Identifier: MIT
"""Runs the search of `rtgauge bisect`, saves it in a folder, and prints the result."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import typer
from pydantic import AliasChoices, Field, ValidationError

from rtgauge.analysis.gate_options import GateOptions
from rtgauge.analysis.gate_test import looks
from rtgauge.cli.decided import gate_question
from rtgauge.cli.extension_resumer import ResumeOptions, Resumer
from rtgauge.cli.progress import make_display
from rtgauge.cli.shared_options import MeasuringOptions
from rtgauge.errors import InputError, MeasureError, RecordError
from rtgauge.extension import Document
from rtgauge.input_file import MOST_JSON, parse_json, real_path
from rtgauge.plan.make_plan import Overrides, Plan, load_plan
from rtgauge.record.files import clear_errors
from rtgauge.record.own_folder import OwnFolder
from rtgauge.record.reader import Record
from rtgauge.record.strict_model import Model
from rtgauge.report.text import printable
from rtgauge.runner.interrupt import Interrupt
from rtgauge.runner.measure_run import RunOptions, start_run
from rtgauge.units import plural
from rtgauge.verdict.gate_pairs import CannotGate, run_value, series_names
from rtgauge_ext.bisect.bisection import BisectionOptions, BisectResult, BisectRun, CommitSearch
from rtgauge_ext.bisect.git_commits import BisectedCommits, GitError, GitRepository
from rtgauge_ext.bisect.placing import ERROR

STATE = "bisect.json"
LOG = "build.log"


class BisectOutcome(StrEnum):
    """The possible answers of a search that found something."""

    FIRST_BAD = "first bad"
    ONE_OF_SEVERAL = "one of several"


class FirstBad(Model):
    """A commit that may have made the change."""

    commit: str
    subject: str


class BisectDocument(Model):
    """The document that --json prints. `error`: the probability that the search names a wrong commit."""

    outcome: BisectOutcome
    conclusion: str
    first_bad: list[FirstBad]
    change_of_ends: float
    pairs_of_ends: int
    placed: dict[str, str]
    skipped: dict[str, str]
    runs: int
    error: float


DOCUMENT = Document("what rtgauge bisect --json prints", (BisectDocument,))


class BisectState(Model):
    """A search as saved in its folder: the options, all runs so far, and the result (None: not yet)."""

    options: BisectionOptions = Field(
        validation_alias=AliasChoices("wish", "options"), serialization_alias="wish"
    )
    decides: GateOptions
    plan: str
    overrides: Overrides
    runs: list[BisectRun] = Field(default_factory=list[BisectRun])
    found: BisectDocument | None = None


def run_search(folder: Path, state: BisectState, waits_s: float, *, fresh: bool, json: bool) -> None:
    """Search, save each run in `folder`, and print the result.

    Raises InputError if there is nothing to search, RtgaugeError if the search finds no commit.
    """
    options = state.options
    clone = GitRepository(Path(options.repository))
    if fresh:
        clone.check(options.good, options.bad)
    chosen = _plan(state)
    with clear_errors(folder):
        own = OwnFolder.made(folder)
    _keep(own, state)
    runs = _Runs(own, state, clone, chosen, waits_s)
    search = CommitSearch(options, BisectedCommits(clone, options.good, options.bad), runs.run, _notify)
    try:
        result = search.result()
    except KeyboardInterrupt:
        _notify(f"continue: rtgauge resume {folder}")
        raise
    finally:
        clone.put_back(options.before)
    commits = [FirstBad(commit=commit, subject=clone.subject(commit)) for commit in result.first_bad]
    state.found = _document(commits, result, len(state.runs))
    _keep(own, state)
    print_result(state.found, folder, json=json)


def _document(commits: Sequence[FirstBad], result: BisectResult, runs: int) -> BisectDocument:
    is_single = len(commits) == 1
    return BisectDocument(
        outcome=BisectOutcome.FIRST_BAD if is_single else BisectOutcome.ONE_OF_SEVERAL,
        conclusion=f"{commits[0].commit[:12]} {commits[0].subject}"
        if is_single
        else f"the search could not choose between {len(commits)} commits, because some commits could not be "
        "measured",
        first_bad=list(commits),
        change_of_ends=result.ends.change,
        pairs_of_ends=result.ends.pairs,
        placed={commit: place.value for commit, place in result.placed.items()},
        skipped=result.skipped,
        runs=runs,
        error=ERROR,
    )


def print_result(document: BisectDocument, folder: Path, *, json: bool) -> None:
    """Print the result of the search in `folder`."""
    if json:
        typer.echo(document.model_dump_json(indent=1))
        return
    _out(f"{document.outcome.upper()}  {document.conclusion}")
    if document.outcome is BisectOutcome.ONE_OF_SEVERAL:
        for entry in document.first_bad:
            _out(f"  {entry.commit[:12]} {entry.subject}")
    _out(f"{document.runs} runs; at most one search in 50 ends at a wrong commit")
    _out(f"records  {folder}")


def show_search(folder: Path, json: bool) -> None:
    """Print the result of a search. Raises InputError if it has none yet, or as `kept_search` does."""
    state = kept_search(folder)
    if state.found is None:
        runs = plural(len(state.runs), "run")
        raise InputError(
            f"this search has not ended ({runs} so far); continue it with: rtgauge resume {folder}"
        )
    print_result(state.found, folder, json=json)


def new_search(
    folder: Path,
    repository: Path,
    ends: tuple[str, str],
    command: list[str],
    measured: tuple[str, MeasuringOptions],
    decides: GateOptions,
) -> BisectState:
    """Return a new search. `measured`: the plan's name and the options that change the plan.

    Raises InputError if `folder` already has a search or an option is wrong.
    """
    if folder.joinpath(STATE).exists():
        raise InputError(
            f"{folder} already has a search; continue it with rtgauge resume {folder}, or choose another "
            "folder with -o"
        )
    clone = GitRepository(repository)
    looks(decides.max_pairs)
    plan, options = measured
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    return BisectState(
        options=BisectionOptions(
            repository=str(clone.folder),
            before=clone.here(),
            good=clone.commit(ends[0], "--good"),
            bad=clone.commit(ends[1], "--bad"),
            command=command,
            larger_than=decides.larger_than,
            max_pairs=decides.max_pairs,
            seed=seed,
        ),
        decides=decides,
        plan=plan,
        overrides=replace(options.overrides(), repeats=1, seed=seed),
    )


def _plan(state: BisectState) -> Plan:
    """Return the plan of one run. Raises InputError if the plan is wrong or lacks the series that decides."""
    plan, series = load_plan(state.plan, state.overrides), state.decides.series
    names = series_names(plan.steps)
    if series is None and len(names) > 1:
        raise InputError(
            "the plan has several series; name the one that decides with --load or --series: "
            f"{', '.join(names)}"
        )
    if series is not None and series not in names:
        raise InputError(f"--series {series} is not in the plan, which has {', '.join(names)}")
    return plan


class _Runs:
    """Builds, boots and measures commits. Runs that the folder already has are not repeated."""

    def __init__(
        self, folder: OwnFolder, state: BisectState, clone: GitRepository, plan: Plan, waits_s: float
    ) -> None:
        self._folder, self._state, self._clone, self._plan = folder, state, clone, plan
        self._waits_s, self._made = waits_s, 0

    def run(self, commit: str, why: str) -> BisectRun:
        """Measure a commit once, or return its run if the folder already has one.

        Raises MeasureError if the run gives no value, RecordError if the folder belongs to another search.
        """
        self._made += 1
        if self._made <= len(self._state.runs):
            kept = self._state.runs[self._made - 1]
            if kept.commit != commit:
                raise RecordError(
                    f"{self._folder.path / STATE} has runs of another search; search in another folder (-o)"
                )
            return kept
        measured = self._measured(commit, why)
        self._state.runs.append(measured)
        _keep(self._folder, self._state)
        return measured

    def _measured(self, commit: str, why: str) -> BisectRun:
        _notify(f"{commit[:12]} {self._clone.subject(commit)} ({why})")
        try:
            self._clone.check_out(commit)
        except GitError as error:
            return BisectRun(commit=commit, value_ns=None, why_not=str(error))
        log_path = self._folder.path / LOG
        with clear_errors(log_path, kind="file"):
            log = self._folder.open_log(LOG, append=True)
        with log:
            status = subprocess.run(
                self._state.options.command,
                cwd=self._clone.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=False,
            ).returncode
        if status != 0:
            why_not = f"{self._state.options.command[0]} ended with status {status} (see {log_path})"
            return BisectRun(commit=commit, value_ns=None, why_not=why_not)
        return self._value(commit)

    def _value(self, commit: str) -> BisectRun:
        """Measure a value, in up to three runs if some are doubtful. Raises MeasureError if all three are."""
        why = None
        for _ in range(3):
            path = self._record()
            try:
                value = run_value(Record.open(path), self._state.decides)
            except CannotGate as error:
                raise MeasureError(str(error)) from None
            if value.value_ns is not None and value.why_not is None:
                return BisectRun(commit=commit, value_ns=value.value_ns, record=path.name)
            why = value.why_not
        raise MeasureError(
            f"{commit[:12]} did not give a value in three runs: {why}; to count runs with a mark, give "
            f"--allow-mark NAME"
        )

    def _record(self) -> Path:
        options = RunOptions(out=self._folder.path, command=["rtgauge", *sys.argv[1:]], wait_s=self._waits_s)
        display = make_display()
        with Interrupt(display.stopping) as interrupt, display as progress:
            outcome = start_run(self._plan, options, progress, interrupt)
        if interrupt.requested:
            raise KeyboardInterrupt
        return outcome.path


def _keep(folder: OwnFolder, state: BisectState) -> None:
    with clear_errors(folder.path / STATE, option="--out", kind="file"):
        folder.write(STATE, state.model_dump_json(indent=1, by_alias=True).encode())


def kept_search(folder: Path) -> BisectState:
    """Return the search in a folder, whose command will be run. Raises InputError if there is none or another
    user could have changed it, RecordError for a damaged one.
    """
    try:
        data = OwnFolder.existing(real_path(folder)).read_own(STATE, MOST_JSON)
        parse_json(data)
        return BisectState.model_validate_json(data)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{folder} does not contain a search, because {STATE} is missing") from None
    except OSError as error:
        raise InputError(
            f"rtgauge does not use {error.filename or folder} ({error.strerror}), because it would run the "
            f"commands in it; continue a search that you started yourself, or start a new one"
        ) from None
    except ValidationError as error:
        raise RecordError(f"{folder / STATE} is damaged: {error.errors()[0]['msg']}") from None
    except ValueError as error:
        raise RecordError(f"{folder / STATE} is damaged: {error}") from None


def give_more_pairs(state: BisectState, max_pairs: int | None) -> None:
    """Let a search compare its ends in more pairs. Raises InputError if it has compared them already, for
    fewer pairs than before, or for too many.
    """
    options = state.options
    if max_pairs is None or max_pairs == options.max_pairs:
        return
    looks(max_pairs)
    if max_pairs < options.max_pairs:
        raise InputError(
            f"--max-pairs {max_pairs} is less than the {options.max_pairs} of this search; give more, or "
            "leave it out"
        )
    if any(run.commit not in {options.good, options.bad} for run in state.runs):
        raise InputError(
            "--max-pairs changes nothing, because the search already knows that the ends differ; leave it out"
        )
    options.extended_from = (*options.extended_from, options.max_pairs)
    options.max_pairs = max_pairs


def _out(line: str, *, err: bool = False) -> None:
    typer.echo(printable(line), err=err)


def _notify(line: str) -> None:
    _out(line, err=True)


def _resume(folder: Path, options: ResumeOptions) -> None:
    state = kept_search(folder)
    give_more_pairs(state, options.max_pairs)
    run_search(folder, state, options.wait_s, fresh=False, json=options.json)


def _question(folder: Path) -> str:
    state = kept_search(folder)
    ends = f"{state.options.good[:12]} and {state.options.bad[:12]}"
    decides = state.decides.model_copy(update={"max_pairs": state.options.max_pairs})
    return f"{gate_question(decides, _plan(state).steps)}, between commits {ends}"


BISECTION = Resumer("a bisection", _question, frozenset({"max_pairs", "json"}), _resume, show_search)
