# SPDX-License-Identifier: MIT
"""Results of several sessions become those of one."""

from __future__ import annotations

from rtgauge.record.model import Result
from rtgauge.system.step_changes import peak_temperatures
from rtgauge_ext.recorder.entries import joined_results


def test_the_highest_temperature_of_all_sessions_counts() -> None:
    zone: dict[str, str | int] = {"zone": "thermal_zone0 acpitz"}
    peaks = (45_000, 61_000, 52_000)
    sessions = [
        Result(name="temperature", labels=zone, values={"max_millicelsius": peak, "readings": 3600})
        for peak in peaks
    ]
    (joined,) = joined_results(sessions)
    assert peak_temperatures([joined]) == {"thermal_zone0 acpitz": 61_000}
    assert joined.values["readings"] == 3 * 3600
