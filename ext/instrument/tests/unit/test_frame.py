# SPDX-License-Identifier: MIT
from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.errors import MeasureError
from rtgauge_ext.instrument.messages import (
    BINS,
    EVENTS,
    OUTLIERS,
    SUMMARY,
    FrameParser,
    InstrumentConfiguration,
    InstrumentFrame,
    InstrumentHistogram,
    InstrumentIdentity,
    InstrumentState,
    Mode,
    cobs_decode,
    cobs_encode,
    decode,
    decode_events,
    encode,
)

FRAMES = st.builds(
    InstrumentFrame, st.integers(0, 255), st.integers(0, 255), st.integers(0, 65535), st.binary(max_size=246)
)


def test_a_frame_byte_by_byte():
    """Worked out by hand, with the CRC-32 of 01 02 03 00 as gzip writes it."""
    assert encode(InstrumentFrame(1, 2, 3, b"")).hex() == "04010203" + "05" + "d43f51b1" + "00"


@given(st.binary(max_size=254))
def test_cobs_has_no_zero_and_comes_back(raw):
    assert 0 not in cobs_encode(raw)
    assert cobs_decode(cobs_encode(raw)) == raw


@given(st.lists(FRAMES, max_size=8), st.integers(1, 64))
def test_frames_come_back_however_they_are_cut(frames, size):
    data = b"".join(encode(frame) for frame in frames)
    parser = FrameParser()
    got = [frame for at in range(0, len(data), size) for frame in parser.feed(data[at : at + size])]
    assert got == frames
    assert parser.damaged == 0


@given(st.lists(st.binary(max_size=600), max_size=6), FRAMES)
def test_after_any_bytes_the_next_frame_is_found(chunks, frame):
    parser = FrameParser()
    for chunk in chunks:
        parser.feed(chunk)
        assert len(parser._partial) <= 255
    assert parser.feed(b"\0" + encode(frame))[-1] == frame


@given(FRAMES, st.data())
def test_a_changed_byte_is_noticed(frame, data):
    encoded = bytearray(encode(frame)[:-1])
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at] ^= data.draw(st.integers(1, 255))
    assert decode(bytes(encoded)) is None


def test_missing_frames_are_counted_across_the_wrap():
    parser = FrameParser()
    for sequence in (65534, 65535, 1, 2, 5):
        parser.feed(encode(InstrumentFrame(0xA0, 0, sequence, b"")))
    assert parser.missing == 1 + 2


@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**60),
    st.lists(st.tuples(st.integers(0, 2**28 - 1), st.integers(0, 15)), min_size=1, max_size=56),
)
def test_events(first, base, deltas):
    body = struct.pack("<IQ", first, base) + b"".join(
        struct.pack("<I", delta << 4 | flags) for delta, flags in deltas
    )
    events, following = decode_events(body, (first - 3) % 2**32)
    assert events.missing == 3
    assert following == (first + len(deltas)) % 2**32
    expected = base
    for i, (delta, flags) in enumerate(deltas):
        expected += delta
        assert int(events.ticks[i]) == expected
        assert (events.answer_line[i], events.high[i], events.single[i], events.accepted[i]) == tuple(
            bool(flags & bit) for bit in (1, 2, 4, 8)
        )


@given(st.binary(max_size=250))
def test_no_body_makes_anything_but_a_message_or_a_measure_error(body):
    for read in (
        lambda: decode_events(body, 0),
        lambda: InstrumentIdentity.decode(body),
        lambda: InstrumentState.decode(body),
        *(
            lambda kind=kind: InstrumentHistogram().take(kind, body)
            for kind in (SUMMARY, BINS, OUTLIERS, EVENTS)
        ),
    ):
        try:
            read()
        except MeasureError as error:
            assert str(error)


def test_histogram_statistics_are_exact():
    values = np.asarray([3, -4, 10**9, 10**9 + 1])
    histogram = InstrumentHistogram()
    squares = sum(int(value) ** 2 for value in values)
    histogram.take(
        SUMMARY, struct.pack("<QqqqQQ", 4, -4, 10**9 + 1, int(values.sum()), squares % 2**64, squares >> 64)
    )
    assert histogram.mean == values.mean()
    assert histogram.standard_deviation == pytest.approx(values.std(ddof=1))
    assert (InstrumentHistogram().mean, InstrumentHistogram().standard_deviation) == (None, None)


def test_a_configuration_in_ticks():
    body = InstrumentConfiguration(Mode.PERIODIC, nominal_ns=15_000_000, count=7).encode(125_000_000)
    assert len(body) == 36
    assert struct.unpack_from("<IQI", body, 20) == (1_875_000, 7, 1)
    with pytest.raises(MeasureError, match="cannot hold this configuration"):
        InstrumentConfiguration(Mode.RESPONSE, stimulus_pin=300).encode(125_000_000)
