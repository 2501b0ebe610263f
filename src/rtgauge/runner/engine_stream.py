# SPDX-License-Identifier: MIT
"""The stream of an engine that measures, read to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rtgauge.errors import EXIT_INPUT, InputError, MeasureError, RecordError
from rtgauge.record.files import clear_errors, write_whole
from rtgauge.record.moment_writer import MomentWriter
from rtgauge.record.stream import (
    AnyLine,
    Armed,
    ErrorLine,
    Frame,
    MomentLine,
    SeriesLine,
    StreamResult,
    SymbolsLine,
    TraceFormatsLine,
    Window,
    parse_line,
)
from rtgauge.record.window_table import WindowTable
from rtgauge.runner.context import NotHere, NotOnCokernel, StepInProgress
from rtgauge.runner.refusal import explain
from rtgauge.target.target import Guarded, Target
from rtgauge.units import NS_PER_S

STREAM = "stream.ndjson"
"""The copy of a stream in a step's folder."""
LAST_WORDS_S = 1.0
"""Between a program's last line and its end."""
LOAD_CHECK_S = 1.0
SILENCE_S, SLOWEST = 600.0, 20
"""A step's engine may say nothing for this time and so many times as long as the step takes."""
WINDOW = b'{"type":"window",'
"""How the engine's lines of windows begin."""
FRAME = b'{"type":"frame",'
"""How those of frames begin, which are not kept."""
OF_MOMENTS = (b'{"type":"moment",', b'{"type":"trace_formats",', b'{"type":"symbols",')
"""Those that go to the step's moments, and are in no copy of the stream."""


def as_exception(error: ErrorLine, target: Target) -> MeasureError | InputError:
    """The error of an engine on the target as an exception to raise."""
    message = explain(error, target.read)
    what, remedy = error.detail.get("what"), error.detail.get("remedy")
    if isinstance(what, str) and isinstance(remedy, str):
        return (NotOnCokernel if error.status == EXIT_INPUT else NotHere)(what, message, remedy)
    return InputError(message) if error.status == EXIT_INPUT else MeasureError(message)


class StreamLog:
    """The step's copy of a stream (docs/formats/record.md): of a long one, the windows that are in part files
    are no longer in it.
    """

    def __init__(self, path: Path) -> None:
        """Begin it. Raises OSError."""
        self._path = path
        self._file = path.open("wb", buffering=0)  # a line that came is there, whatever happens
        self._others: list[bytes] = []

    def write(self, text: bytes) -> None:
        """Add a line. Raises OSError."""
        self._file.write(text)
        if not text.startswith(WINDOW):
            self._others.append(text)

    def drop_windows(self) -> None:
        """Every window so far is in a file of its own. Raises OSError."""
        ended = self._file.closed
        self._file.close()
        write_whole(self._path, b"".join(self._others))
        if not ended:
            self._file = self._path.open("ab", buffering=0)

    def close(self) -> None:
        """Raises OSError."""
        self._file.close()


class EngineStream:
    """A stream as far as it was read."""

    def __init__(self, log: Path | None = None, table: str = "windows") -> None:
        """`log`: the file that gets a copy, beside which windows go that are too many for memory, into files
        named `table`-*.parquet.
        """
        self.result = StreamResult()
        self._folder = log.parent if log is not None else None
        self._moments: MomentWriter | None = None
        self._log = StreamLog(log) if log is not None else None
        self.table = (
            WindowTable(log.parent, table, self._log.drop_windows)
            if log is not None and self._log is not None
            else WindowTable()
        )

    def lines(self, program: Guarded, silence_s: float | None = None) -> Iterator[AnyLine]:
        """Every line as it comes; each is kept here.

        Raises RecordError for a line that is none of a stream, OSError where the copy cannot be written.
        """
        try:
            for text in program.lines(silence_s):
                if self._log is not None and not text.startswith((FRAME, *OF_MOMENTS)):
                    self._log.write(text)
                if not text.endswith(b"\n"):
                    return  # the engine was killed in the middle of a line
                line = parse_line(text)
                if isinstance(line, Window):
                    self.table.add(line)
                else:
                    self.result.take(line)
                    self._take_moments(line, text)
                yield line
        finally:
            if self._moments is not None:
                self._moments.finish()
            if self._log is not None:
                self._log.close()

    def check(self, target: Target) -> None:
        """Raise InputError or MeasureError for what the engine on the target has refused."""
        if self.result.error is not None:
            raise as_exception(self.result.error, target)

    def _take_moments(self, line: AnyLine, text: bytes) -> None:
        if isinstance(line, TraceFormatsLine) and self._folder is not None and self._moments is None:
            self._moments = MomentWriter(self._folder, line)
        if self._moments is None:
            return
        if isinstance(line, MomentLine):
            self._moments.add(text)
        elif isinstance(line, SymbolsLine):
            self._moments.add_symbols(line)


def silence_limit_s(expected_ns: int | None) -> float | None:
    """How long the engine of a step that takes so long may say nothing; None: for ever.

    An emulated machine's time may go many times slower than ours.
    """
    return None if expected_ns is None else SILENCE_S + SLOWEST * expected_ns / NS_PER_S


def follow(
    program: Guarded,
    step: StepInProgress,
    log: Path,
    *,
    begin: Callable[[EngineStream], None] | None = None,
    table: str = "windows",
) -> EngineStream:
    """Read a probe's stream to its end: `go` when it is armed, `stop` when the user says so.

    `begin` is called with what was read by then, before `go` (None: the load has begun). `log` gets a copy of
    the stream, `table` begins the names of files of windows beside it. How long the step takes bounds how
    long another machine may say nothing.

    Its last line may be an error. Raises MeasureError where it is not a stream, ConnectionBroken where
    nothing comes any more.
    """
    context = step.context
    checked_s, watched, armed = time.monotonic(), False, False
    with clear_errors(log, log.parent.parent.parent):
        stream = EngineStream(log, table)
        context.interrupt.stop_by(lambda: program.say("stop"))
        try:
            for line in stream.lines(program, silence_limit_s(step.expected_ns)):
                if isinstance(line, Window):
                    context.progress.window(line)
                elif isinstance(line, Frame):
                    context.progress.frame(line)
                # Of a program that outlives its connection the target keeps the output in a file, which
                # frames would fill.
                if watched != (program.kept is None and context.progress.watched()):
                    watched = not watched
                    program.say("watch" if watched else "unwatch")
                if isinstance(line, SeriesLine) and armed:  # of a thread that began later
                    context.progress.series(stream.result.series)
                if isinstance(line, Armed):
                    armed = True
                    context.progress.series(stream.result.series)
                    if begin is not None:
                        begin(stream)
                    program.say("go")
                    context.progress.phase("measuring")
                if step.load is not None and time.monotonic() - checked_s > LOAD_CHECK_S:
                    step.load.check()
                    checked_s = time.monotonic()
        except RecordError as error:
            raise MeasureError(str(error)) from None
        finally:
            context.interrupt.stop_by(None)
    program.wait(LAST_WORDS_S)
    if stream.table.is_long():
        context.progress.phase("windows are merged in time")  # of a week about ten minutes
    return stream


def arm_and_stop(program: Guarded, target: Target, probe: str) -> None:
    """Stop an engine as soon as it is armed. Raises InputError or MeasureError for what it refuses."""
    stream = EngineStream()
    for line in stream.lines(program, SILENCE_S):
        if isinstance(line, Armed):
            program.say("stop")
    status = program.wait(LAST_WORDS_S)
    stream.check(target)
    if status:
        raise MeasureError(
            f"the engine ended at once with status {status}; run `rtgauge probe {probe}` to see why"
        )
