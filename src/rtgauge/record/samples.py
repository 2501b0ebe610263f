# SPDX-License-Identifier: MIT
"""Reads and writes the file of raw samples (docs/formats/stream.md). Large files are read in pieces."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rtgauge.errors import RecordError
from rtgauge.record.record_folder import Source, open_source

MAGIC = b"rtgauge\x01"
HEADER = struct.Struct("<8sIIiIqqqqq")
SAMPLE = np.dtype("<i8")
FLAG_TIMED = 1
MAX_TIME_NS = 1 << 62
CHUNK = 1 << 18
"""Samples per piece: 2 MiB, which fits the L2 cache."""


@dataclass(frozen=True)
class SamplesHeader:
    """The header of a file of samples.

    Times are in ns on the target's CLOCK_MONOTONIC. `cpu` may be None. `interval_ns` is 0 if each sample has
    its own time.
    """

    series: int
    cpu: int | None
    interval_ns: int
    start_ns: int
    warm_up_ns: int
    lost: int = 0
    duration_ns: int = 0

    @property
    def timed(self) -> bool:
        """Whether a sample is a pair (time, value)."""
        return self.interval_ns == 0

    @property
    def sample_bytes(self) -> int:
        """The size of a sample in the file, in bytes."""
        return SAMPLE.itemsize * (2 if self.timed else 1)

    def pack(self) -> bytes:
        """Return the header's 64 bytes."""
        cpu = -1 if self.cpu is None else self.cpu
        flags = FLAG_TIMED if self.timed else 0
        return HEADER.pack(
            MAGIC,
            HEADER.size,
            self.series,
            cpu,
            flags,
            self.interval_ns,
            self.start_ns,
            self.warm_up_ns,
            self.lost,
            self.duration_ns,
        )


def unpack_header(data: bytes, source: Source) -> SamplesHeader:
    """Return the header in the first bytes of a file. Raises RecordError."""
    if not data.startswith(MAGIC[:7]):
        raise RecordError(f"{source} is not a file of rtgauge samples")
    if data[:8] != MAGIC:
        if len(data) < len(MAGIC):
            raise RecordError(
                f"{source} is cut short: only {len(data)} of the {HEADER.size} bytes of its header are there"
            )
        raise RecordError(
            f"{source} has samples in format {data[7]}, but this rtgauge reads only {MAGIC[7]}: update "
            "rtgauge"
        )
    if len(data) < HEADER.size:
        raise RecordError(
            f"{source} is cut short: only {len(data)} of the {HEADER.size} bytes of its header are there"
        )
    _, length, series, cpu, flags, interval, start, warm_up, lost, duration = HEADER.unpack(data)
    if length != HEADER.size or flags not in (0, FLAG_TIMED) or cpu < -1:
        raise RecordError(
            f"{source} is damaged: its header gives an impossible length ({length}), flags ({flags}) or CPU "
            f"({cpu})"
        )
    if (
        (interval != 0 if flags else interval <= 0)
        or min(start, warm_up, lost, duration) < 0
        or start + warm_up + duration > MAX_TIME_NS
    ):
        raise RecordError(
            f"{source} is damaged: its header gives an impossible time (interval {interval} ns, start "
            f"{start}, warm-up {warm_up}, lost {lost}, duration {duration})"
        )
    return SamplesHeader(series, None if cpu == -1 else cpu, interval, start, warm_up, lost, duration)


def _header_of(file: BufferedReader, source: Source) -> SamplesHeader:
    """Read the header of an open file. Raises RecordError or OSError."""
    header = unpack_header(file.read(HEADER.size), source)
    body = os.fstat(file.fileno()).st_size - HEADER.size
    if body % header.sample_bytes:
        raise RecordError(_cut_short(source, body, header))
    return header


def read_header(source: Source) -> SamplesHeader:
    """Return the header of a file of samples. Raises RecordError for a foreign, damaged or truncated file."""
    try:
        with open_source(source) as file:
            return _header_of(file, source)
    except OSError as error:
        raise RecordError(f"{source} cannot be read: {error.strerror}") from None


def _cut_short(source: Source, length: int, header: SamplesHeader) -> str:
    return (
        f"{source} is cut short: only {length % header.sample_bytes} of the {header.sample_bytes} bytes of "
        "its last sample are there"
    )


def pieces(
    source: Source, size: int = CHUNK
) -> Iterator[tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int64]]]:
    """Yield (times or None, values) in ns, in pieces of at most `size` samples.

    The times are None if the file has none, because they follow from the releases. All pieces share one
    buffer: use each piece before you request the next. Raises RecordError for a foreign or damaged file.
    """
    try:
        with open_source(source) as file:
            header = _header_of(file, source)
            buffer = np.empty(size * header.sample_bytes // SAMPLE.itemsize, dtype=SAMPLE)
            memory = memoryview(buffer.data).cast("B")
            os.lseek(file.fileno(), HEADER.size, os.SEEK_SET)
            while True:
                filled = 0
                while filled < len(memory):  # a signal may interrupt a read
                    n = os.readv(file.fileno(), [memory[filled:]])
                    if not n:
                        break
                    filled += n
                if filled % header.sample_bytes:
                    raise RecordError(_cut_short(source, filled, header))
                if filled == 0:
                    return
                piece = buffer[: filled // SAMPLE.itemsize]
                yield (piece[0::2], piece[1::2]) if header.timed else (None, piece)
    except OSError as error:
        raise RecordError(f"{source} cannot be read: {error.strerror}") from None


def chunks(source: Source, size: int = CHUNK) -> Iterator[npt.NDArray[np.int64]]:
    """Yield only the values (ns) of `pieces`."""
    for _, values in pieces(source, size):
        yield values


class Samples(NamedTuple):
    """The header of a small file, and all its values in ns, including the warm-up."""

    header: SamplesHeader
    values: npt.NDArray[np.int64]


def read_samples(source: Source) -> Samples:
    """Read a small file. Raises RecordError."""
    header = read_header(source)
    copies = [piece.copy() for piece in chunks(source)]
    return Samples(header, np.concatenate(copies) if copies else np.empty(0, dtype=np.int64))


def read_times(source: Source) -> npt.NDArray[np.int64]:
    """Return the times (ns) of a small file of timed samples. Raises RecordError."""
    copies = [times.copy() for times, _ in pieces(source) if times is not None]
    return np.concatenate(copies) if copies else np.empty(0, dtype=np.int64)
