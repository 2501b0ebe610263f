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
from rtgauge.instrument.csv_layout import HEAD_BYTES, CsvLayout, find_layout
from rtgauge.instrument.csv_reader import BLOCK_BYTES as CSV_BLOCK_BYTES
from rtgauge.instrument.csv_reader import read_samples
from rtgauge.instrument.edges import Responses, Slicer, Thresholds, TimedDistances, open_edges
from rtgauge.instrument.messages import Answer, Edges
from rtgauge.instrument.vcd import BLOCK_BYTES as VCD_BLOCK_BYTES
from rtgauge.instrument.vcd import VcdHeader, read_changes, read_header

MOST_NS = 100 * 365 * 86_400 * 1e9
"""The latest time, so that times and their distances fit into 64 bits."""
_VCD = re.compile(rb"(\xef\xbb\xbf)?\s*+\$(date|version|timescale|comment|scope|var)\b")


def _number_in(name: str) -> int | None:
    """Return the number at the end of a channel's name: 1 for "CH1", "Channel 1" or "D1"; or None."""
    digits = name[len(name.rstrip("0123456789")) :]
    return int(digits) if digits.isascii() and 0 < len(digits) < min(len(name), 9) else None


class EdgeBlock(NamedTuple):
    """Edges in order of time: `times_ns` (int64), `line` (index of the channel), `high` (level after the
    edge).
    """

    times_ns: NDArray[np.int64]
    line: NDArray[np.int8]
    high: NDArray[np.bool_]


@dataclass
class EdgeFile:
    """A file with edges. `style`: the program or maker that apparently wrote it.

    `channels`: the names of the channels. `unreadable`: the rows without numbers that `edges` has met so far.
    """

    path: Path
    style: str
    channels: list[str]
    layout: CsvLayout | VcdHeader
    unreadable: int = 0

    @classmethod
    def open(
        cls, path: Path, *, time_unit: str | None = None, sample_rate_hz: float | None = None
    ) -> EdgeFile:
        """Open a file, and detect its format from its beginning. Raises InputError if the format is unknown.

        `time_unit`, `sample_rate_hz`: as in `find_layout`.
        """
        with open_edges(path) as file:
            head = file.read(HEAD_BYTES)
            whole = not file.read(1)
        if _VCD.match(head):
            header = read_header(path)
            return cls(path, "VCD", [name for name, _ in header.signals], header)
        try:
            layout = find_layout(head, whole=whole, time_unit=time_unit, sample_rate_hz=sample_rate_hz)
        except InputError as error:
            raise InputError(f"{path.name}: {error}") from error
        return cls(path, layout.style, [column.name for column in layout.channels], layout)

    def channel(self, name: str) -> int:
        """Find the index of a channel by its name, the last part of its name, or its number (from 1).

        For an unknown channel, or a number that is also in another channel's name ("1" for "Channel 0",
        "Channel 1"), raises InputError with a list of the names.
        """
        whole = [channel.lower() for channel in self.channels]
        last = [channel.rpartition(".")[2] for channel in whole]
        wanted = name.lower()
        for names in (whole, last):
            places = [place for place, channel in enumerate(names) if channel == wanted]
            if len(places) == 1:
                return places[0]
        if name.isascii() and name.isdigit() and len(name) < 9:
            by_number = int(name) - 1 if 1 <= int(name) <= len(self.channels) else None
            named = next(
                (place for place, channel in enumerate(last) if _number_in(channel) == int(name)), None
            )
            if named is not None and by_number is not None and named != by_number:
                readings = (
                    f"the channel '{self.channels[named]}', or channel number {name}, "
                    f"'{self.channels[by_number]}'"
                )
                raise InputError(
                    f"{self.path.name}: '{name}' could mean {readings}; give the channel's whole name"
                )
            place = by_number if by_number is not None else named
            if place is not None:
                return place
        raise InputError(f"{self.path.name} has no channel '{name}'; it has {', '.join(self.channels)}")

    def edges(
        self,
        channels: Sequence[int],
        *,
        threshold: float | None = None,
        hysteresis: float | None = None,
        block_bytes: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Iterator[EdgeBlock]:
        """Yield the edges of these channels (indices in `channels`).

        `threshold` and `hysteresis` are in volts. By default the threshold is halfway between the file's
        extreme levels, and the hysteresis is a fifth of the swing. Digital levels (0 and 1) need neither.
        `progress` is called with the bytes read and the file's size. Raises InputError if the file cannot be
        read.
        """
        size = self.path.stat().st_size

        def report_bytes(done: int) -> None:
            if progress is not None:
                progress(done, size)

        if isinstance(self.layout, VcdHeader):
            yield from self._vcd_edges(self.layout, channels, block_bytes or VCD_BLOCK_BYTES, report_bytes)
        else:
            yield from self._csv_edges(
                self.layout, channels, threshold, hysteresis, block_bytes or CSV_BLOCK_BYTES, report_bytes
            )

    def _vcd_edges(
        self, header: VcdHeader, channels: Sequence[int], block_bytes: int, progress: Callable[[int], None]
    ) -> Iterator[EdgeBlock]:
        codes = [header.signals[channel][1] for channel in channels]
        for times, which, high in read_changes(
            self.path, header, codes, block_bytes=block_bytes, progress=progress
        ):
            times_ns, line, level = (
                np.asarray(times, dtype=np.int64),
                np.asarray(which, dtype=np.int8),
                np.asarray(high, dtype=bool),
            )
            # Of simultaneous changes, the change of the first channel comes first.
            order = np.lexsort((line, times_ns))
            yield EdgeBlock(times_ns[order], line[order], level[order])

    def _csv_edges(
        self,
        layout: CsvLayout,
        channels: Sequence[int],
        threshold: float | None,
        hysteresis: float | None,
        block_bytes: int,
        progress: Callable[[int], None],
    ) -> Iterator[EdgeBlock]:
        size = self.path.stat().st_size
        twice = self._needs_levels(layout, threshold, hysteresis)
        thresholds = self._thresholds(
            layout, channels, threshold, hysteresis, block_bytes, lambda done: progress(done // 2)
        )
        slicers = [Slicer(line, interpolate=not layout.logic) for line in thresholds]
        self.unreadable = 0
        last_ns = -np.inf
        for samples in read_samples(
            self.path,
            layout,
            channels,
            block_bytes=block_bytes,
            progress=lambda done: progress((size + done) // 2 if twice else done),
        ):
            self.unreadable += samples.unreadable
            if len(samples.times_ns) == 0:
                continue
            if samples.times_ns[0] < last_ns or (np.diff(samples.times_ns) < 0).any():
                backwards = (
                    "its times run backwards; if it contains several segments, export each segment to a "
                    "file of its own"
                )
                raise InputError(f"{self.path.name}: {backwards}")
            if max(-samples.times_ns[0], samples.times_ns[-1]) > MOST_NS:
                raise InputError(
                    f"{self.path.name}: its times reach beyond 100 years; if their unit is wrong, give "
                    f"--time-unit"
                )
            last_ns = float(samples.times_ns[-1])
            each = zip(slicers, samples.values, strict=True)
            edges = [slicer.add(samples.times_ns, values) for slicer, values in each]
            times_ns = np.rint(np.concatenate([times for times, _ in edges])).astype(np.int64)
            high = np.concatenate([rising for _, rising in edges])
            line = np.repeat(np.arange(len(edges), dtype=np.int8), [len(times) for times, _ in edges])
            order = np.lexsort((line, times_ns))
            yield EdgeBlock(times_ns[order], line[order], high[order])

    @staticmethod
    def _needs_levels(layout: CsvLayout, threshold: float | None, hysteresis: float | None) -> bool:
        """Return whether the file must be read once more to find its extreme levels."""
        return not (layout.logic and threshold is None) and (threshold is None or hysteresis is None)

    def _thresholds(
        self,
        layout: CsvLayout,
        channels: Sequence[int],
        threshold: float | None,
        hysteresis: float | None,
        block_bytes: int,
        progress: Callable[[int], None],
    ) -> list[Thresholds]:
        if not self._needs_levels(layout, threshold, hysteresis):
            given = (
                Thresholds.around(0.5, 0.5)
                if threshold is None or hysteresis is None
                else Thresholds.around(threshold, hysteresis)
            )
            return [given] * len(channels)
        low = np.full(len(channels), np.inf)
        high = -low
        for samples in read_samples(self.path, layout, channels, block_bytes=block_bytes, progress=progress):
            if len(samples.times_ns):
                low = np.minimum(low, samples.values.min(axis=1))
                high = np.maximum(high, samples.values.max(axis=1))
        if not np.isfinite(low).all():
            raise InputError(f"{self.path.name} has no readable sample")
        return [
            Thresholds.of_levels(float(least), float(largest), self.channels[channel], threshold, hysteresis)
            for channel, least, largest in zip(channels, low, high, strict=True)
        ]


@dataclass
class Pairing:
    """Pairs each stimulus (line 0) with its answer (line 1), across blocks.

    The answer is the first fitting edge between the stimulus and the next stimulus.

    `missed`: the number of stimuli that the next stimulus overtook. `extra`: the number of edges of the
    answer line that answer no stimulus. `opposite`: the number of edges to the other level while a stimulus
    waited. `open`: whether the last stimulus has no answer yet.
    """

    stimuli: Edges = Edges.BOTH
    answer: Answer = Answer.FOLLOWS
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
                and self.answer is Answer.FOLLOWS
                and high != (self.stimuli is Edges.RISING)
            ):
                continue  # it answers the return of the stimulus line to its old level
            elif self._time_ns is None or (self.answer is Answer.FOLLOWS and high != self._high):
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


@dataclass
class Distances:
    """Measures distances of successive edges of line 0: half-periods, or periods if all are of one kind."""

    edges: Edges = Edges.BOTH
    _last_ns: int | None = None

    def add(self, block: EdgeBlock) -> TimedDistances:
        """Return the distances that end in this block."""
        chosen = block.line == 0
        if self.edges is not Edges.BOTH:
            chosen &= block.high == (self.edges is Edges.RISING)
        times_ns = block.times_ns[chosen]
        if self._last_ns is not None:
            times_ns = np.concatenate(([self._last_ns], times_ns))
        if len(times_ns):
            self._last_ns = int(times_ns[-1])
        return TimedDistances(times_ns[1:], np.diff(times_ns))
