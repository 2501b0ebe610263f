# SPDX-License-Identifier: MIT
"""The host's session against the firmware in the emulated board, over a pty."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ext.instrument.tests.firmware.bridge import emulated_instrument
from rtgauge.errors import MeasureError
from rtgauge_ext.instrument.edges import Distances, ResponseFollower
from rtgauge_ext.instrument.instrument_session import Session, self_test
from rtgauge_ext.instrument.messages import (
    Edges,
    Events,
    InstrumentConfiguration,
    InstrumentState,
    Mode,
    RunState,
    Timing,
)

ANSWER_TIMEOUT_S = 60.0  # an emulated instrument on a busy machine


def _session(path: str) -> Session:
    return Session.open(f"serial:{path}", ANSWER_TIMEOUT_S)


def test_responses_from_the_instrument_to_arrays_in_ns():
    delays = [0, 1, 125, 1_000, 12_345]
    with emulated_instrument(delays=delays) as path, _session(path) as session:
        assert session.identity.unique_id == "E6605838831F2B27"
        assert session.identity.tick_ns == 8
        session.configure(
            InstrumentConfiguration(
                Mode.RESPONSE, period_min_ns=50_000, period_max_ns=200_000, limit_ns=5_000_000, count=500
            )
        )
        session.start()
        follower = ResponseFollower(session.identity.tick_ns, 5_000_000)
        arrivals = list(session.arrivals())
        responses = [follower.add(arrival) for arrival in arrivals if isinstance(arrival, Events)]
        response_ns = np.concatenate([block.response_ns for block in responses])
        expected_ns = [8 * delay for delay in itertools.islice(itertools.cycle(delays), 500)]
        assert response_ns.tolist() == expected_ns
        assert sum(len(block.missed_ns) for block in responses) == 0
        stimulus_ns = np.concatenate([block.stimulus_ns for block in responses])
        assert (np.diff(stimulus_ns) >= 50_000).all()
        last = arrivals[-1]
        assert isinstance(last, InstrumentState)
        assert (last.run, last.stimuli, last.answers, last.missed) == (RunState.FINISHED, 500, 500, 0)
        histogram = session.histogram()
        assert (histogram.count, histogram.minimum, histogram.maximum) == (500, 0, 12_345)
        assert histogram.mean is not None
        assert histogram.standard_deviation is not None
        assert histogram.mean * 8 == pytest.approx(np.mean(expected_ns))
        assert histogram.standard_deviation * 8 == pytest.approx(np.std(expected_ns, ddof=1))
        assert len(histogram.outliers) == 32
        assert (session.frames_damaged, session.frames_missing, follower.orphans) == (0, 0, 0)


def test_missed_stimuli_and_a_fixed_period():
    with emulated_instrument(delays=[500, 500, None, 500, 500, 500, 500]) as path, _session(path) as session:
        session.configure(
            InstrumentConfiguration(
                Mode.RESPONSE,
                edges=Edges.RISING,
                timing=Timing.FIXED,
                period_min_ns=1_000_000,
                period_max_ns=1_000_000,
                limit_ns=400_000,
                count=70,
            )
        )
        session.start()
        follower = ResponseFollower(session.identity.tick_ns, 400_000, Edges.RISING)
        blocks = [follower.add(arrival) for arrival in session.arrivals() if isinstance(arrival, Events)]
        state = session.current_state()
        blocks += (
            [follower.last_missed()] if state.missed > sum(len(block.missed_ns) for block in blocks) else []
        )
        assert sum(len(block.response_ns) for block in blocks) == state.answers
        assert sum(len(block.missed_ns) for block in blocks) == state.missed
        assert state.stimuli == 70
        assert state.answers + state.missed == 70
        assert state.missed > 0


def test_periodic_distances():
    distances = [125_000, 125_100, 124_900]
    with emulated_instrument(distances=distances) as path, _session(path) as session:
        session.configure(InstrumentConfiguration(Mode.PERIODIC, nominal_ns=1_000_000, count=90))
        session.start()
        follower = Distances()
        blocks = [
            follower.add(arrival.ticks.astype(np.int64), arrival.high).distances
            for arrival in session.arrivals()
            if isinstance(arrival, Events)
        ]
        assert sorted(np.concatenate(blocks)[:90].tolist()) == sorted(distances * 30)
        histogram = session.histogram()
        assert (histogram.count, histogram.minimum, histogram.maximum) == (90, -100, 100)


def test_the_instrument_measures_itself():
    with emulated_instrument(delays=[3]) as path, _session(path) as session:
        inside = self_test(session, inside=True, count=300)
        assert inside.resolution_ns == 8
        assert inside.offset_ns == (0, 0)
        assert self_test(session, inside=False, count=300).offset_ns == (24, 24)


def test_without_a_wire_there_is_no_offset():
    with emulated_instrument(delays=[None]) as path, _session(path) as session:
        result = self_test(session, inside=False, count=50)
        assert result.offset_ns is None
        assert result.state.missed == 50


def test_a_run_left_behind_is_stopped_by_the_next_session():
    with emulated_instrument(delays=[700]) as path:
        first = _session(path)
        first.configure(InstrumentConfiguration(Mode.RESPONSE))
        first.start()
        first._link.close()
        with _session(path) as session:
            assert session.current_state().run is RunState.IDLE
            session.configure(InstrumentConfiguration(Mode.RESPONSE, count=20, period_max_ns=100_000))
            session.start()
            blocks = [arrival for arrival in session.arrivals() if isinstance(arrival, Events)]
            assert sum(len(block) for block in blocks) == 40
            assert sum(block.missing for block in blocks) == 0


def test_what_the_instrument_refuses_is_reported():
    with emulated_instrument() as path, _session(path) as session:
        with pytest.raises(MeasureError, match="two pins"):
            session.configure(InstrumentConfiguration(Mode.RESPONSE, answer_pin=2))
        with pytest.raises(MeasureError, match="outside the instrument's range"):
            session.configure(InstrumentConfiguration(Mode.RESPONSE, limit_ns=10**12))


def test_a_port_that_is_in_use_and_one_that_is_not_there():
    with emulated_instrument() as path, _session(path), pytest.raises(MeasureError, match="cannot be opened"):
        _session(path)
    with pytest.raises(MeasureError, match="port does not exist"):
        _session("/dev/ttyNONE")
