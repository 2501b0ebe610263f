# SPDX-License-Identifier: MIT
"""Reads the edges of single-bit signals from logic analysers' value change dumps (IEEE 1364-2001, clause 18).

The maintained library, vcdvcd, changes the process's handling of SIGPIPE on import, and hangs on an
unterminated comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from rtgauge.errors import InputError
from rtgauge.instrument.edges import open_edges

UNITS_NS = {
    "s": Fraction(10**9),
    "ms": Fraction(10**6),
    "us": Fraction(10**3),
    "ns": Fraction(1),
    "ps": Fraction(1, 10**3),
    "fs": Fraction(1, 10**6),
}
HEADER_LIMIT = 4 * 1024 * 1024
# Processing a word takes ten times its size in memory.
BLOCK_BYTES = 1024 * 1024
MAX_TIME_NS = 2**62


@dataclass(frozen=True)
class VcdHeader:
    """The header. `signals`: (full name, code) of the one-bit wires, in order.

    `data_at`: the byte offset of the values.
    """

    step_ns: Fraction
    signals: list[tuple[str, bytes]]
    data_at: int


_WORD = re.compile(rb"\S++")


class _Declaration(NamedTuple):
    """`$keyword words $end`, and the offset of its end in the file."""

    keyword: bytes
    words: list[bytes]
    end: int


def _declarations(head: bytes) -> Iterator[_Declaration]:
    keyword: bytes | None = None
    words: list[bytes] = []
    for match in _WORD.finditer(head):
        word = match[0]
        if keyword is None:
            keyword = word[1:] if word.startswith(b"$") and word != b"$end" else None
            words = []
        elif word.endswith(b"$end"):  # some tools write $end without a blank before it
            yield _Declaration(keyword, [*words, word[:-4]] if word != b"$end" else words, match.end())
            keyword = None
        else:
            words.append(word)


def read_header(path: Path) -> VcdHeader:
    """Read the header. Raises InputError if there is no header or it has no wires."""
    with open_edges(path) as file:
        head = file.read(HEADER_LIMIT)
    step_ns = Fraction(1)
    scopes: list[str] = []
    signals: list[tuple[str, bytes]] = []
    for keyword, words, end in _declarations(head):
        if keyword == b"timescale":
            match = re.fullmatch(r"(1|10|100)(s|ms|us|ns|ps|fs)", b"".join(words).decode("ascii", "replace"))
            if match is None:
                raise InputError(f"{path.name} has an invalid time scale")
            step_ns = int(match[1]) * UNITS_NS[match[2]]
        elif keyword == b"scope":
            scopes.append(words[-1].decode("utf-8", "replace") if words else "")
        elif keyword == b"upscope" and scopes:
            scopes.pop()
        elif keyword == b"var" and len(words) >= 4 and words[1] == b"1":
            signals.append((".".join([*scopes, b" ".join(words[3:]).decode("utf-8", "replace")]), words[2]))
        elif keyword == b"enddefinitions":
            if not signals:
                raise InputError(f"{path.name} has no one-bit signal")
            return VcdHeader(step_ns, signals, end)
    raise InputError(f"{path.name} is not a value change dump, because its definitions do not end")


class Changes(NamedTuple):
    """Changes of signals: their times, the signals' indices among the codes, and whether they go high."""

    times_ns: list[int]
    signals: list[int]
    high: list[bool]


def read_changes(
    path: Path,
    header: VcdHeader,
    codes: Sequence[bytes],
    *,
    block_bytes: int = BLOCK_BYTES,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Changes]:
    """Yield the changes of the signals with these codes after each signal's first level, in blocks.

    `progress` is called with the bytes read. Raises InputError for a damaged file.
    """
    changes: dict[bytes, list[tuple[int, bool]]] = {}
    for place, code in enumerate(codes):
        for value, high in ((b"0", False), (b"1", True)):
            changes.setdefault(value + code, []).append((place, high))
    levels: list[bool | None] = [None] * len(codes)
    step, over = header.step_ns.numerator, header.step_ns.denominator
    time_ns = 0
    comment = False
    vector = False
    for words in _words(path, header.data_at, block_bytes, progress):
        times: list[int] = []
        which: list[int] = []
        highs: list[bool] = []
        rest = iter(words)
        if vector:  # the code of a vector or real number in the previous block
            vector = next(rest, None) is None
        if comment:
            comment = b"$end" not in rest
        for word in rest:
            if (fitting := changes.get(word)) is not None:
                for place, high in fitting:
                    if levels[place] is (not high):
                        times.append(time_ns)
                        which.append(place)
                        highs.append(high)
                    # An unknown level counts as the previous level, because an edge goes from one known level
                    # to the other.
                    levels[place] = high
                continue
            first = word[:1]
            if first == b"#":
                if not word[1:].isdigit() or len(word) > 25:
                    raise InputError(f"{path.name}: '{word[:30].decode('ascii', 'replace')}' is not a time")
                later_ns = int(word[1:]) * step // over
                if later_ns < time_ns or later_ns > MAX_TIME_NS:
                    raise InputError(
                        f"the times in {path.name} run backwards or are too large at {word.decode()}"
                    )
                time_ns = later_ns
            elif first in b"bBrRsS":
                vector = next(rest, None) is None
            elif word == b"$comment":
                comment = b"$end" not in rest
            elif first not in b"01xXzZ$":
                shown = word[:30].decode("ascii", "replace")
                raise InputError(f"{path.name}: '{shown}' is not a value change")
        yield Changes(times, which, highs)


def _words(
    path: Path, begin: int, block_bytes: int, progress: Callable[[int], None] | None
) -> Iterator[list[bytes]]:
    with open_edges(path) as file:
        file.seek(begin)
        rest = b""
        while data := file.read(block_bytes):
            if progress is not None:
                progress(file.tell())
            data = rest + data
            words = data.split()
            rest = b""
            if words and not data[-1:].isspace():
                rest = words.pop()
                if len(rest) > block_bytes:
                    raise InputError(
                        f"{path.name} is not a value change dump, because it has a word of {len(rest)} bytes"
                    )
            yield words
        if rest:
            yield [rest]
