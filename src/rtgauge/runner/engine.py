# SPDX-License-Identifier: MIT
"""Starts a step's engine (the ordinary one or a co-kernel's) and reads its stream to the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rtgauge.errors import EXIT_INPUT, InputError, MeasureError, RecordError
from rtgauge.probe import probe_registry as probes
from rtgauge.record.files import clear_errors, write_whole
from rtgauge.record.model import COKERNELS
from rtgauge.record.moments import MomentWriter
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
from rtgauge.runner.context import NotHere, NotOnCokernel, StepContext, StepInProgress
from rtgauge.system.refusal import explain
from rtgauge.system.runtime import runtime_of
from rtgauge.target.address import LOCAL
from rtgauge.target.target_protocol import Guarded, Target
from rtgauge.units import NS_PER_S

LOADING = "error while loading shared libraries: "
"""glibc's dynamic loader prints this before the name of a missing library."""
START_S = 30.0
STREAM = "stream.ndjson"
"""The name of a stream's copy in a step's folder."""
LAST_WORDS_S = 1.0
"""Time allowed between a program's last line and its end (s)."""
LOAD_CHECK_S = 1.0
SILENCE_S, SLOWEST = 600.0, 20
"""An engine may be silent for this time (s), plus this many times its step's duration."""
SILENCE_HERE_S, SLOWEST_HERE = 60.0, 2
"""The same limits for an engine on this machine that prints windows."""
WINDOW = b'{"type":"window",'
"""The beginning of the engine's window lines."""
FRAME = b'{"type":"frame",'
"""The beginning of frame lines. They are not kept."""
OF_MOMENTS = (b'{"type":"moment",', b'{"type":"trace_formats",', b'{"type":"symbols",')
"""The beginnings of lines that go to the step's moments instead of the stream's copy."""


def start_engine(context: StepContext, arguments: Sequence[str]) -> Guarded:
    """Start a probe (its verb and options) on the step's target, under a guard.

    Raises MeasureError if there is no engine for the step's co-kernel.
    """
    target, key = context.target, context.key
    if key.rt == "linux":
        return target.engine(*arguments, group=context.group)
    engine = target.put(runtime_of(key.rt).engine(target.machine))
    return target.start([engine, *arguments], group=context.group)


def check_engine_starts(name: str, target: Target) -> None:
    """Raise MeasureError if the engine for a co-kernel is missing here, or if the target lacks its libraries.
    If the kernel has no such core, this is the reason: no engine or library would help.

    `name`: the co-kernel's value of `rt`. Raises InputError if no extension knows it.
    """
    runtime = runtime_of(name)
    has_core = target.read([runtime.kernel_file]).exists(runtime.kernel_file)
    no_core = MeasureError(f"{runtime.no_core}; boot a kernel that has one, or leave --rt out")
    try:
        engine = target.put(runtime.engine(target.machine))
    except MeasureError as missing:
        raise (missing if has_core else no_core) from None
    completed = target.run(["sh", "-c", 'exec "$0" version 2>&1', engine], START_S)
    if completed.returncode == 0:
        return
    called = COKERNELS[name]
    last = (completed.stdout.strip().splitlines() or [f"it ended with status {completed.returncode}"])[-1]
    _, loading, missing = last.partition(LOADING)
    if loading and not has_core:
        raise no_core
    if loading:
        library = missing.partition(":")[0]
        raise MeasureError(
            f"the engine for {called} needs {library}, which is not on the target; {runtime.missing_library}"
        )
    raise MeasureError(f"the engine for {called} does not start on the target: {last}")


def as_exception(error: ErrorLine, target: Target) -> MeasureError | InputError:
    """Return the exception for an engine's error on the target."""
    message = explain(error, target.read)
    what, remedy = error.detail.get("what"), error.detail.get("remedy")
    if isinstance(what, str) and isinstance(remedy, str):
        return (NotOnCokernel if error.status == EXIT_INPUT else NotHere)(what, message, remedy)
    return InputError(message) if error.status == EXIT_INPUT else MeasureError(message)


class StreamLog:
    """A step's copy of a stream (docs/formats/record.md). A long stream's copy omits windows that part files
    hold.
    """

    def __init__(self, path: Path) -> None:
        """Open the file. Raises OSError."""
        self._path = path
        self._file = path.open("wb", buffering=0)  # unbuffered, so that each line survives a crash
        self._others: list[bytes] = []

    def write(self, text: bytes) -> None:
        """Add a line. Raises OSError."""
        self._file.write(text)
        if not text.startswith(WINDOW):
            self._others.append(text)

    def drop_windows(self) -> None:
        """Remove the windows, because part files now hold them. Raises OSError."""
        ended = self._file.closed
        self._file.close()
        write_whole(self._path, b"".join(self._others))
        if not ended:
            self._file = self._path.open("ab", buffering=0)

    def close(self) -> None:
        """Close the file. Raises OSError."""
        self._file.close()


class EngineStream:
    """A stream, up to the line that was read last."""

    def __init__(self, log: Path | None = None, table: str = "windows") -> None:
        """`log`: the file for a copy. Windows that do not fit in memory go into `table`-*.parquet
        next to it.
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
        """Yield every line as it comes, and add it to the result.

        Raises RecordError for an invalid line, OSError if the copy cannot be written.
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
        """Raise InputError or MeasureError if the engine on the target reported a refusal."""
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


def silence_limit_s(expected_ns: int | None, *, here: bool = False) -> float | None:
    """Return how long (s) an engine may be silent in a step of this duration; None: no limit.

    An emulated machine's clock may run many times slower than ours. `here`: whether the engine runs on this
    machine and prints windows.
    """
    longest_s, slowest = (SILENCE_HERE_S, SLOWEST_HERE) if here else (SILENCE_S, SLOWEST)
    return None if expected_ns is None else longest_s + slowest * expected_ns / NS_PER_S


def follow(
    program: Guarded,
    step: StepInProgress,
    log: Path,
    *,
    begin: Callable[[EngineStream], None] | None = None,
    table: str = "windows",
) -> EngineStream:
    """Read a probe's stream to its end. Send `go` when the probe is armed, and `stop` when the user asks.

    `begin` is called before `go` with the stream up to there (None: the load has already begun). `log` gets a
    copy of the stream; the names of window files next to it begin with `table`. The step's duration
    determines how long the engine may be silent.

    The stream's last line may be an error. Raises MeasureError if it is not a stream, SilentError if it is
    silent for too long, ConnectionBroken if the connection is lost.
    """
    context = step.context
    checked_s, watched, armed = time.monotonic(), False, False
    with clear_errors(log, log.parent.parent.parent):
        stream = EngineStream(log, table)
        context.interrupt.stop_by(lambda: program.send("stop"))
        here = context.target.name == LOCAL and context.key.parameters.get("window_ns") is not None
        try:
            for line in stream.lines(program, silence_limit_s(step.expected_ns, here=here)):
                if isinstance(line, Window):
                    context.progress.window(line)
                elif isinstance(line, Frame):
                    context.progress.frame(line)
                # If a program outlives its connection, the target keeps its output in a file, which frames
                # would fill.
                if watched != (program.kept is None and context.progress.watched()):
                    watched = not watched
                    program.send("watch" if watched else "unwatch")
                if isinstance(line, SeriesLine) and armed:  # the thread started later
                    context.progress.series(stream.result.series)
                if isinstance(line, Armed):
                    armed = True
                    context.progress.series(stream.result.series)
                    if begin is not None:
                        begin(stream)
                    program.send("go")
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
        context.progress.phase("windows are being merged")  # up to ten minutes, for a step of a week
    return stream


def arm_and_stop(program: Guarded, target: Target, probe: str) -> None:
    """Stop an engine as soon as it is armed. Raises InputError or MeasureError if it refuses to arm."""
    stream = EngineStream()
    for line in stream.lines(program, SILENCE_S):
        if isinstance(line, Armed):
            program.send("stop")
    status = program.wait(LAST_WORDS_S)
    stream.check(target)
    if status:
        raise MeasureError(
            f"the engine ended at once with status {status}; run `{probes.get(probe).called}` to see why"
        )


def arm(context: StepContext, arguments: Sequence[str]) -> None:
    """Start the step's engine with these arguments and stop it once it is armed.

    Raises InputError or MeasureError if it refuses.
    """
    arm_and_stop(start_engine(context, arguments), context.target, context.key.probe)


def arm_trial(context: StepContext) -> None:
    """Arm the step's probe, as far as that works without the step's settings. Raises as `arm` does."""
    key = context.key
    probe = probes.get(key.probe)
    # The tracefs instance exists only during the step itself, and a co-kernel's engine refuses to trace.
    parameters = probe.own(key)
    arm(
        context,
        probe.trial_arguments(parameters) if key.rt == "linux" else probe.arguments(parameters, None),
    )
