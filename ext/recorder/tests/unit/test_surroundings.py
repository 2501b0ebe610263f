# SPDX-License-Identifier: MIT
"""What was different when a moment came, on a machine whose files the test writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.messages import missing

from rtgauge_ext.recorder import surroundings
from rtgauge_ext.recorder.surroundings import SAMPLE_NS, Sample, Surroundings, differences

if TYPE_CHECKING:
    from pathlib import Path

USUAL = Sample(0.5, 2000.0, 45.0, 900.0, 1.0)


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (USUAL, ""),
        (USUAL._replace(load=1.4), ""),
        (USUAL._replace(load=4.0), "load 4.0 instead of 0.5"),
        (USUAL._replace(mhz=800.0), "800 MHz instead of 2000"),
        (USUAL._replace(celsius=54.0), ""),
        (USUAL._replace(celsius=71.0), "71 °C instead of 45"),
        (USUAL._replace(interrupts_per_s=30_000.0), "30,000 interrupts a second instead of 900"),
        (USUAL._replace(starts_per_s=40.0), "40.0 programs or threads started a second instead of 1.0"),
        (Sample(None, None, None, None, None), ""),
    ],
)
def test_only_differences_from_the_hour_are_listed(now: Sample, words: str) -> None:
    assert "; ".join(differences(now, [USUAL] * 20)) == words


def test_what_the_hour_had_too_is_usual() -> None:
    hour = [*[USUAL] * 20, USUAL._replace(load=5.0)]
    assert differences(USUAL._replace(load=4.0), hour) == []
    assert differences(USUAL._replace(load=4.0), [USUAL] * 3) == [], "nothing is known of the usual yet"


def test_rates_are_since_the_last_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PROC", "CPUS", "ZONES"):
        monkeypatch.setattr(surroundings, name, tmp_path)
    (tmp_path / "loadavg").write_text("0.50 0.4 0.3 1/100 7\n")
    (tmp_path / "7").mkdir()
    (tmp_path / "7/comm").write_text("apt-get\n")
    followed = Surroundings()

    def at(sample: int, intr: int, starts: int) -> int:
        (tmp_path / "stat").write_text(f"cpu 1 2\nintr {intr} 5 6\nprocesses {starts}\n")
        return sample * SAMPLE_NS

    for sample in range(10):
        followed.look(at(sample, 9_000 * sample, 10 * sample))
    now_ns = at(9, 9_000 * 9 + 60_000, 10 * 9 + 400) + SAMPLE_NS // 10
    interrupts, starts, ran = followed.words(now_ns).split("; ")
    assert not missing(interrupts, "60,000", "interrupts", "instead of 900")
    assert not missing(starts, "400.0", "programs", "instead of 1.0")
    assert not missing(ran, "apt-get")
    (tmp_path / "7/comm").unlink()
    assert "apt-get" in followed.words(now_ns + 1), "in a storm of moments, it is not looked up again"
