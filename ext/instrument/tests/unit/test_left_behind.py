# SPDX-License-Identifier: MIT
"""An instrument that goes on measuring for a host that was killed."""

from __future__ import annotations

import struct

from rtgauge_ext.instrument import messages
from rtgauge_ext.instrument.instrument_session import Session
from rtgauge_ext.instrument.messages import FrameParser, InstrumentFrame, RunState, encode


class LeftBehind:
    """Says how it is before each answer, as it does ten times a second."""

    def __init__(self) -> None:
        self._parser = FrameParser()
        self._waiting = b""

    def write(self, data: bytes) -> None:
        state = struct.pack("<BBH11QII", RunState.RUNNING, 1, 0, *range(1, 12), 0, 0)
        identity = (
            struct.pack("<HHI8s", messages.PROTOCOL_VERSION, 36, 125_000_000, bytes(range(8)))
            + b"rtgauge instrument"
        )
        for frame in self._parser.feed(data):
            self._waiting += encode(InstrumentFrame(messages.STATE, 0, 0, state))
            body = identity if frame.kind == messages.IDENTIFY else b""
            self._waiting += encode(InstrumentFrame(messages.ANSWER | frame.kind, frame.token, 1, body))

    def read(self, timeout_s: float) -> bytes:
        data, self._waiting = self._waiting, b""
        return data

    def close(self) -> None:
        pass


def test_what_it_says_before_it_is_stopped_is_passed_over():
    session = Session(LeftBehind())
    assert session.identity.text == "rtgauge instrument"
    assert session.clock.drift() is None
