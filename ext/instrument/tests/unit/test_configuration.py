# SPDX-License-Identifier: MIT
"""What the instrument measures follows from the parameters of the step."""

from __future__ import annotations

import pytest

from rtgauge.errors import InputError
from rtgauge.probe.descriptor import normalise
from rtgauge.probe.probe_registry import PROBES
from rtgauge_ext.instrument.configuration import configuration_of
from rtgauge_ext.instrument.messages import Mode, Timing


def test_an_answer_counts_until_the_next_stimulus() -> None:
    written = {"instrument": "serial:", "path": "gpio:x:1,2", "interval": "10ms", "cycles": 7}
    configuration = configuration_of(normalise(PROBES["response"], written, "x"))
    assert (configuration.count, configuration.period_min_ns) == (7, 10_000_000)
    assert configuration.timing is Timing.FIXED
    assert configuration.limit_ns < configuration.period_min_ns  # the firmware wants it so
    configuration.encode(125_000_000)


def test_periodic_is_compared_with_half_of_its_period() -> None:
    written = {"instrument": "serial:", "path": "gpio:x:1", "period": "30ms"}
    configuration = configuration_of(normalise(PROBES["periodic"], written, "x"))
    assert (configuration.mode, configuration.nominal_ns) == (Mode.PERIODIC, 15_000_000)


def test_another_probe_has_no_configuration() -> None:
    with pytest.raises(InputError, match="leave instrument out"):
        configuration_of(normalise(PROBES["wakeup"], {}, "x"))
