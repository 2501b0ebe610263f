# SPDX-License-Identifier: MIT
"""Reads the edges of single-bit signals from logic analysers' value change dumps (IEEE 1364-2001, clause 18),
by pyvcd.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vcd.reader import ScalarChange, Token, TokenKind, VCDParseError, VectorChange, tokenize

from rtgauge.errors import InputError
from rtgauge_ext.instrument.edges import open_edges

if TYPE_CHECKING:
    from typing_extensions import Buffer

BLOCK_TOKENS = 1 << 17
BUFFER_BYTES = 1 << 16
TOKEN_BYTES = 1 << 20
"""The longest comment or value."""
MAX_TIME_NS = 2**62
BOM = b"\xef\xbb\xbf"
UNITS_NS = {
    unit: Fraction(10**9, 10 ** (3 * power)) for power, unit in enumerate(("s", "ms", "us", "ns", "ps", "fs"))
}
_LEVELS: dict[int | str, bool] = {"0": False, "1": True, 0: False, 1: True}


@dataclass(frozen=True)
class VcdHeader:
    """The header. `signals`: (full name, code) of the one-bit wires, in order."""

    step_ns: Fraction
    signals: list[tuple[str, str]]


class _Stream(RawIOBase):
    """Reads a file for pyvcd, which would collect a token without end, and not see the end of a file in some.

    The reader of tokens sets `in_token` to 0 after each.
    """

    def __init__(self, file: BufferedReader, name: str, progress: Callable[[int], None] | None) -> None:
        super().__init__()
        self._file = file
        self._name = name
        self._progress = progress
        self._ends = 0
        self.in_token = 0

    def readinto(self, buffer: Buffer, /) -> int:
        """Fill the buffer; return the number of bytes. Raises InputError for a token that does not end."""
        count = self._file.readinto(buffer)
        self._ends += count == 0
        self.in_token += count
        if self.in_token > TOKEN_BYTES + BUFFER_BYTES or self._ends > 2:
            raise InputError(
                f"{self._name} is not a complete value change dump (VCD): a definition, comment or value "
                "does not end; export it again"
            )
        if self._progress is not None:
            self._progress(self._file.tell())
        return count


def _tokens(path: Path, progress: Callable[[int], None] | None = None) -> Iterator[Token]:
    with open_edges(path) as file:
        if file.peek(len(BOM))[: len(BOM)] == BOM:
            file.seek(len(BOM))
        stream = _Stream(file, path.name, progress)
        try:
            for token in tokenize(stream, BUFFER_BYTES):
                stream.in_token = 0
                yield token
        except (VCDParseError, ValueError) as error:
            raise InputError(f"{path.name} is not a valid value change dump (VCD): {error}") from None


def read_header(path: Path) -> VcdHeader:
    """Read the header. Raises InputError if there is no header or it has no wires."""
    step_ns = Fraction(1)
    scopes: list[str] = []
    signals: list[tuple[str, str]] = []
    for token in _tokens(path):
        match token.kind:
            case TokenKind.TIMESCALE:
                magnitude, unit = token.timescale
                if magnitude not in {1, 10, 100} or unit.value not in UNITS_NS:
                    raise InputError(f"{path.name} gives an invalid time scale ($timescale); export it again")
                step_ns = magnitude * UNITS_NS[unit.value]
            case TokenKind.SCOPE:
                scopes.append(token.scope.ident)
            case TokenKind.UPSCOPE:
                del scopes[-1:]
            case TokenKind.VAR if token.var.size == 1:
                signals.append((".".join([*scopes, token.var.ref_str]), token.var.id_code))
            case TokenKind.ENDDEFINITIONS:
                if not signals:
                    raise InputError(
                        f"{path.name} does not contain a one-bit signal; export the digital channels"
                    )
                return VcdHeader(step_ns, signals)
            case _:
                pass
    raise InputError(
        f"{path.name} is not a complete value change dump (VCD): its definitions do not end; export it again"
    )


class SignalChanges(NamedTuple):
    """Changes of signals: their times, the signals' indices among the codes, and whether they go high."""

    times_ns: list[int]
    signals: list[int]
    high: list[bool]


def read_changes(
    path: Path,
    header: VcdHeader,
    codes: Sequence[str],
    *,
    block_tokens: int = BLOCK_TOKENS,
    progress: Callable[[int], None] | None = None,
) -> Iterator[SignalChanges]:
    """Yield the changes of the signals with these codes after each signal's first level, in blocks.

    `progress` is called with the bytes read. Raises InputError for a damaged file.
    """
    places: dict[str, list[int]] = {}
    for place, code in enumerate(codes):
        places.setdefault(code, []).append(place)
    levels: list[bool | None] = [None] * len(codes)
    time_ns = 0
    changes = SignalChanges([], [], [])
    for number, token in enumerate(_tokens(path, progress), start=1):
        change = token.data
        if token.kind is TokenKind.CHANGE_TIME:
            later_ns = int(token.time_change * header.step_ns)
            if later_ns < time_ns or later_ns > MAX_TIME_NS:
                at = str(token.time_change)[:30]
                raise InputError(
                    f"the times in {path.name} run backwards or are too large at #{at}; export it again"
                )
            time_ns = later_ns
        elif isinstance(change, ScalarChange | VectorChange):
            # An unknown level counts as the previous level, because an edge goes from one known level to the
            # other.
            high = _LEVELS.get(change.value)
            if high is not None:
                for place in places.get(change.id_code, ()):
                    if levels[place] is (not high):
                        changes.times_ns.append(time_ns)
                        changes.signals.append(place)
                        changes.high.append(high)
                    levels[place] = high
        if number % block_tokens == 0:
            yield changes
            changes = SignalChanges([], [], [])
    yield changes
