# SPDX-License-Identifier: MIT
"""Reports why the slowest activations of each thread worked longer than usual."""

from __future__ import annotations

import polars as pl
from pydantic import Field
from rich.console import Console

from rtgauge.extension import Document
from rtgauge.record.model import Model
from rtgauge.report.labelled_lines import print_labelled
from rtgauge.report.table import Column, Table, numbers
from rtgauge.report.terminal_table import print_tables
from rtgauge.report.text import NONE
from rtgauge.system.cpu_counters import SLOWER
from rtgauge.units import format_count, format_factor, format_time, plural
from rtgauge_ext.counters.activation import CountedThread, Work, WorkCounts, typical
from rtgauge_ext.counters.slower import Cause, causes

LEAST = 20
"""With fewer activations, none is called slow."""
PART = 100
"""The slowest activations are all divided by this."""
NO_COUNTERS = (
    "this machine counts neither cycles nor instructions (perf; most virtual machines do not), so rtgauge "
    "cannot tell why"
)


class ThreadWork(Model):
    """The activations of one thread."""

    thread: str
    tid: int
    activations: int
    left_out: int = Field(description="activations whose counters did not count all the time")
    usual: WorkCounts | None = Field(description="the median of each counter; null: too few activations")
    slowest: WorkCounts | None = Field(description="the median of the slowest 1 %, at least one activation")
    causes: list[Cause] | None = Field(
        description="why the slowest needed more CPU time, the largest factor first; null: cannot tell"
    )

    @property
    def is_slower(self) -> bool:
        """Whether the slowest activations worked notably longer than usual."""
        if self.usual is None or self.slowest is None:
            return False
        return self.slowest.cpu_ns > 0 and self.slowest.cpu_ns >= SLOWER * self.usual.cpu_ns


class WorkReport(Model):
    """What `rtgauge work --json` prints."""

    missing: list[str] = Field(description="counters that this machine lacks")
    lost: int
    threads_left_out: int = Field(description="threads that were not counted, because there are too many")
    full: bool = Field(description="whether the count ended early, because there were too many activations")
    threads: list[ThreadWork]

    @property
    def can_tell(self) -> bool:
        """Whether each thread's slowest activations have a reason, or need none; false without threads."""
        return bool(self.threads) and all(
            thread.usual is not None and (thread.causes or not thread.is_slower) for thread in self.threads
        )


DOCUMENT = Document("what rtgauge work --json prints", (WorkReport,))


def report(work: Work) -> WorkReport:
    """Return the report of a measurement."""
    return WorkReport(
        missing=work.begin.missing,
        lost=work.end.lost,
        threads_left_out=work.begin.left_out,
        full=work.end.full,
        threads=[
            _of_thread(thread, work.activations.filter(pl.col("tid") == thread.tid))
            for thread in work.begin.threads
        ],
    )


def _of_thread(thread: CountedThread, activations: pl.DataFrame) -> ThreadWork:
    whole = activations.filter("whole")
    usual = slowest = found = None
    if whole.height >= LEAST:
        usual = typical(whole)
        slowest = typical(whole.top_k(max(whole.height // PART, 1), by="cpu_ns"))
        found = causes(slowest, usual)
    return ThreadWork(
        thread=thread.name,
        tid=thread.tid,
        activations=whole.height,
        left_out=activations.height - whole.height,
        usual=usual,
        slowest=slowest,
        causes=found,
    )


def sentence(thread: ThreadWork) -> str:
    """Return the answer for one thread."""
    if thread.usual is None or thread.slowest is None:
        return f"{thread.thread}: {plural(thread.activations, 'activation')}, too few to tell"
    times = f"{format_time(thread.slowest.cpu_ns)} instead of {format_time(thread.usual.cpu_ns)}"
    part = "the slowest 1 %" if thread.activations >= 2 * PART else "the slowest one"
    of = f"{part} of {plural(thread.activations, 'activation')}"
    if not thread.is_slower:
        return f"{thread.thread}: {of} worked no longer than usual ({times})"
    factor = format_factor(thread.slowest.cpu_ns / max(thread.usual.cpu_ns, 1))
    said = f"{thread.thread}: {of} worked {factor} times as long as usual ({times})"
    if thread.causes is None:
        return said
    reasons = "; ".join(cause.words for cause in thread.causes)
    return f"{said}, because {reasons}" if reasons else f"{said}; no counter grew enough to tell why"


def print_report(found: WorkReport, console: Console) -> None:
    """Print the answers, a table, and what is missing."""
    if not found.threads:
        print_labelled(
            "", "all threads of the program ended before rtgauge could count them", console, width=0
        )
    for thread in found.threads:
        print_labelled("", sentence(thread), console, width=0)
    lacks = {"cycles", "instructions"} & set(found.missing)
    if lacks and any(thread.usual is not None and thread.causes is None for thread in found.threads):
        print_labelled("", NO_COUNTERS, console, width=0)
    rows = [row for thread in found.threads for row in _rows(thread)]
    if rows:
        titles = ["CPU time", "instructions", "cycles each", "misses per 1,000", "page faults", "SMIs"]
        console.print()
        print_tables([Table("", [Column(), Column(), *numbers(*titles)], rows)], console)
    for words in _left_out(found):
        print_labelled("", words, console, width=0)


def _left_out(found: WorkReport) -> list[str]:
    words: list[str] = []
    if found.full:
        words.append(
            "the count ended early, because there were too many activations; give a shorter --duration"
        )
    if found.threads_left_out:
        words.append(
            f"threads not counted, because there are too many: {found.threads_left_out}; choose some with "
            "--threads"
        )
    shared = sum(thread.left_out for thread in found.threads)
    if shared:
        words.append(f"activations left out, because a counter did not count all the time: {shared}")
    if found.lost:
        words.append(f"samples lost: {found.lost}; their activations are left out")
    return words


def _rows(thread: ThreadWork) -> list[list[str]]:
    slowest = "slowest 1 %" if thread.activations >= 2 * PART else "slowest"
    kinds = (("usual", thread.usual), (slowest, thread.slowest))
    return [[thread.thread, name, *_cells(counts)] for name, counts in kinds if counts is not None]


def _cells(counts: WorkCounts) -> list[str]:
    cycles, instructions = counts.cycles or 0, counts.instructions or 0
    return [
        format_time(counts.cpu_ns),
        NONE if counts.instructions is None else format_count(instructions),
        f"{cycles / instructions:.2f}" if cycles and instructions else NONE,
        f"{1000 * counts.llc_misses / instructions:.2f}"
        if counts.llc_misses is not None and instructions
        else NONE,
        format_count(counts.page_faults),
        NONE if counts.smi is None else format_count(counts.smi),
    ]
