# SPDX-License-Identifier: MIT
"""Speaks the protocol of EVL's latmus to a latency monitor (latmon), as the machine under test.

The protocol uses TCP port 2306 and big-endian numbers of 32 bits. The client asks for a period (us, 1 to
1000000) and a number of cells (0 to 1000). About once a second the monitor sends a bulk: sum (high and low
word, ns), minimum and maximum (ns), overruns, samples. A second request, with period 0, ends the measurement.
Then come bulks that were under way, a bulk without samples, and the cells of 1 us with the counts since the
request. These facts are from the headers and sources of libevl (latmus) and of Zephyr
(subsys/net/lib/latmon). A latency beyond the last cell counts in this cell, and a latency longer than the
period adds overruns. Zephyr's latmon drops the first second.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from rtgauge.errors import InputError, MeasureError
from rtgauge_ext.signal.instrument_address import latmon_address

MAX_PERIOD_US = 1_000_000
MAX_CELLS = 1_000
REQUEST = struct.Struct(">II")
BULK = struct.Struct(">6I")
CONNECT_TIMEOUT_S = 5.0
# A bulk comes every second, but less often while the monitor warms up.
SILENCE_S = 5.0
MOST_AT_ONCE, MOST_A_SECOND = 100, 10
"""How many bulks a latmon may send at once and per second: normally one, and some that it held back."""


@dataclass(frozen=True)
class Bulk:
    """The samples of about one second. Times are in ns, and `samples` is above 0."""

    sum_ns: int
    min_ns: int
    max_ns: int
    overruns: int
    samples: int


@dataclass(frozen=True)
class Cells:
    """The counts of latencies of 0 to 1 us, 1 to 2 us, and so on.

    `clipped`: whether the last cell, which also counts all longer latencies, is not empty.
    """

    counts: list[int] = field(default_factory=list[int])

    @property
    def clipped(self) -> bool:
        """Whether the last cell may hold latencies beyond its bounds."""
        return bool(self.counts) and self.counts[-1] > 0


class LastWords(NamedTuple):
    """The bulks that were under way when a latmon was stopped, and the cells with all counts."""

    bulks: list[Bulk]
    cells: Cells


class LatmonSession:
    """A running latmon. Its methods raise MeasureError if the latmon is gone or sends impossible values."""

    def __init__(
        self, connection: socket.socket, period_us: int, cells: int, silence_s: float = SILENCE_S
    ) -> None:
        """Request a period and a number of cells of 1 us. `silence_s`: how long the latmon may send nothing.

        Raises InputError if a latmon would not accept the numbers.
        """
        if not 1 <= period_us <= MAX_PERIOD_US:
            raise InputError(f"a latmon accepts periods of 1 us to 1 s, not {period_us} us")
        if not 0 <= cells <= MAX_CELLS:
            raise InputError(f"a latmon has at most {MAX_CELLS} bins of 1 us, not {cells}")
        self._connection = connection
        self._cells = cells
        self._stopped = False
        self._bulks = 0
        self._silence_s = silence_s
        self._began_s = time.monotonic()
        connection.settimeout(silence_s)
        self._send(REQUEST.pack(period_us, cells))

    @classmethod
    def open(
        cls, address: str, period_us: int, cells: int = MAX_CELLS, silence_s: float = SILENCE_S
    ) -> LatmonSession:
        """Connect to `latmon:HOST[:PORT]` and start the latmon."""
        host, port = latmon_address(address)
        try:
            connection = socket.create_connection((host, port), CONNECT_TIMEOUT_S)
        except OSError as error:
            reason = error.strerror or error
            raise MeasureError(f"cannot reach a latmon at {host}, port {port}: {reason}") from error
        try:
            return cls(connection, period_us, cells, silence_s)
        except BaseException:
            connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def bulks(self) -> Iterator[Bulk]:
        """Yield about one bulk per second, until the monitor ends by itself (too many overruns)."""
        while (bulk := self._bulk()) is not None:
            yield bulk

    def stop(self) -> LastWords:
        """Stop the monitor and read its remaining messages."""
        bulks: list[Bulk] = []
        if not self._stopped:
            self._send(REQUEST.pack(0, 0))
            bulks += self.bulks()
        counts = struct.unpack(f">{self._cells}I", self._receive(4 * self._cells))
        return LastWords(bulks, Cells(list(counts)))

    def _bulk(self) -> Bulk | None:
        high, low, minimum, maximum, overruns, samples = BULK.unpack(self._receive(BULK.size))
        if samples == 0:
            self._stopped = True
            return None
        self._bulks += 1
        if self._bulks > MOST_AT_ONCE + MOST_A_SECOND * (time.monotonic() - self._began_s):
            raise MeasureError(
                f"the device sends {MOST_A_SECOND} or more status messages per second, so it is not a latmon"
            )
        bulk = Bulk((high << 32) | low, minimum, maximum, overruns, samples)
        if not minimum <= maximum or not samples * minimum <= bulk.sum_ns <= samples * maximum:
            raise MeasureError(f"the latmon sent numbers that contradict each other: {bulk}")
        return bulk

    def _send(self, data: bytes) -> None:
        try:
            self._connection.sendall(data)
        except OSError as error:
            raise MeasureError(
                f"the connection to the latmon broke ({error.strerror or error}); check the network, then "
                "measure again"
            ) from error

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        deadline = time.monotonic() + self._silence_s
        while len(data) < size:
            try:
                self._connection.settimeout(max(deadline - time.monotonic(), 1e-3))
                part = self._connection.recv(size - len(data))
            except TimeoutError as error:
                raise MeasureError(
                    "the latmon has stopped sending; check that the measured machine answers its pulses, "
                    "and that the board is connected"
                ) from error
            except OSError as error:
                reason = error.strerror or error
                raise MeasureError(
                    f"the connection to the latmon broke ({reason}); check the network, then measure again"
                ) from error
            if not part:
                raise MeasureError("the latmon closed the connection; restart it, then measure again")
            data += part
        return bytes(data)
