# SPDX-License-Identifier: MIT
"""Encodes and decodes the frames on the instrument's serial line (docs/formats/instrument.md)."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtgauge.errors import MeasureError

HEADER = struct.Struct("<BBH")
CRC = struct.Struct("<I")
# The instrument sends no longer frames than this.
MAX_ENCODED = 255


@dataclass(frozen=True)
class InstrumentFrame:
    """A frame. `token`: the token of the command that it answers, 0 if unsolicited. `sequence`: counts mod
    2^16.
    """

    kind: int
    token: int
    sequence: int
    body: bytes


def cobs_encode(raw: bytes) -> bytes:
    """Encode bytes without zeros (Cheshire and Baker, Consistent Overhead Byte Stuffing, 1997).

    It accepts up to 254 bytes, the maximum size of a frame.
    """
    if len(raw) > 254:
        raise ValueError("a frame can have at most 254 bytes")
    return b"".join(bytes([len(part) + 1]) + part for part in raw.split(b"\0"))


def cobs_decode(encoded: bytes) -> bytes | None:
    """Invert `cobs_encode`; None if the bytes are invalid."""
    parts: list[bytes] = []
    at = 0
    while at < len(encoded):
        distance = encoded[at]
        part = encoded[at + 1 : at + distance]
        if distance == 0 or len(part) != distance - 1 or 0 in part:
            return None
        parts.append(part)
        at += distance
    return b"\0".join(parts)


def encode(frame: InstrumentFrame) -> bytes:
    """Encode a frame for the line, including the final zero."""
    raw = HEADER.pack(frame.kind, frame.token, frame.sequence) + frame.body
    return cobs_encode(raw + CRC.pack(zlib.crc32(raw))) + b"\0"


def decode(encoded: bytes) -> InstrumentFrame | None:
    """Decode a frame without the final zero. Return None if it is damaged."""
    raw = cobs_decode(encoded)
    if raw is None or len(raw) < HEADER.size + CRC.size:
        return None
    content, checksum = raw[: -CRC.size], raw[-CRC.size :]
    if CRC.unpack(checksum)[0] != zlib.crc32(content):
        return None
    kind, token, sequence = HEADER.unpack_from(content)
    return InstrumentFrame(kind, token, sequence, content[HEADER.size :])


class FrameParser:
    """Splits incoming bytes into frames. It accepts any bytes, and holds at most the bytes of one frame.

    `damaged`: the number of stretches between two zeros that were not a frame. `missing`: the number of lost
    frames, from the gaps in the sequence numbers (mod 2^16).
    """

    def __init__(self) -> None:
        self.damaged = 0
        self.missing = 0
        self._partial = bytearray()
        self._overlong = False
        self._next_sequence: int | None = None

    def feed(self, data: bytes) -> list[InstrumentFrame]:
        """Return the frames that these bytes complete, in order."""
        frames: list[InstrumentFrame] = []
        *ends, rest = data.split(b"\0")
        for part in ends:
            self._append(part)
            frame = None if self._overlong else decode(bytes(self._partial))
            if frame is not None:
                self._count(frame)
                frames.append(frame)
            elif self._partial or self._overlong:
                self.damaged += 1
            self._partial.clear()
            self._overlong = False
        self._append(rest)
        return frames

    def _append(self, part: bytes) -> None:
        if self._overlong or len(self._partial) + len(part) > MAX_ENCODED:
            self._overlong = True
            self._partial.clear()
        else:
            self._partial += part

    def _count(self, frame: InstrumentFrame) -> None:
        if self._next_sequence is not None:
            self.missing += (frame.sequence - self._next_sequence) % 2**16
        self._next_sequence = (frame.sequence + 1) % 2**16


PROTOCOL_VERSION = 1

IDENTIFY, CONFIGURE, START, STOP, DUMP, GET_STATE, BOOTLOADER = range(1, 8)
ANSWER = 0x80
STATE = ANSWER | GET_STATE
SUMMARY, BINS, OUTLIERS = 0x90, 0x91, 0x92
EVENTS = 0xA0
REFUSED = 0xFF

STREAM_EVENTS = 1
LOOPBACK_INSIDE = 2


class Mode(IntEnum):
    """The instrument's mode."""

    RESPONSE = 1
    PERIODIC = 2
    LOOPBACK = 3


class Edges(IntEnum):
    """The edges that are stimuli; in PERIODIC, the edges whose distance from the previous one is measured."""

    BOTH = 0
    RISING = 1
    FALLING = 2


class AnswerEdges(IntEnum):
    """The edges that answer a stimulus: edges to the same level, or any edge."""

    FOLLOWS = 0
    ANY_EDGE = 1


class Timing(IntEnum):
    """The timing of the next stimulus: on a grid, or randomly after the answer."""

    FIXED = 0
    RANDOM = 1


class Pull(IntEnum):
    """The resistor at the instrument's answer line."""

    NONE = 0
    UP = 1
    DOWN = 2


_CONFIGURATION = struct.Struct("<8B4IQI")
MAX_TICKS = 2**31 - 1


@dataclass(frozen=True)
class InstrumentConfiguration:
    """The configuration of a measurement. Times are in ns, and pins are the board's GP numbers.

    RESPONSE and LOOPBACK: `period_min_ns` and `period_max_ns` bound the random time from an answer to the
    next stimulus; with `timing` FIXED, `period_min_ns` is the period. `limit_ns`: the time after which a
    stimulus without an answer is missed; it is shorter than a fixed period. PERIODIC: `nominal_ns`: the
    expected distance of two edges. `count`: the stimuli or distances to measure; 0 means until stopped.
    """

    mode: Mode
    edges: Edges = Edges.BOTH
    answer: AnswerEdges = AnswerEdges.FOLLOWS
    timing: Timing = Timing.RANDOM
    stimulus_pin: int = 2
    answer_pin: int = 3
    pull: Pull = Pull.NONE
    period_min_ns: int = 3_000
    period_max_ns: int = 7_071_000
    limit_ns: int = 100_000_000
    nominal_ns: int = 0
    count: int = 0
    seed: int = 1
    stream_events: bool = True
    loopback_inside: bool = False

    def encode(self, ticks_per_second: int) -> bytes:
        """Encode the body of CONFIGURE. Raises MeasureError if a number is too large."""

        def ticks(time_ns: int, what: str) -> int:
            value = time_ns * ticks_per_second // 10**9
            if not 0 <= value <= MAX_TICKS:
                most_ns = MAX_TICKS * 10**9 // ticks_per_second
                raise MeasureError(
                    f"{what} of {time_ns} ns is outside the instrument's range, 0 to {most_ns} ns"
                )
            return value

        flags = (STREAM_EVENTS if self.stream_events else 0) | (
            LOOPBACK_INSIDE if self.loopback_inside else 0
        )
        try:
            return _CONFIGURATION.pack(
                self.mode,
                self.edges,
                self.answer,
                self.timing,
                flags,
                self.stimulus_pin,
                self.answer_pin,
                self.pull,
                ticks(self.period_min_ns, "the shortest period"),
                ticks(self.period_max_ns, "the longest period"),
                ticks(self.limit_ns, "the limit"),
                ticks(self.nominal_ns, "the nominal time"),
                self.count,
                self.seed % 2**32,
            )
        except struct.error as error:
            raise MeasureError(f"the instrument cannot hold this configuration: {error}") from error


@dataclass(frozen=True)
class InstrumentIdentity:
    """The instrument's identity: a text with the firmware version, and the flash chip's unique id in hex."""

    protocol: int
    ticks_per_second: int
    unique_id: str
    text: str

    @property
    def tick_ns(self) -> float:
        """The length of a tick in ns."""
        return 1e9 / self.ticks_per_second

    @classmethod
    def decode(cls, body: bytes) -> InstrumentIdentity:
        """Decode an identity. Raises MeasureError if the instrument is unknown."""
        if len(body) < 16:
            raise MeasureError(
                "the device at this port is not an rtgauge instrument; list the instruments with: rtgauge "
                "instrument list"
            )
        protocol, size, ticks_per_second = struct.unpack_from("<HHI", body)
        if protocol != PROTOCOL_VERSION or size != _CONFIGURATION.size or ticks_per_second == 0:
            spoken = f"the instrument uses protocol {protocol}, but this rtgauge uses {PROTOCOL_VERSION}"
            raise MeasureError(f"{spoken}: install firmware of this version")
        return cls(protocol, ticks_per_second, body[8:16].hex().upper(), body[16:].decode("ascii", "replace"))


class RunState(IntEnum):
    """The instrument's present activity."""

    IDLE = 0
    RUNNING = 1
    FINISHED = 2


_STATE = struct.Struct("<BBH11QII")


@dataclass(frozen=True)
class InstrumentState:
    """The counters since the start. `now` is in ticks.

    `late`: answers after the limit (their stimuli are in `missed`). `extra`: edges of the answer line that
    answer no stimulus. `glitches`: edges of pulses so short that one of the two state machines did not see
    them. If a ring buffer of the instrument was full: `edges_lost` (a lower bound), `voided` (stimuli pending
    at that time) and `capture_restarts`. `events_dropped`: edges that were counted but not streamed, because
    the host did not read.
    """

    run: RunState
    mode: int
    now: int
    stimuli: int
    answers: int
    missed: int
    late: int
    extra: int
    edges: int
    glitches: int
    voided: int
    edges_lost: int
    events_dropped: int
    capture_restarts: int
    frames_damaged: int

    @classmethod
    def decode(cls, body: bytes) -> InstrumentState:
        """Decode counters. Raises MeasureError if the body is damaged."""
        if len(body) != _STATE.size:
            raise MeasureError(
                "the instrument sent a state of the wrong length, so its firmware does not fit this "
                "rtgauge; install firmware of this version"
            )
        run, mode, _, *counters = _STATE.unpack(body)
        if run not in set(RunState):
            raise MeasureError(
                f"the instrument is in state {run}, which this rtgauge does not know; install firmware of "
                "this version"
            )
        return cls(RunState(run), mode, *counters)


@dataclass(frozen=True)
class Events:
    """A block of edges in order of time.

    The arrays have equal length: `ticks` (uint64, since the start), `answer_line`, `high`, `single`,
    `accepted`. `single`: whether only one state machine saw the edge. `accepted`: whether it answers the
    stimulus before it. `missing`: the number of events dropped since the previous block.
    """

    ticks: NDArray[np.uint64]
    answer_line: NDArray[np.bool_]
    high: NDArray[np.bool_]
    single: NDArray[np.bool_]
    accepted: NDArray[np.bool_]
    missing: int = 0

    def __len__(self) -> int:
        return len(self.ticks)


class DecodedEvents(NamedTuple):
    """The events of a frame, and the index (mod 2^32) of the next event."""

    events: Events
    next_index: int


def decode_events(body: bytes, expected_index: int) -> DecodedEvents:
    """Decode the events of a frame. Raises MeasureError if the frame is damaged.

    `expected_index`: the index (mod 2^32) of the frame's first event if no event was dropped.
    """
    if len(body) < 12 or (len(body) - 12) % 4:
        raise MeasureError(
            "the instrument sent a frame of events with an impossible length; install firmware of this "
            "version"
        )
    first, base = struct.unpack_from("<IQ", body)
    words = np.frombuffer(body, dtype="<u4", offset=12)
    ticks = np.cumsum(words >> 4, dtype=np.uint64) + np.uint64(base)
    events = Events(
        ticks=ticks,
        answer_line=(words & 1) != 0,
        high=(words & 2) != 0,
        single=(words & 4) != 0,
        accepted=(words & 8) != 0,
        missing=(first - expected_index) % 2**32,
    )
    return DecodedEvents(events, (first + len(words)) % 2**32)


@dataclass(frozen=True)
class InstrumentOutlier:
    """One of the largest values: `value` and `time` in ticks, and its index among all values, from 0."""

    value: int
    time: int
    index: int


_SUMMARY = struct.Struct("<QqqqQQ")
_OUTLIER = struct.Struct("<qQQ")
_BIN = np.dtype([("bin", "<u2"), ("count", "<u8")])


@dataclass
class InstrumentHistogram:
    """All measured values, in ticks: latencies or, in PERIODIC, deviations from the nominal distance.

    `bins` maps the index of a bin to its count; a value below 0 has the index `~index`. `minimum` and
    `maximum` are None if nothing was measured.
    """

    count: int = 0
    minimum: int | None = None
    maximum: int | None = None
    total: int = 0
    squares: int = 0
    bins: dict[int, int] = field(default_factory=dict[int, int])
    outliers: list[InstrumentOutlier] = field(default_factory=list[InstrumentOutlier])

    @property
    def mean(self) -> float | None:
        """The mean in ticks."""
        return self.total / self.count if self.count else None

    @property
    def standard_deviation(self) -> float | None:
        """The sample standard deviation in ticks, from exact sums."""
        if self.count < 2:
            return None
        return ((self.squares * self.count - self.total**2) / (self.count * (self.count - 1))) ** 0.5

    def take(self, kind: int, body: bytes) -> None:
        """Add a frame of a dump. Raises MeasureError if the frame is damaged."""
        if kind == SUMMARY and len(body) == _SUMMARY.size:
            self.count, minimum, maximum, self.total, low, high = _SUMMARY.unpack(body)
            self.squares = low + (high << 64)
            if self.count:
                self.minimum, self.maximum = minimum, maximum
        elif kind == BINS and len(body) % _BIN.itemsize == 0:
            for index, count in np.frombuffer(body, dtype=_BIN).tolist():
                self.bins[~(index & 0x7FFF) if index & 0x8000 else index] = count
        elif kind == OUTLIERS and len(body) % _OUTLIER.size == 0:
            self.outliers += [InstrumentOutlier(*fields) for fields in _OUTLIER.iter_unpack(body)]
        else:
            raise MeasureError(
                "the instrument sent a part of its histogram with an impossible length; install firmware of "
                "this version"
            )
