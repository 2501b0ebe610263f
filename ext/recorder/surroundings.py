# SPDX-License-Identifier: MIT
"""What was different on the machine when a moment came: load, frequency, temperature, interrupts, starts of
programs and package managers, compared with the hour before.
"""

from __future__ import annotations

import statistics
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rtgauge.units import NS_PER_S
from rtgauge_ext.recorder.program import PROC

CPUS, ZONES = Path("/sys/devices/system/cpu"), Path("/sys/class/thermal")
SAMPLE_NS = AGAIN_NS = 10 * NS_PER_S
SAMPLES, LEAST_SAMPLES = 360, 6
"""An hour of samples is the usual; before a minute has passed, nothing is known of it."""
TIMES = 2
"""A value is unusual if it is above all of the hour, and so many times its median."""
WARMER = 10
"""Degrees above the median, and above all of the hour."""
SLOWER = 0.8
"""Of the median frequency, and below all of the hour."""
MANAGERS = frozenset(
    {
        *("apt", "apt-get", "aptitude", "dpkg", "unattended-upgr", "dnf", "yum", "rpm", "zypper", "pacman"),
        *("apk", "opkg", "snapd", "flatpak", "packagekitd", "swupdate", "rauc", "mender"),
    }
)
"""Names of package managers, as in /proc/PID/comm."""


class Sample(NamedTuple):
    """The machine at one time; a value that it does not have is None. Rates are since the sample before."""

    load: float | None
    mhz: float | None
    celsius: float | None
    interrupts_per_s: float | None
    starts_per_s: float | None


LEAST = {"load": 1.0, "interrupts_per_s": 1000.0, "starts_per_s": 2.0}
"""By how much a value must be above its median."""
WORDS = {
    "load": "load {now:.1f} instead of {usual:.1f}",
    "mhz": "{now:.0f} MHz instead of {usual:.0f}",
    "celsius": "{now:.0f} °C instead of {usual:.0f}",
    "interrupts_per_s": "{now:,.0f} interrupts a second instead of {usual:,.0f}",
    "starts_per_s": "{now:.1f} programs or threads started a second instead of {usual:.1f}",
}


def _number(path: Path) -> float | None:
    with suppress(OSError, ValueError, IndexError):
        return float(path.read_text().split()[0])
    return None


class Surroundings:
    """Follows the machine, and says what is unusual."""

    def __init__(self) -> None:
        """Begin without samples."""
        self._samples: deque[Sample] = deque(maxlen=SAMPLES)
        self._counts: tuple[int, dict[str, float]] | None = None
        self._words, self._words_ns = "", -SAMPLE_NS

    def look(self, now_ns: int) -> None:
        """Take a sample if the last one is old enough."""
        if self._counts is None or now_ns - self._counts[0] >= SAMPLE_NS:
            self._samples.append(self._sample(now_ns, keep=True))

    def words(self, now_ns: int) -> str:
        """Return what is unusual now; empty if nothing is. It is looked up every AGAIN_NS at most."""
        if now_ns - self._words_ns >= AGAIN_NS:
            self._words_ns = now_ns
            unusual = differences(self._sample(now_ns, keep=False), list(self._samples))
            self._words = "; ".join([*unusual, *(f"{name} ran" for name in sorted(_managers()))])
        return self._words

    def _sample(self, now_ns: int, *, keep: bool) -> Sample:
        counts = _counts()
        before_ns, before = self._counts or (now_ns, {})
        if keep:
            self._counts = now_ns, counts
        past_s = (now_ns - before_ns) / NS_PER_S
        rates = {
            name: (counts[name] - before[name]) / past_s if past_s > 0 and name in before else None
            for name in counts
        }
        clocks = [_number(path) for path in CPUS.glob("cpu[0-9]*/cpufreq/scaling_cur_freq")]
        zones = [_number(path) for path in ZONES.glob("thermal_zone*/temp")]
        khz = [each for each in clocks if each is not None]
        heat = [each for each in zones if each is not None]
        return Sample(
            load=_number(PROC / "loadavg"),
            mhz=statistics.mean(khz) / 1000 if khz else None,
            celsius=max(heat) / 1000 if heat else None,
            interrupts_per_s=rates.get("intr"),
            starts_per_s=rates.get("processes"),
        )


def differences(now: Sample, hour: list[Sample]) -> list[str]:
    """Return what is unusual in a sample, compared with the samples of the hour before."""
    differing: list[str] = []
    for name, value in now._asdict().items():
        known = [each for sample in hour if (each := getattr(sample, name)) is not None]
        if value is None or len(known) < LEAST_SAMPLES:
            continue
        usual = statistics.median(known)
        if name == "mhz":
            unusual = value < min(known) and value < SLOWER * usual
        elif name == "celsius":
            unusual = value > max(known) and value > usual + WARMER
        else:
            unusual = value > max(known) and value > max(TIMES * usual, usual + LEAST[name])
        if unusual:
            differing.append(WORDS[name].format(now=value, usual=usual))
    return differing


def _counts() -> dict[str, float]:
    """Return how many interrupts came and how many tasks began since the boot (proc(5), /proc/stat)."""
    with suppress(OSError, ValueError, IndexError):
        lines = (PROC / "stat").read_text().splitlines()
        words = (line.split(None, 2) for line in lines if line.startswith(("intr ", "processes ")))
        return {word[0]: float(word[1]) for word in words}
    return {}


def _managers() -> set[str]:
    """Return the names of the package managers that run."""
    managers: set[str] = set()
    for place in PROC.iterdir():
        if place.name.isdigit():
            with suppress(OSError):
                managers.add((place / "comm").read_text(errors="replace").rstrip("\n"))
    return managers & MANAGERS
