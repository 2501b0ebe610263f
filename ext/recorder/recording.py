# SPDX-License-Identifier: MIT
"""Puts what engines say into the recorder's folder: figures by the minute, moments with their culprits, and
everything that was not seen. It starts nothing, and reads only the given clock, so a test can let a month
pass.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Literal

from pydantic import ValidationError

from rtgauge.errors import RecordError
from rtgauge.input_file import json_object
from rtgauge.record.explain_report import NOT_CAPTURED
from rtgauge.record.stream import (
    End,
    ErrorLine,
    Hello,
    MarkLine,
    ResultLine,
    SeriesLine,
    Started,
    SymbolsLine,
    Window,
    parse_line,
)
from rtgauge.units import NS_PER_S, format_time, plural
from rtgauge_ext.recorder.clocks import Clock, jumps
from rtgauge_ext.recorder.entries import (
    Figures,
    PeriodSummary,
    RecorderEvent,
    SeriesMark,
    SessionEnd,
    folded,
    folded_figures,
)
from rtgauge_ext.recorder.folder import TRIGGERED, EntrySource, MomentHead, RecorderFolder
from rtgauge_ext.recorder.keeping import UNNAMED
from rtgauge_ext.recorder.late_counts import LateCounts, late_series
from rtgauge_ext.recorder.naming import Namer
from rtgauge_ext.recorder.triggers import LATE, OnTrigger, Requests, Trigger, late

MINUTE_NS = 60 * NS_PER_S
WINDOW, MEASURED = b'{"type":"window",', b'"phase":"measure"'
MOMENT, FORMATS = b'{"type":"moment",', b'{"type":"trace_formats",'
LATE_COUNT = f"trigger_{LATE}"
REMEMBERED = 64
"""Moments that are compared with new ones: two engines overlap for a moment when one follows the other."""
State = Literal["watched", "unseen", "absent"]
"""What a time was: watched; not seen although the program ran; without the program."""
FACTS = Callable[[], bytes]


class Taker:
    """Takes the lines of one engine."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.hello: Hello | None = None
        self._hello = self._formats = b""
        self.series: dict[int, SeriesLine] = {}
        self._bounds: dict[int, int] = {}
        """Series -> bound (ns) of the requirement."""
        self.from_ns: int | None = None
        """When its measured phase begins; None: not known yet."""
        self.until_ns: int | None = None
        """When the next engine's measured phase begins: later windows are the next one's."""
        self._source: str | None = None
        self._windows: list[bytes] = []
        self._results: list[ResultLine] = []
        self._marks: list[MarkLine] = []
        self._symbols: dict[str, str] = {}
        self.last: tuple[SeriesLine, dict[str, Any], bytes] | None = None
        """The events before the end of the program."""
        self.armed = False
        self.end: End | None = None
        self.error: ErrorLine | None = None

    @property
    def is_measuring(self) -> bool:
        """Whether the measured phase has begun."""
        return self.from_ns is not None and self._recording.clock().monotonic_ns >= self.from_ns

    @property
    def tasks(self) -> set[str]:
        """The names of the watched threads."""
        return {str(line.labels.get("task")) for line in self.series.values()}

    @property
    def source(self) -> str:
        """The id of its source, which the folder has from now on. Raises OSError."""
        if self._source is None:
            self._source = self._recording.source_of(self._hello, self._formats)
        return self._source

    def value(self, result: str, name: str) -> int | None:
        """Return a whole number of a result; None if the engine did not say it."""
        values = [line.values.get(name) for line in self._results if line.name == result]
        return next((value for value in values if isinstance(value, int)), None)

    def take(self, text: bytes) -> None:
        """Take one line. Raises RecordError if it is not the engine's, OSError if the folder cannot be
        written.
        """
        if self.hello is None and text.startswith((WINDOW, MOMENT)):
            raise RecordError("figures or moments came before the engine's hello")
        if text.startswith(WINDOW):
            if MEASURED in text[:100]:
                self._windows.append(text)
                self._take_late(text)
            return
        if text.startswith(MOMENT):
            self._take_moment(text)
            return
        if text.startswith(FORMATS):
            self._formats = text
            return
        match line := parse_line(text):
            case Hello() if not isinstance(line.parameters.get("pid"), int):
                raise RecordError("the engine's hello lacks the process ID of the program")
            case Hello():
                self.hello, self._hello = line, text
            case SeriesLine():
                self.series[line.series] = line
                if (bound_ns := self._recording.bounds.get(line.metric)) is not None:
                    self._bounds[line.series] = bound_ns
            case Started() if self.from_ns is None and self.hello is not None:
                warm_up_ns = self.hello.parameters.get("warm_up_ns")
                self.from_ns = line.start_ns + (warm_up_ns if isinstance(warm_up_ns, int) else 0)
            case ResultLine():
                self._results.append(line)
            case MarkLine():
                self._marks.append(line)
            case SymbolsLine():
                self._symbols |= line.symbols
            case End():
                self.end = line
            case ErrorLine():
                self.error = line
            case _:
                self.armed = self.armed or line.type == "armed"

    def figures(self) -> list[Figures]:
        """Return the figures of the windows that came since the last call. Raises RecordError."""
        windows, self._windows = self._windows, []
        all_figures: list[Figures] = []
        for text in windows:
            try:
                window = Window.model_validate_json(text)
            except ValidationError as error:
                raise RecordError(f"this is not a window of the engine's stream: {error}") from None
            series = self.series.get(window.series)
            is_next = self.until_ns is not None and window.start_ns >= self.until_ns
            if series is not None and not is_next and (window.count or window.missed):
                all_figures.append(Figures.of(str(series.labels.get("task")), series.metric, window))
        return folded_figures(all_figures)

    def finish(self) -> SessionEnd | None:
        """Return what the engine said at its end; None if it said nothing. Raises OSError."""
        if not self._hello or not (self._results or self._marks or self._symbols):
            return None
        return SessionEnd(
            source=self.source,
            results=[line for line in self._results if line.name != "change"],
            marks=[self._mark(line) for line in self._marks],
            symbols=self._symbols,
        )

    def _mark(self, line: MarkLine) -> SeriesMark:
        series = None if line.series is None else self.series.get(line.series)
        return SeriesMark(
            mark=line,
            task=None if series is None else str(series.labels.get("task")),
            metric=None if series is None else series.metric,
        )

    def _take_late(self, text: bytes) -> None:
        """Count the late cycles of a window."""
        number = late_series(text, self._bounds) if self._bounds else None
        if number is None:
            return
        try:
            window = Window.model_validate_json(text)
        except ValidationError:
            return  # `figures` counts it
        if self.until_ns is None or window.start_ns < self.until_ns:
            self._recording.take_late(self.series[number], window)

    def _take_moment(self, text: bytes) -> None:
        document = json_object(text)
        if document is None:
            raise RecordError("a moment is not a JSON object, or is nested too deeply")
        number = document.get("series")
        series = self.series.get(number) if isinstance(number, int) else None
        if series is None:
            self._recording.counts["moments_not_written"] += 1
            return
        if document.get("kind") != "triggered":
            self._recording.take_moment(self.source, series, document, text)
        elif document.get("request"):
            triggers = self._recording.requests.answered(document["request"])
            self._recording.keep_triggers(self.source, series, triggers, document, text)
        else:
            self.last = series, document, text


class Recording:
    """A recorder's folder while engines fill it."""

    def __init__(
        self,
        folder: RecorderFolder,
        clock: Clock,
        namer: Namer,
        facts: FACTS,
        *,
        bounds: dict[str, int] | None = None,
        on_trigger: OnTrigger = lambda _: None,
        around: Callable[[int], str] = lambda _: "",
    ) -> None:
        """`facts`: reads the machine's facts (JSON). `bounds`: metric -> bound (ns) of the requirement.
        `around`: says what is unusual on the machine at a time (ns) that is now.
        """
        self.folder, self.clock = folder, clock
        self._namer, self._facts = namer, facts
        self.bounds, self._on_trigger, self._around = bounds or {}, on_trigger, around
        self._late = LateCounts(self.bounds)
        self._before = self._minute = clock()
        self._takers: list[Taker] = []
        self._source = ""
        self.requests = Requests()
        """What the engine was asked for because of triggers."""
        self.counts: Counter[str] = Counter()
        """What was counted since the last entry."""
        self._waiting: list[PeriodSummary] = []
        """Minutes that could not be written yet, because the disk is full."""
        self._unnamed = {number for number, kept in folder.keeping.moments.items() if kept.culprit == UNNAMED}
        self._recent: deque[tuple[int, int, str]] = deque(maxlen=REMEMBERED)
        if folder.damaged:
            self.counts["damaged"] += folder.damaged
            self.event(
                "damaged entries cut",
                plural(folder.damaged, "entry of the folder").replace("entrys", "entries"),
            )

    def begin(self) -> Taker:
        """Return the taker of a new engine."""
        self._takers.append(taker := Taker(self))
        return taker

    def source_of(self, hello: bytes, formats: bytes) -> str:
        """Keep the source of an engine, and return its id. Raises OSError."""
        boot = json.loads(hello).get("boot_id", "").encode()
        known = EntrySource(boot, hello, formats, b"")
        if not self.folder.has_source(known.id):
            self.folder.add_source(known._replace(facts=self._facts()))
        self._source = known.id
        return known.id

    def event(self, what: str, detail: str) -> None:
        """Write down an event; if the disk is full, count it."""
        try:
            self.folder.add_event(RecorderEvent(what=what, detail=detail, wall_ns=self.clock().wall_ns))
        except OSError:
            self.counts["events_not_written"] += 1

    def take_moment(self, source: str, series: SeriesLine, document: dict[str, Any], text: bytes) -> None:
        """Keep a moment if it is worth its room, and pull the trigger if it is beyond the requirement."""
        key = (document["thread"], document["release_ns"], series.metric)
        if key in self._recent:
            return
        self._recent.append(key)
        task, latency_ns = str(series.labels.get("task")), int(document["latency_ns"])
        waited = document["kind"] in {"blocked", "waited"}
        trigger = None if waited else late(task, series.metric, latency_ns, self.bounds)
        self.counts["moments"] += 1
        culprit = UNNAMED
        if self._namer.may():
            culprit = self._namer.name(self.folder.source(source), document)
        head = MomentHead(
            task=task,
            metric="wait" if waited else series.metric,
            culprit=culprit,
            latency_ns=latency_ns,
            source=source,
            wall_ns=self.clock().wall_ns,
            triggers=[trigger.name] if trigger is not None else [],
            around=self._around(self.clock().monotonic_ns),
        )
        self._add(head, text)
        if trigger is not None:
            self.counts[LATE_COUNT] += self._late.moment(task, series.metric, int(document["release_ns"]))
            self._on_trigger(trigger._replace(detail=f"{trigger.detail}; {culprit or 'not explained yet'}"))

    def take_late(self, series: SeriesLine, window: Window) -> None:
        """Count the late cycles of a window that have no moment. Raises RecordError if it is damaged."""
        task = str(series.labels.get("task"))
        self.counts[LATE_COUNT] += self._late.window(task, series.metric, window, self.clock().monotonic_ns)

    def _add(self, head: MomentHead, text: bytes) -> None:
        try:
            self._removed(len(self.folder.add_moment(head, text)))
            if head.culprit == UNNAMED:
                self._unnamed.add(max(self.folder.keeping.moments, default=0))
        except OSError:
            self.counts["moments_not_written"] += 1

    def trigger(self, trigger: Trigger) -> None:
        """Count a trigger, and let it act."""
        self.counts[f"trigger_{trigger.name}"] += 1
        self._on_trigger(trigger)

    def ask(self, trigger: Trigger, send: Callable[[str], bool]) -> None:
        """Pull a trigger, and ask the engine for the events around it. `send`: sends the engine a line."""
        if not self.requests.ask(trigger, send, self.clock().monotonic_ns):
            self.counts["triggers_without_events"] += 1
        self.trigger(trigger)

    def forget_requests(self, *, all_of: bool = False) -> None:
        """Count the triggers whose events did not come. `all_of`: no more will come."""
        now_ns = None if all_of else self.clock().monotonic_ns
        self.counts["triggers_without_events"] += len(self.requests.without_answer(now_ns))

    def ended(self, taker: Taker, trigger: Trigger) -> None:
        """Pull the trigger that the program has ended, and keep the events before it."""
        if taker.last is None:
            self.counts["triggers_without_events"] += 1
        else:
            series, document, text = taker.last
            self.keep_triggers(taker.source, series, [trigger], document, text)
        self.trigger(trigger)

    def keep_triggers(
        self, source: str, series: SeriesLine, triggers: list[Trigger], document: dict[str, Any], text: bytes
    ) -> None:
        """Keep the events around triggers that came at the same time."""
        if not triggers:
            return
        now = self.clock()
        head = MomentHead(
            task=str(series.labels.get("task")),
            metric=TRIGGERED,
            culprit=UNNAMED,  # naming takes a second, in which other triggers would wait
            latency_ns=0,
            source=source,
            wall_ns=now.wall_ns - (now.monotonic_ns - int(document["end_ns"])),
            triggers=[trigger.name for trigger in triggers],
            details=[trigger.detail for trigger in triggers],
            around=self._around(now.monotonic_ns),
        )
        self._add(head, text)

    def tick(self, state: State) -> None:
        """Account for the time since the last call, all in this state. Write a minute that is over."""
        now = self.clock()
        suspended_ns, set_ns = jumps(self._before, now)
        self.counts[f"{state}_ns"] += now.monotonic_ns - self._before.monotonic_ns
        if suspended_ns:
            self.counts["suspended_ns"] += suspended_ns
            self.counts["suspends"] += 1
            self.event("suspended", f"the machine slept for {format_time(suspended_ns)}")
        if set_ns:
            self.counts["clock_sets"] += 1
            way = "back" if set_ns < 0 else "forward"
            self.event("clock set", f"the wall clock was set {way} by {format_time(abs(set_ns))}")
        self._before = now
        for trigger in self._late.without_moment(now.monotonic_ns):
            self._on_trigger(trigger)
        if now.monotonic_ns - self._minute.monotonic_ns >= MINUTE_NS:
            self.flush()
        self._namer.turn()
        self.name_more()

    def flush(self) -> None:
        """Write what has come since the last minute. What cannot be written waits for the next try."""
        start, self._minute = self._minute, self._before
        by_source: dict[str, list[Figures]] = {}
        for taker in self._takers:
            try:
                if figures := taker.figures():
                    by_source.setdefault(taker.source, []).extend(figures)
            except (RecordError, ValueError, OSError):
                self.counts["minutes_not_written"] += 1
        if not by_source:
            by_source[self._source] = []
        for number, (source, figures) in enumerate(by_source.items()):
            stretch = PeriodSummary(
                source=source,
                fold=0,
                start_ns=start.monotonic_ns,
                end_ns=self._minute.monotonic_ns,
                wall_ns=start.wall_ns,
                counts={} if number else dict(self.counts),
                figures=folded_figures(figures),
            )
            self._waiting.append(stretch)
        self.counts.clear()
        self._write_waiting()

    def end(self, taker: Taker) -> None:
        """Take the rest of an engine that has ended."""
        self.flush()
        self._takers.remove(taker)
        try:
            if (end := taker.finish()) is not None:
                self.folder.add_end(end)
                self._count_missing(end)
        except OSError:
            self.counts["sessions_not_written"] += 1

    def _count_missing(self, end: SessionEnd) -> None:
        """Count the latencies whose events the engine could not keep, by reason."""
        for result in end.results:
            for name in NOT_CAPTURED if result.name == "explain" else ():
                value = result.values.get(name)
                if isinstance(value, int) and value:
                    self.counts[name] += value

    def name_more(self) -> None:
        """Name the longest moments that nobody has explained yet, if the share of the CPU allows it."""
        while self._unnamed and self._namer.may():
            known = [kept for n in self._unnamed if (kept := self.folder.keeping.moments.get(n)) is not None]
            self._unnamed = {kept.number for kept in known}
            if not known:
                return
            kept = max(known)
            self._unnamed.remove(kept.number)
            try:
                _, line = self.folder.moment(kept.number)
                culprit = self._namer.name(self.folder.source(kept.source), json.loads(line))
                self.folder.name_moment(kept.number, culprit)
            except (OSError, RecordError):
                self.counts["moments_not_written"] += 1

    def _removed(self, number: int) -> None:
        if number:
            self.counts["moments_removed"] += number

    def _write_waiting(self) -> None:
        try:
            while self._waiting:
                self.folder.add_minute(self._waiting[0])
                del self._waiting[0]
            self._removed(len(self.folder.trim()))
        except OSError:
            self.counts["full_disk"] += 1
            by_source: dict[str, list[PeriodSummary]] = {}
            for stretch in self._waiting:
                by_source.setdefault(stretch.source, []).append(stretch)
            self._waiting = [folded(group) for group in by_source.values()]
