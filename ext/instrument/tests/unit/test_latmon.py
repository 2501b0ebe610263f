# SPDX-License-Identifier: MIT
from __future__ import annotations

import itertools
import socket
import struct
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ext.instrument.tests.latmon_stand_in import latmon
from rtgauge.errors import InputError, MeasureError
from rtgauge_ext.instrument.latmon import LatmonSession
from rtgauge_ext.signal.instrument_address import latmon_address

SECONDS = [[1_500, 2_700, 999], [40_000, 1_000], [5_000_000_000 // 2, 3_000]]


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_bulks_then_cells(piece):
    with (
        latmon(SECONDS, piece=piece) as (address, requests),
        LatmonSession.open(address, 1_000, 20) as session,
    ):
        bulks = list(itertools.islice(session.bulks(), 2))
        last, cells = session.stop()
    assert requests == [(1_000, 20), (0, 0)]
    assert [
        (bulk.sum_ns, bulk.min_ns, bulk.max_ns, bulk.samples, bulk.overruns) for bulk in [*bulks, *last]
    ] == [
        (5_199, 999, 2_700, 3, 0),
        (41_000, 1_000, 40_000, 2, 0),
        (2_500_003_000, 3_000, 2_500_000_000, 2, 2_499),
    ]
    assert cells.counts == [1, 2, 1, 1, *[0] * 15, 2]
    assert cells.clipped


def test_a_sum_beyond_32_bits_and_no_cells():
    with latmon([[4_000_000_000] * 5]) as (address, _), LatmonSession.open(address, 1_000_000, 0) as session:
        (bulk,), cells = session.stop()
    assert bulk.sum_ns == 20_000_000_000
    assert cells.counts == []
    assert not cells.clipped


def test_nothing_in_the_last_cell_is_not_clipped():
    with latmon([[1_500]]) as (address, _), LatmonSession.open(address, 1_000, 100) as session:
        assert not session.stop()[1].clipped


@pytest.mark.parametrize(("period_us", "cells"), [(0, 10), (1_000_001, 10), (1, -1), (1, 1_001)])
def test_numbers_that_no_latmon_takes(period_us, cells):
    here, there = socket.socketpair()
    with here, there, pytest.raises(InputError):
        LatmonSession(here, period_us, cells)


def test_addresses():
    assert latmon_address("latmon:board") == ("board", 2306)
    assert latmon_address("latmon:10.0.0.7:99") == ("10.0.0.7", 99)
    assert latmon_address("latmon:[fe80::1]:99") == ("fe80::1", 99)
    assert latmon_address("latmon:fe80::1") == ("fe80::1", 2306)
    for wrong in ("latmon:", "latmon:a:b", "latmon:a:0", "latmon:a:65536", "latmon::5"):
        with pytest.raises(InputError, match="give one such as"):
            latmon_address(wrong)


def test_a_latmon_that_is_not_there_goes_away_or_is_silent():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        session = LatmonSession.open(f"latmon:127.0.0.1:{port}", 1_000, silence_s=0.05)
        with session, pytest.raises(MeasureError, match="stopped sending"):
            session.stop()
    with pytest.raises(MeasureError, match="cannot reach a latmon"):
        LatmonSession.open(f"latmon:127.0.0.1:{port}", 1_000)
    with (
        latmon([], raw=b"\0" * 10) as (address, _),
        LatmonSession.open(address, 1_000) as session,
        pytest.raises(MeasureError, match=r"closed|broke"),
    ):
        session.stop()


def test_bulks_without_end_after_the_stop():
    """They were kept: 108 MiB in 12 s."""
    here, there = socket.socketpair()
    with here, there:
        session = LatmonSession(here, 1_000, 10)
        there.sendall(struct.pack(">6I", 0, 1_000, 1_000, 1_000, 0, 1) * 500)
        with pytest.raises(MeasureError, match="it is not a latmon"):
            session.stop()


def test_a_bulk_that_comes_byte_by_byte_is_not_waited_for():
    here, there = socket.socketpair()
    with here, there:
        session = LatmonSession(here, 1_000, 10, silence_s=0.3)
        thread = threading.Thread(
            target=lambda: [(there.send(b"\0"), time.sleep(0.1)) for _ in range(20)], daemon=True
        )
        thread.start()
        with pytest.raises(MeasureError, match="stopped sending"):
            next(session.bulks())
        thread.join()


def test_numbers_that_contradict_each_other():
    raw = struct.pack(">6I", 0, 10, 50, 40, 0, 1)
    with (
        latmon([], raw=raw) as (address, _),
        LatmonSession.open(address, 1_000) as session,
        pytest.raises(MeasureError, match="contradict"),
    ):
        list(session.bulks())


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_make_anything_but_numbers_or_a_measure_error(raw):
    here, there = socket.socketpair()
    with here, there:
        session = LatmonSession(here, 1_000, 3)
        there.sendall(raw)
        there.shutdown(socket.SHUT_WR)
        try:
            for bulk in session.bulks():
                assert bulk.samples > 0
            session.stop()
        except MeasureError as error:
            assert str(error)
