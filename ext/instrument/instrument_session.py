# SPDX-License-Identifier: MIT
"""Talks to the instrument: configures, starts and stops it, and reads its events and histogram."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, Self

from rtgauge.errors import MeasureError
from rtgauge_ext.instrument import messages
from rtgauge_ext.instrument.clock import ClockComparison
from rtgauge_ext.instrument.link import SerialLink, resolve
from rtgauge_ext.instrument.messages import (
    Events,
    FrameParser,
    InstrumentConfiguration,
    InstrumentFrame,
    InstrumentHistogram,
    InstrumentIdentity,
    InstrumentState,
    Mode,
    RunState,
    decode_events,
    encode,
)

TICKS_PER_SECOND = 125_000_000
"""The rate to assume until the instrument reports its own."""
ANSWER_TIMEOUT_S = 10.0
DUMP_S = 60.0
"""The time limit for all parts of an answer. The largest histogram takes less than a second."""
# A running instrument sends its state ten times a second.
SILENCE_S = 10.0


class Transport(Protocol):
    """The serial line that a session needs; `SerialLink` implements it."""

    def read(self, timeout_s: float) -> bytes: ...  # noqa: D102
    def write(self, data: bytes) -> None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


class Session:
    """An instrument in exclusive use. Leaving the `with` block stops it and closes the port.

    `identity` identifies the instrument. `clock` compares its clock with the host's while it runs. Every
    method raises MeasureError with the reason if the instrument is gone, does not answer, or refuses.
    """

    def __init__(self, link: Transport, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        self._link = link
        self._parser = FrameParser()
        self._timeout_s = answer_timeout_s
        self._token = 0
        self._sequence = 0
        self._next_event = 0
        self._arrived: deque[Events | InstrumentState] = deque()
        self._pending: deque[InstrumentFrame] = deque()
        self.state: InstrumentState | None = None
        self.clock = ClockComparison(TICKS_PER_SECOND)
        # An earlier host may have left a run that keeps sending until it is stopped.
        self._command(messages.STOP, fresh=True)
        self.identity = InstrumentIdentity.decode(self._command(messages.IDENTIFY).body)
        self.clock = ClockComparison(self.identity.ticks_per_second)

    @classmethod
    def open(cls, address: str, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> Session:
        """Open `serial:PATH` or `serial:ID`. Raises InputError if there is no such instrument."""
        link = SerialLink(resolve(address))
        try:
            return cls(link, answer_timeout_s)
        except BaseException:
            link.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the instrument, if it still answers, and close the port."""
        try:
            if self.state is not None and self.state.run is RunState.RUNNING:
                self.stop()
        except MeasureError:
            pass
        finally:
            self._link.close()

    @property
    def frames_damaged(self) -> int:
        """The number of stretches of bytes that were not valid frames."""
        return self._parser.damaged

    @property
    def frames_missing(self) -> int:
        """The number of frames that the instrument sent but that did not arrive."""
        return self._parser.missing

    def configure(self, configuration: InstrumentConfiguration) -> None:
        """Set the configuration of the next `start`."""
        self._command(messages.CONFIGURE, configuration.encode(self.identity.ticks_per_second))

    def start(self) -> None:
        """Start measuring. Counters, histogram and time restart, and `arrivals` yields events and states."""
        self._command(messages.START, fresh=True)
        self.current_state()

    def arrivals(self, seconds: float | None = None) -> Iterator[Events | InstrumentState]:
        """Yield events and states as they arrive, until the instrument finishes or `seconds` have passed.

        Events and states that arrive during a command are kept.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        heard = time.monotonic()
        while True:
            while self._arrived:
                arrival = self._arrived.popleft()
                yield arrival
            if not self._pending and self.state is not None and self.state.run is not RunState.RUNNING:
                return
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                return
            if self._pump(0.1 if deadline is None else min(0.1, deadline - now)):
                heard = now
            elif now - heard > max(SILENCE_S, self._timeout_s):
                raise MeasureError(
                    f"the instrument has sent nothing for {now - heard:.0f} s; check its cable, then try "
                    f"again"
                )

    def stop(self) -> InstrumentState:
        """Stop measuring. `arrivals` has the last events; the histogram remains available."""
        self._command(messages.STOP)
        return self.current_state()

    def current_state(self) -> InstrumentState:
        """Request the current counters."""
        state = InstrumentState.decode(self._command(messages.GET_STATE).body)
        self.state = state
        return state

    def histogram(self) -> InstrumentHistogram:
        """Request all values measured since the last start, even while the instrument runs."""
        histogram = InstrumentHistogram()
        self._command(messages.DUMP, parts=histogram)
        return histogram

    def bootloader(self) -> None:
        """Restart into the boot ROM, a drive for UF2 files. There is no answer, and the session is over."""
        self._send(messages.BOOTLOADER, b"")
        self._link.close()

    def _send(self, kind: int, body: bytes) -> int:
        self._token = self._token % 255 + 1
        # A leading zero separates this frame from bytes that another program left on the line.
        self._link.write(b"\0" + encode(InstrumentFrame(kind, self._token, self._sequence, body)))
        self._sequence = (self._sequence + 1) % 2**16
        return self._token

    def _command(
        self, kind: int, body: bytes = b"", *, parts: InstrumentHistogram | None = None, fresh: bool = False
    ) -> InstrumentFrame:
        """Send a command and return its answer.

        `fresh`: whether events and states before the answer belong to an old run.
        """
        token = self._send(kind, body)
        deadline = time.monotonic() + self._timeout_s
        last = time.monotonic() + DUMP_S
        while (left_s := deadline - time.monotonic()) > 0:
            self._pending.extend(self._parser.feed(self._link.read(left_s)))
            while self._pending:
                frame = self._pending.popleft()
                if frame.token != token:
                    self._take(frame)
                elif frame.kind == messages.REFUSED:
                    raise MeasureError(
                        f"the instrument refused the command: {frame.body.decode('ascii', 'replace')}"
                    )
                elif frame.kind == messages.ANSWER | kind:
                    if fresh:
                        self._begin()
                    return frame
                elif parts is not None:
                    parts.take(frame.kind, frame.body)
                    deadline = min(time.monotonic() + self._timeout_s, last)
        raise MeasureError(
            "the instrument does not answer; unplug it and plug it in again, or install its firmware again"
        )

    def _begin(self) -> None:
        self._arrived.clear()
        self._next_event = 0
        self.state = None
        if hasattr(self, "identity"):
            self.clock = ClockComparison(self.identity.ticks_per_second)

    def _pump(self, timeout_s: float) -> bool:
        """Process bytes left from the last answer, or else read more.

        Return whether there were any.
        """
        if not self._pending:
            self._pending.extend(self._parser.feed(self._link.read(timeout_s)))
        heard = bool(self._pending)
        while self._pending:
            self._take(self._pending.popleft())
        return heard

    def _take(self, frame: InstrumentFrame) -> None:
        if frame.token != 0:
            return
        if frame.kind == messages.EVENTS:
            events, self._next_event = decode_events(frame.body, self._next_event)
            self._arrived.append(events)
        elif frame.kind == messages.STATE:
            state = InstrumentState.decode(frame.body)
            self.state = state
            if state.run is RunState.RUNNING:
                self.clock.add(state.now, time.monotonic_ns())
            self._arrived.append(state)


COUNT = 10_000


@dataclass(frozen=True)
class Loopback:
    """The result of the self-test. `resolution_ns`: the length of a tick.

    `offset_ns`: the smallest and largest latency over the loop; None if no stimulus came back (no wire).
    """

    resolution_ns: float
    offset_ns: tuple[float, float] | None
    state: InstrumentState
    histogram: InstrumentHistogram


def self_test(session: Session, *, inside: bool, count: int = COUNT) -> Loopback:
    """Send `count` stimuli, 20 to 40 us apart, each due back within 10 us. This takes a second.

    `inside`: read the answers from the stimulus pin, instead of over a wire to the answer pin. Raises
    MeasureError if edges were lost.
    """
    session.configure(
        InstrumentConfiguration(
            Mode.LOOPBACK,
            period_min_ns=20_000,
            period_max_ns=40_000,
            limit_ns=10_000,
            count=count,
            stream_events=False,
            loopback_inside=inside,
        )
    )
    session.start()
    for _ in session.arrivals():
        pass
    state = session.current_state()
    if state.run is not RunState.FINISHED or state.edges_lost or state.voided:
        lost = f"{state.edges_lost} at {state.stimuli} stimuli"
        raise MeasureError(
            f"the instrument missed some of the edges that it made ({lost}); try again, or install its "
            "firmware again"
        )
    histogram = session.histogram()
    tick_ns = session.identity.tick_ns
    offset = None
    if histogram.minimum is not None and histogram.maximum is not None:
        offset = (histogram.minimum * tick_ns, histogram.maximum * tick_ns)
    return Loopback(tick_ns, offset, state, histogram)
