# SPDX-License-Identifier: MIT
"""The instrument measures itself: LOOPBACK, inside or over a wire from the stimulus pin to the answer pin."""

from __future__ import annotations

from dataclasses import dataclass

from rtgauge.errors import MeasureError
from rtgauge.instrument.messages import Configuration, Histogram, Mode, RunState, State
from rtgauge.instrument.session import Session

COUNT = 10_000


@dataclass(frozen=True)
class Loopback:
    """`resolution_ns`: the tick.

    `offset_ns`: least and largest latency over the loop; None if no stimulus came back (no wire).
    """

    resolution_ns: float
    offset_ns: tuple[float, float] | None
    state: State
    histogram: Histogram


def self_test(
    session: Session, *, inside: bool, stimulus_pin: int = 2, answer_pin: int = 3, count: int = COUNT
) -> Loopback:
    """`count` stimuli, 20 to 40 us apart, each due back within 10 us; takes a second.

    Raises MeasureError if edges were lost on the way.
    """
    session.configure(
        Configuration(
            Mode.LOOPBACK,
            stimulus_pin=stimulus_pin,
            answer_pin=answer_pin,
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
        raise MeasureError(
            f"the instrument lost its own edges: {state.edges_lost} of {state.stimuli} stimuli"
        )
    histogram = session.histogram()
    tick_ns = session.identity.tick_ns
    offset = None
    if histogram.minimum is not None and histogram.maximum is not None:
        offset = (histogram.minimum * tick_ns, histogram.maximum * tick_ns)
    return Loopback(tick_ns, offset, state, histogram)
