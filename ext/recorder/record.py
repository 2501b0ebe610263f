# SPDX-License-Identifier: MIT
"""Makes a record of a recorder's folder: a step for each boot, a window for each hour, the kept moments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pydantic import ValidationError

from rtgauge.errors import InputError, RecordError
from rtgauge.escape import one_line
from rtgauge.probe.watch import WatchParameters
from rtgauge.record.explain_report import explain_marks, explain_report
from rtgauge.record.facts import Facts
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import LoadReport, Mark, Outlier, Step, StepKey, Verdict
from rtgauge.record.moments import MomentWriter
from rtgauge.record.reader import Record
from rtgauge.record.stream import (
    Hello,
    SeriesLine,
    StreamResult,
    SymbolsLine,
    TraceFormatsLine,
    Window,
    parse_line,
)
from rtgauge.record.summary import summarise_step
from rtgauge.record.windows import Windows
from rtgauge.record.writer import RecordWriter, wall_time
from rtgauge.target.address import LOCAL
from rtgauge.units import plural
from rtgauge.verdict.requirement import parse_requirement
from rtgauge.verdict.run_verdict import judge_run
from rtgauge_ext.recorder.entries import PeriodSummary, SeriesMark, SessionEnd, folded, folded_sessions
from rtgauge_ext.recorder.folder import TRIGGERED, EntrySource, MomentHead, RecorderFolder

MOST_OUTLIERS = 20
MOST_TRIGGER_TEXT = 1000
MOST_NAMED = 3
"""Of more threads, the answer has only the number."""


class _Part(NamedTuple):
    """What a folder has of one source."""

    source: str
    stretches: list[PeriodSummary]
    end: SessionEnd
    series: dict[tuple[str, str], int]


def _part(folder: RecorderFolder, source: str, ends: dict[str, SessionEnd]) -> _Part:
    present = [folded(folder.minutes)] if folder.minutes else []
    stretches = [stretch for stretch in (*folder.stretches, *present) if stretch.source == source]
    stretches.sort(key=lambda stretch: stretch.start_ns)
    names = dict.fromkeys((each.task, each.metric) for stretch in stretches for each in stretch.figures)
    for kept in folder.keeping.moments.values():
        if kept.source == source:
            names.update(dict.fromkeys((kept.task, metric) for metric in ("latency", "response")))
    return _Part(
        source,
        stretches,
        ends.get(source, SessionEnd(source=source)),
        {name: number for number, name in enumerate(names)},
    )


def _windows(part: _Part) -> list[Window]:
    return [
        figures.window(part.series[figures.task, figures.metric], index)
        for index, stretch in enumerate(part.stretches)
        for figures in stretch.figures
    ]


def _marks(marks: Iterable[SeriesMark], series: dict[tuple[str, str], int]) -> list[Mark]:
    return [
        each.mark.model_copy(update={"series": series.get((str(each.task), str(each.metric)))})
        for each in marks
    ]


def _write_moments(
    folder: RecorderFolder, part: _Part, place: Path, formats: TraceFormatsLine
) -> list[Outlier]:
    """Write the kept moments into the step's folder, and return the largest as outliers."""
    writer = MomentWriter(place, formats)
    outliers: list[Outlier] = []
    own = [kept for kept in folder.keeping.moments.values() if kept.source == part.source]
    for number, kept in enumerate(sorted(own, key=lambda kept: kept.number), start=1):
        try:
            head, line = folder.moment(kept.number)
        except RecordError:  # the recorder has just removed it
            folder.keeping.moments.pop(kept.number, None)
            continue
        document = json.loads(line)
        document |= {"number": number, "series": _series_of(head, part)}
        if head.metric == TRIGGERED:
            lines = (f"{name}: {detail}" for name, detail in zip(head.triggers, head.details, strict=True))
            document["trigger"] = "; ".join(lines)[:MOST_TRIGGER_TEXT]
        writer.add(json.dumps(document, separators=(",", ":")).encode() + b"\n")
        if head.metric not in {"wait", TRIGGERED}:
            outliers.append(
                Outlier(
                    series=document["series"],
                    time_ns=document["release_ns"],
                    value_ns=head.latency_ns,
                    cpu=document["cpu"],
                )
            )
    writer.add_symbols(SymbolsLine(type="symbols", symbols=part.end.symbols))
    writer.finish()
    return sorted(outliers, key=lambda outlier: -outlier.value_ns)[:MOST_OUTLIERS]


def _series_of(head: MomentHead, part: _Part) -> int:
    return part.series[head.task, "latency" if head.metric in {"wait", TRIGGERED} else head.metric]


def _kept_and_not(folder: RecorderFolder, part: _Part, not_captured: dict[str, int]) -> dict[str, Any]:
    """Return how many moments the step has, and how many latencies have none, with the removed moments."""
    removed = sum(
        stretch.counts.get(name, 0)
        for stretch in part.stretches
        for name in ("moments_removed", "moments_not_written")
    )
    kept = sum(kept.source == part.source for kept in folder.keeping.moments.values())
    known = not_captured | {"over_budget": not_captured.get("over_budget", 0) + removed}
    return {"moments": kept, "not_captured": {name: number for name, number in known.items() if number}}


def _hello(source: EntrySource) -> Hello:
    """Return the engine's first line, which names the process. Raises RecordError if it is damaged."""
    hello = parse_line(source.hello)
    if not isinstance(hello, Hello) or not isinstance(hello.parameters.get("pid"), int):
        raise RecordError("the engine's hello is damaged")
    return hello


def _key(folder: RecorderFolder, hello: Hello, number: int) -> StepKey:
    option, _, name = folder.settings.program.partition(" ")
    program = {"program": name} if option == "--program" else {"pid": hello.parameters["pid"]}
    values = {**program, "explain": True, **folder.settings.parameters}
    return StepKey(
        probe="watch",
        parameters=WatchParameters.model_validate(values),
        load="idle",
        deployment="as-is",
        targets={"self": LOCAL},
        repeat=number,
    )


def _formats(source: EntrySource) -> TraceFormatsLine | None:
    """Return how the events of a source are written; None if that is missing or damaged."""
    with suppress(RecordError):
        formats = parse_line(source.formats)
        return formats if isinstance(formats, TraceFormatsLine) else None
    return None


def _facts(source: EntrySource, name: str, notify: Callable[[str], None]) -> Facts | None:
    """Return what is known of the machine in one boot; None if that is missing or damaged."""
    if not source.facts:
        return None
    try:
        return Facts.model_validate_json(source.facts)
    except ValidationError:
        notify(f"left out the facts of the source {name}, because they are damaged")
        return None


def _step(
    folder: RecorderFolder, part: _Part, writer: RecordWriter, number: int, *, with_moments: bool
) -> tuple[Step, Windows]:
    source = folder.source(part.source)
    hello = _hello(source)
    step_id = f"{number + 1:02d}-watch"
    place = writer.step_folder(step_id)
    lines = [
        SeriesLine(type="series", series=series, metric=metric, unit="ns", labels={"task": task})
        for (task, metric), series in part.series.items()
    ]
    windows = Windows.of(_windows(part))
    summary = summarise_step(windows, lines)
    result = StreamResult()
    result.results = list(part.end.results)
    outliers: list[Outlier] = []
    marks = _marks(part.end.marks, part.series)
    kept = sum(kept.source == part.source for kept in folder.keeping.moments.values())
    if (formats := _formats(source)) is not None:
        result.trace_formats = formats
        if with_moments:
            outliers = _write_moments(folder, part, place, formats)
    elif kept:
        marks.append(
            MarkKind.NOT_EXPLAINED.mark(
                f"{plural(kept, 'kept moment')} cannot be explained, because the formats of the kernel's "
                "events are missing or damaged"
            )
        )
    explained = explain_report(result)
    if explained is not None:
        explained = explained.model_copy(update=_kept_and_not(folder, part, explained.not_captured))
    first, last = part.stretches[0], part.stretches[-1]
    step = Step(
        id=step_id,
        key=_key(folder, hello, number),
        tool=f"rtgauge-engine {hello.engine}",
        boot_id=hello.boot_id or None,
        started=wall_time(first.wall_ns),
        ended=wall_time(last.wall_ns + last.end_ns - last.start_ns),
        start_ns=first.start_ns,
        end_ns=last.end_ns,
        end_reason="duration",
        parameters=hello.parameters,
        cpus=hello.cpus,
        cpus_not_measured=hello.cpus_not_measured,
        clock=hello.clock,
        load=LoadReport(name="idle"),
        series=summary.series,
        total=summary.total,
        outliers=outliers,
        results=result.results,
        explain=explained,
        marks=[*marks, *explain_marks(explained), *summary.marks],
    )
    return step, windows


def _readable(
    folder: RecorderFolder, sources: Iterable[str], notify: Callable[[str], None]
) -> dict[str, Hello]:
    """Return the engine's first line of each source that is whole. Raises RecordError if none is."""
    hellos: dict[str, Hello] = {}
    error = RecordError(f"{folder.path} has no source")
    for name in sources:
        try:
            hellos[name] = _hello(folder.source(name))
        except RecordError as damaged:
            error = damaged
            notify(f"left out what was recorded with the source {name}, because it cannot be read: {damaged}")
    if not hellos:
        raise error
    return hellos


def verdict_on(folder: RecorderFolder) -> Verdict | None:
    """Return the verdict of the folder's requirement, as `recorder import` gives it; None without a
    requirement or figures.

    Raises the errors of make_record.
    """
    stretches = (*folder.stretches, *folder.minutes)
    if folder.settings.require is None or not any(each.figures for each in stretches):
        return None
    with TemporaryDirectory(prefix="rtgauge-") as place:
        record = Record.open(make_record(folder, Path(place), [], with_moments=False))
        threads = {step.id: _threads(step) for step in record.steps}
        return judge_run(parse_requirement(folder.settings.require), record, threads)[0]


def _threads(step: Step) -> str:
    names = list(dict.fromkeys(one_line(str(summary.labels["task"])) for summary in step.series))
    return ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} threads"


def make_record(
    folder: RecorderFolder,
    out: Path,
    command: list[str],
    notify: Callable[[str], None] = lambda _: None,
    *,
    with_moments: bool = True,
) -> Path:
    """Make a record in the folder `out`; return its folder. `notify`: gets a line about each boot that is
    left out, because its source is damaged. `with_moments`: with the kept moments.

    Raises InputError if nothing was recorded, RecordError if all sources are damaged, and the errors of
    RecordWriter.
    """
    ends = {end.source: end for end in folded_sessions(folder.ends)}
    present = [folded(folder.minutes)] if folder.minutes else []
    sources = dict.fromkeys(stretch.source for stretch in (*folder.stretches, *present) if stretch.figures)
    if not sources:
        raise InputError(f"{folder.path} has no figures yet; let the recorder run for a minute")
    hellos = _readable(folder, sources, notify)
    parts = [_part(folder, source, ends) for source in hellos]
    facts = [
        known
        for part in parts
        if (known := _facts(folder.source(part.source), part.source, notify)) is not None
    ]
    with RecordWriter.at_once(
        out,
        LOCAL,
        facts[-1] if facts else None,
        [_key(folder, hello, number) for number, hello in enumerate(hellos.values())],
        command=command,
        plan={"name": "recorder", "imported_from": folder.path.name},
        requirement=folder.settings.require,
    ) as writer:
        for number, part in enumerate(parts):
            writer.commit_step(*_step(folder, part, writer, number, with_moments=with_moments))
    return writer.path
