# SPDX-License-Identifier: MIT
"""Text on which a careless parser takes for ever: tokens of the formats, repeated and mixed, for every reader
of files and outputs of others.
"""

from __future__ import annotations

import random
import signal
import time
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ext.importers.tests.foreign_files import FILES
from rtgauge.errors import InputError, RecordError
from rtgauge.explain.trace.formats import event_format, page_layout
from rtgauge.load.processes import parse_stat
from rtgauge_ext.importers.foreign_file import lines
from rtgauge_ext.importers.importer import Hints
from rtgauge_ext.importers.registry import importer_of, importers
from rtgauge_ext.importers.rtai_testsuite import parse_rtai_latency, parse_rtai_switches
from rtgauge_ext.importers.switchtest import parse_switchtest
from rtgauge_ext.instrument.edge_file import EdgeFile
from rtgauge_ext.instrument.edges import Distances

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

TOKENS = [
    " ", "\t", "\n", "\r", "\r\n", "0", "9", "1.", ".", ",", ", ", ";", ":", ": ", "-", "+", "#", "# ", "=",
    "|", "| ", "/", "%", "(", "( ", ")", "[", "]",
    "{", "{}", '"', '""', '", "', "\\", "<a>", "<", "&", "a", "A ", "A: ", "in ", "µ", "e1", "é", "\x1b[",
    "\x1bc", "$end", "$end ", "$a ", "$comment ", "#1 ",
    "ts: ", "ts: a, ", "inner: ", "delta: ", "T: 0 (", "T: 0 ( 1) P: ", "C: 1 ", "RTD|", "RTD| 1|",
    "HSD| avg| ", "count: ", "Thr-0 ",
    "record length,", "sample interval", "time,", "x,", "0,1\n", "1 2\n", "000001 000001\n", "t0 = 1 ",
    "tInc=", "field:", "ID: ", "* *** ", "t0-max-latency ",
    '"cmdline:": "', '"cpu": { "0": {', "[[a]]\n", "a.", "a = 1\n", "10 ) S 1 ",
    "period = 1 ", "> ", "[ 1.000] ", "<6>", "May 01 12:00:01 a b[1]: ", "12:00:01 ", "\x1b[m", "oslat V 1",
    "001 (us): 1 ", "CPU Period Runtime ", "Timer Latency ", "Index IRQ-000 ", "}\n", "nan ",
]  # fmt: skip
BEGINNINGS = [
    b"", b"{", b'{\n  "file_version": 1,\n  "cmdline:": "', b"# Histogram\n000001 000001\n", b"ts: ",
    b"T: 0 ( 1) P:", b"hwlatdetect:  test duration 9 seconds\n",
    b"# RTLA timerlat histogram\nIndex   IRQ-000\n", b"     Timer Latency\n    1 #12 ",
    b"RTT|  00:00:01  (user, 100 us period)\nRTD| ", b"# 00:00:01 (a, 1 us period)\n",
    b"# libevl version: 1\n# ", b"<rteval>", b"$comment ",
    b"RTAI Testsuite\nRTD|", b"oslat V 1\n    001 (us): ", b"May 01 12:00:01 a cyclictest: T: 0 (",
    b"$timescale 1 ns $end\n$var wire 1 ! a $end $enddefinitions $end\n",
    b"time_s,CH1\n", b"time_s,", b"name: x\nID: 1\n\tfield:", b"1 (",
]  # fmt: skip
"""What brings a reader past its first question."""


def _edges(path: Path) -> None:
    file = EdgeFile.open(path)
    distances = Distances()
    for block in file.edges([0]):
        distances.add(block.times_ns, block.high)


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


READERS: dict[str, Callable[[Path], object]] = {
    "recognised": importer_of,
    **{importer.name: lambda path, read=importer.read: read(path, Hints()) for importer in importers()},
    "edges": _edges,
    "rtai latency": lambda path: parse_rtai_latency(lines(path), "x"),
    "rtai switches": lambda path: parse_rtai_switches(lines(path), "x"),
    "switchtest": lambda path: parse_switchtest(lines(path), "x"),
    "trace event": lambda path: event_format("a/x", _text(path)),
    "trace page": lambda path: page_layout(_text(path), _text(path), 4096),
    "process": lambda path: parse_stat(_text(path)),
}
if find_spec("rtgauge_ext.papers") is not None:
    from rtgauge_ext.papers.advise.flowchart_file import parse_flowchart

    READERS["flowchart"] = lambda path: parse_flowchart(_text(path), "x")
if find_spec("rtgauge_ext.schedulability") is not None:
    from rtgauge_ext.schedulability.task_set import read_task_set

    READERS["task set"] = read_task_set


def filled(token: str, size: int) -> bytes:
    """The token repeated, cut to so many bytes."""
    data = token.encode()
    return (data * (size // len(data) + 1))[:size]


def in_lines(data: bytes, length: int) -> bytes:
    """The same with a line end each `length` bytes, as long as a line of text may be."""
    return b"\n".join(data[at : at + length] for at in range(0, len(data), length))


def alone(size: int, line: int) -> Iterator[tuple[str, bytes]]:
    """(name, content): each token, behind nothing and in lines."""
    for token in TOKENS:
        yield f"{token!r}", filled(token, size)
        yield f"{token!r} in lines", in_lines(filled(token, size), line)


def mixtures(size: int, line: int, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """(name, content): `count` drawn ones, of a beginning and one to three tokens, in turns or one after the
    other, in lines or not.
    """
    draw = random.Random(seed)
    for _ in range(count):
        beginning, tokens = draw.choice(BEGINNINGS), draw.sample(TOKENS, draw.randint(1, 3))
        turns = draw.random() < 0.5
        body = (
            filled("".join(tokens), size)
            if turns
            else b"".join(filled(token, size // len(tokens)) for token in tokens)
        )
        lines_of = draw.choice((0, 100, line))
        if lines_of:
            begin_each = beginning.rpartition(b"\n")[2] if draw.random() < 0.5 else b""
            body = b"\n".join(
                begin_each + part for part in in_lines(body, lines_of - len(begin_each)).split(b"\n")
            )
        yield (
            (
                f"{beginning!r} + {tokens} {'in turns' if turns else 'one after the other'}, lines of "
                f"{lines_of or 'any length'}"
            ),
            beginning + body,
        )


class TooSlowError(AssertionError):
    """A reader took more than its share of CPU time."""


@contextmanager
def cpu_seconds(most: float, what: str) -> Generator[None]:
    """Ends what is within by TooSlowError after so much CPU time of this process; other load does not
    count.
    """

    def expired(_signal: int, _frame: object) -> None:
        raise TooSlowError(f"{what}: more than {most:g} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, expired)
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def read_all(path: Path, name: str, content: bytes, most_s: float) -> dict[str, float]:
    """Give the content to every reader: each takes or refuses it within `most_s`.

    Gives the CPU time of each (s). Raises TooSlowError.
    """
    path.write_bytes(content)
    took: dict[str, float] = {}
    for reader, read in READERS.items():
        begin = time.process_time()
        with cpu_seconds(most_s, f"{reader} on {name}"), suppress(InputError, RecordError):
            read(path)
        took[reader] = time.process_time() - begin
    return took


def valid_with(token: str, times: int) -> Iterator[tuple[str, bytes]]:
    """(name, content): files as they should be, with the token in the middle of every line."""
    for name, file in FILES.items():
        data = file if isinstance(file, bytes) else file.encode()
        middle = filled(token, times * len(token.encode()))
        yield (
            f"{name} with {token!r}",
            b"\n".join(
                line[: len(line) // 2] + middle + line[len(line) // 2 :] for line in data.split(b"\n")
            ),
        )
