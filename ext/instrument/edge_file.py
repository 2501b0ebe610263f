# SPDX-License-Identifier: MIT
"""Finds edges and their distances in files of oscilloscopes and logic analysers, with bounded memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtgauge.errors import InputError
from rtgauge_ext.instrument.csv_levels import BLOCK_BYTES, read_levels, read_names
from rtgauge_ext.instrument.edges import Responses, open_edges
from rtgauge_ext.instrument.messages import AnswerEdges, Edges
from rtgauge_ext.instrument.vcd import VcdHeader, read_changes, read_header

HEAD_BYTES = 4096
_VCD = re.compile(rb"(\xef\xbb\xbf)?\s*+\$(date|version|timescale|comment|scope|var)\b")


class EdgeBlock(NamedTuple):
    """Edges in order of time: `times_ns` (int64), `line` (index of the channel), `high` (level after the
    edge).
    """

    times_ns: NDArray[np.int64]
    line: NDArray[np.int8]
    high: NDArray[np.bool_]


@dataclass
class EdgeFile:
    """A file with edges. `channels`: the names of the channels. `header`: None for CSV."""

    path: Path
    channels: list[str]
    header: VcdHeader | None

    @property
    def style(self) -> str:
        """The format of the file."""
        return "CSV" if self.header is None else "VCD"

    @classmethod
    def open(cls, path: Path) -> EdgeFile:
        """Open a file, and detect its format. Raises InputError if the format is unknown."""
        with open_edges(path) as file:
            head = file.read(HEAD_BYTES)
        if _VCD.match(head):
            header = read_header(path)
            return cls(path, [name for name, _ in header.signals], header)
        return cls(path, read_names(path), None)

    def channel(self, name: str) -> int:
        """Find the index of a channel by its name, or by the last part of its name.

        For an unknown or ambiguous name, raises InputError with a list of the names.
        """
        whole = [channel.lower() for channel in self.channels]
        for names in (whole, [channel.rpartition(".")[2] for channel in whole]):
            if names.count(name.lower()) == 1:
                return names.index(name.lower())
        raise InputError(
            f"{self.path.name} does not contain the channel '{name}'; choose from {', '.join(self.channels)}"
        )

    def edges(
        self,
        channels: Sequence[int],
        *,
        block_bytes: int = BLOCK_BYTES,
        progress: Callable[[int, int], None] | None = None,
    ) -> Iterator[EdgeBlock]:
        """Yield the edges of these channels (indices in `channels`).

        The first level of a channel is not an edge, because the level before it is unknown. `block_bytes`:
        how much of a CSV file is read at once. `progress` is called with the bytes read and the file's size.
        Raises InputError if the file cannot be read.
        """
        size = self.path.stat().st_size

        def report_bytes(read_bytes: int) -> None:
            if progress is not None:
                progress(read_bytes, size)

        if self.header is None:
            blocks = self._csv_edges(channels, block_bytes, report_bytes)
        else:
            codes = [self.header.signals[channel][1] for channel in channels]
            blocks = (
                EdgeBlock(
                    np.asarray(times, dtype=np.int64),
                    np.asarray(which, dtype=np.int8),
                    np.asarray(high, dtype=bool),
                )
                for times, which, high in read_changes(self.path, self.header, codes, progress=report_bytes)
            )
        for times_ns, line, high in blocks:
            # Of simultaneous changes, the change of the first channel comes first.
            order = np.lexsort((line, times_ns))
            yield EdgeBlock(times_ns[order], line[order], high[order])

    def _csv_edges(
        self, channels: Sequence[int], block_bytes: int, progress: Callable[[int], None]
    ) -> Iterator[EdgeBlock]:
        last: NDArray[np.bool_] | None = None
        for times_ns, high in read_levels(self.path, channels, block_bytes=block_bytes, progress=progress):
            before = np.concatenate((high[:, :1] if last is None else last, high[:, :-1]), axis=1)
            line, row = np.nonzero(high != before)
            last = high[:, -1:]
            yield EdgeBlock(times_ns[row], line.astype(np.int8), high[line, row])


@dataclass
class Pairing:
    """Pairs each stimulus (line 0) with its answer (line 1), across blocks.

    The answer is the first fitting edge between the stimulus and the next stimulus.

    `missed`: the number of stimuli that the next stimulus overtook. `extra`: the number of edges of the
    answer line that answer no stimulus. `opposite`: the number of edges to the other level while a stimulus
    waited. `open`: whether the last stimulus has no answer yet.
    """

    stimuli: Edges = Edges.BOTH
    answer: AnswerEdges = AnswerEdges.FOLLOWS
    missed: int = 0
    extra: int = 0
    opposite: int = 0
    _time_ns: int | None = None
    _high: bool = False

    @property
    def open(self) -> bool:
        """Whether the last stimulus is still waiting for its answer."""
        return self._time_ns is not None

    def add(self, block: EdgeBlock) -> Responses:
        """Return the stimuli that were answered or overtaken in this block."""
        answered: list[tuple[int, int]] = []
        overtaken: list[tuple[int, int]] = []
        for time_ns, line, high in zip(
            block.times_ns.tolist(), block.line.tolist(), block.high.tolist(), strict=True
        ):
            if line == 0:
                if self.stimuli is not Edges.BOTH and high != (self.stimuli is Edges.RISING):
                    continue
                if self._time_ns is not None:
                    overtaken.append((self._time_ns, time_ns - self._time_ns))
                self._time_ns, self._high = time_ns, high
            elif (
                self.stimuli is not Edges.BOTH
                and self.answer is AnswerEdges.FOLLOWS
                and high != (self.stimuli is Edges.RISING)
            ):
                continue  # it answers the return of the stimulus line to its old level
            elif self._time_ns is None or (self.answer is AnswerEdges.FOLLOWS and high != self._high):
                self.extra += 1
                self.opposite += self._time_ns is not None
            else:
                answered.append((self._time_ns, time_ns - self._time_ns))
                self._time_ns = None
        self.missed += len(overtaken)
        (stimulus_ns, response_ns), (missed_ns, unanswered_ns) = (
            np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T for pairs in (answered, overtaken)
        )
        return Responses(stimulus_ns, response_ns, missed_ns, unanswered_ns)
