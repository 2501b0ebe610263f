# SPDX-License-Identifier: MIT
"""What the instrument measures in a step of a probe on a signal path."""

from __future__ import annotations

from rtgauge.errors import InputError
from rtgauge_ext.instrument.messages import InstrumentConfiguration, Mode, Pull, Timing
from rtgauge_ext.signal.periodic import PeriodicParameters
from rtgauge_ext.signal.response import ResponseParameters

BEFORE_THE_NEXT_NS = 64
"""With a fixed interval, the instrument stops waiting for an answer this long before the next stimulus."""


def configuration_of(parameters: object) -> InstrumentConfiguration:
    """Return the configuration for a step with these parameters. Raises InputError for another probe's."""
    if isinstance(parameters, PeriodicParameters):
        return _periodic(parameters)
    if isinstance(parameters, ResponseParameters):
        return _response(parameters)
    raise InputError("the instrument measures only steps of periodic and response; leave instrument out")


def _periodic(parameters: PeriodicParameters) -> InstrumentConfiguration:
    """Return how it measures the time between edges, and compares it with a half-period."""
    return InstrumentConfiguration(Mode.PERIODIC, nominal_ns=parameters.period_ns // 2, pull=Pull.DOWN)


def _response(parameters: ResponseParameters) -> InstrumentConfiguration:
    """Return how it makes stimuli as the master.

    At a fixed interval, an answer counts as missed if it has not come before the next stimulus.
    """
    interval_ns, limit_ns = parameters.interval_ns, parameters.timeout_ns
    if interval_ns is not None:
        limit_ns = min(limit_ns, interval_ns - BEFORE_THE_NEXT_NS)
    return InstrumentConfiguration(
        Mode.RESPONSE,
        timing=Timing.RANDOM if interval_ns is None else Timing.FIXED,
        period_min_ns=parameters.interval_min_ns if interval_ns is None else interval_ns,
        period_max_ns=parameters.longest_ns,
        limit_ns=limit_ns,
        pull=Pull.DOWN,
        count=parameters.cycles or 0,
        seed=parameters.seed or 0,
    )
