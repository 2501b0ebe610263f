# SPDX-License-Identifier: MIT
"""The file of raw samples (docs/formats/stream.md): its header, reading it in pieces, writing it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rtgauge.errors import RecordError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

MAGIC = b"rtgauge\x01"
HEADER = struct.Struct("<8sIIiIqqqqq")
SAMPLE = np.dtype("<i8")
MAX_TIME_NS = 1 << 62
CHUNK = 1 << 18
"""Samples read at a time: 2 MiB, so that a piece stays in the second-level cache while it is worked on."""


@dataclass(frozen=True)
class SamplesHeader:
    """What the header says. Times in ns on the target's CLOCK_MONOTONIC; `cpu` is None where none."""

    series: int
    cpu: int | None
    interval_ns: int
    start_ns: int
    warm_up_ns: int
    lost: int = 0
    duration_ns: int = 0

    def pack(self) -> bytes:
        """The 64 bytes of the file."""
        cpu = -1 if self.cpu is None else self.cpu
        return HEADER.pack(MAGIC, HEADER.size, self.series, cpu, 0, self.interval_ns, self.start_ns, self.warm_up_ns, self.lost, self.duration_ns)


def unpack_header(data: bytes, path: Path) -> SamplesHeader:
    """The header in the first bytes of `path`. Raises RecordError, one line."""
    if not data.startswith(MAGIC[:7]):
        raise RecordError(f"{path} is not a file of rtgauge samples")
    if data[:8] != MAGIC:
        if len(data) < len(MAGIC):
            raise RecordError(f"{path} is cut short: its header has {len(data)} of {HEADER.size} bytes")
        raise RecordError(f"{path} has samples in format {data[7]}, known is {MAGIC[7]}: update rtgauge")
    if len(data) < HEADER.size:
        raise RecordError(f"{path} is cut short: its header has {len(data)} of {HEADER.size} bytes")
    _, length, series, cpu, flags, interval, start, warm_up, lost, duration = HEADER.unpack(data)
    if length != HEADER.size or flags != 0 or cpu < -1:
        raise RecordError(f"{path} is damaged: its header says length {length}, flags {flags}, CPU {cpu}")
    if interval <= 0 or min(start, warm_up, lost, duration) < 0 or start + warm_up + duration > MAX_TIME_NS:
        raise RecordError(f"{path} is damaged: its header says interval {interval} ns, start {start}, warm-up {warm_up}, lost {lost}, duration {duration}")
    return SamplesHeader(series, None if cpu == -1 else cpu, interval, start, warm_up, lost, duration)


def read_header(path: Path) -> SamplesHeader:
    """The header of the file `path`. Raises RecordError for a foreign, damaged or truncated file."""
    try:
        with path.open("rb") as file:
            header = unpack_header(file.read(HEADER.size), path)
            body = path.stat().st_size - HEADER.size
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}") from None
    if body % SAMPLE.itemsize:
        raise RecordError(f"{path} is cut short: its last sample has {body % SAMPLE.itemsize} of {SAMPLE.itemsize} bytes")
    return header


def chunks(path: Path, size: int = CHUNK) -> Iterator[npt.NDArray[np.int64]]:
    """The samples (ns) in pieces of at most `size`. Each piece is the same memory again: use it before asking for the next.

    Raises RecordError.
    """
    read_header(path)
    buffer = np.empty(size, dtype=SAMPLE)
    memory = memoryview(buffer.data).cast("B")
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(HEADER.size)
            while True:
                got = 0
                while got < len(memory):  # a read may be cut short by a signal
                    n = file.readinto(memory[got:])
                    if not n:
                        break
                    got += n
                if got % SAMPLE.itemsize:
                    raise RecordError(f"{path} is cut short: its last sample has {got % SAMPLE.itemsize} of {SAMPLE.itemsize} bytes")
                if got == 0:
                    return
                yield buffer[: got // SAMPLE.itemsize]
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}") from None


def read_samples(path: Path) -> tuple[SamplesHeader, npt.NDArray[np.int64]]:
    """The whole of a small file: header and samples (ns), warm-up included. Raises RecordError."""
    header = read_header(path)
    pieces = [piece.copy() for piece in chunks(path)]
    return header, np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)


def write_samples(path: Path, header: SamplesHeader, samples: npt.ArrayLike) -> None:
    """Write a samples file (the engine writes its own; this is for imports and tests). Raises OSError."""
    with path.open("wb") as file:
        file.write(header.pack())
        file.write(np.asarray(samples, dtype=SAMPLE).tobytes())
