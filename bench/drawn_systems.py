# SPDX-License-Identifier: MIT
"""Draws latencies of systems whose long-run distribution is known exactly: the independent truth of
`bounds.py`.

A latency is `MEDIAN_NS` times a log-normal factor of each activation, times a slow factor of the machine's
state. The state makes the kinds. It is drawn in time, and knows nothing of windows, design effects or
estimators.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.signal import lfilter
from scipy.special import ndtr, ndtri

MEDIAN_NS = 20_000
SIGMA = 0.35
"""Standard deviation of the logarithm of an activation's factor."""
WORSE = math.log(8)
"""The logarithm of the factor in a burst or an episode."""
DRIFT = 0.1
"""Standard deviation of the logarithm of a drift's factor, and of the factor of a run in `repeated`."""
LONGEST_BURST_S = 0.1
"""The mean length of a burst, if a run has at least BURSTS of them."""
BURSTS, EPISODES, DRIFTS = 20, 20, 20
"""How many bursts (at least), how many episodes, and how many correlation times of the drift a run lasts."""

BOOT_SPREAD, SLOW, SLOW_SHARE = 0.04, math.log(1.5), 1 / 7
"""The standard deviation of a boot's level, and how much slower how many boots are."""
MEDIAN_LEVEL = BOOT_SPREAD * float(ndtri(0.5 / (1 - SLOW_SHARE)))
"""The median level of boots of which SLOW_SHARE are slow, all of them above it."""

KINDS = ("independent", "bursty", "episodic", "drifting", "repeated")


@dataclass(frozen=True)
class Machine:
    """A machine of one kind, with `per_s` activations a second; its state is bad for a share `bad` of the
    time.
    """

    kind: str
    seconds: int = 60
    per_s: int = 500
    bad: float = 0.1

    def latencies(self, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """Return the latencies (ns) of one run, a row a second."""
        number = self.seconds * self.per_s
        state = self._state(rng, number)
        values = MEDIAN_NS * np.exp(SIGMA * rng.standard_normal(number) + state)
        return values.reshape(self.seconds, self.per_s)

    def _state(self, rng: np.random.Generator, number: int) -> npt.NDArray[np.float64] | float:
        match self.kind:
            case "bursty" | "episodic":
                return WORSE * self._alternating(rng, number, self._bad_s())
            case "drifting":
                keeps = math.exp(-DRIFTS / number)
                shocks = rng.standard_normal(number)
                shocks[1:] *= math.sqrt(1 - keeps**2)
                return DRIFT * np.asarray(lfilter([1], [1, -keeps], shocks))
            case "repeated":
                return float(rng.normal(0, DRIFT))
            case _:
                return 0.0

    def _alternating(self, rng: np.random.Generator, number: int, bad_s: float) -> npt.NDArray[np.float64]:
        """Return 1 in bad states and 0 in good ones, whose lengths are exponential."""
        good_s = bad_s * (1 - self.bad) / self.bad
        pairs = int(2 * self.seconds / (bad_s + good_s)) + 30
        lengths = rng.exponential(1, (pairs, 2)) * [good_s, bad_s]
        first_is_bad = rng.random() < self.bad  # exponential lengths forget how long the state has lasted
        ends = np.cumsum(lengths[:, ::-1] if first_is_bad else lengths)
        state = np.searchsorted(ends, np.arange(number) / self.per_s, side="right") % 2
        return (1 - state if first_is_bad else state).astype(np.float64)

    def late_in_a_burst(self, bound_ns: float) -> float:
        """Return how many activations of a burst or an episode are above `bound_ns` on average."""
        if self.kind not in {"bursty", "episodic"}:
            return 1.0
        late = 1 - ndtr((math.log(bound_ns / MEDIAN_NS) - WORSE) / SIGMA)
        return float(self._bad_s() * self.per_s * late)

    def _bad_s(self) -> float:
        """Return the mean length (s) of a burst or an episode."""
        if self.kind == "episodic":
            return self.bad * self.seconds / EPISODES
        return min(LONGEST_BURST_S, self.bad * self.seconds / BURSTS)

    def share_above(self, bound_ns: float) -> float:
        """Return the long-run share of latencies above `bound_ns`."""
        score = math.log(bound_ns / MEDIAN_NS)
        if self.kind in {"bursty", "episodic"}:
            calm, bad = (1 - ndtr((score - shift) / SIGMA) for shift in (0, WORSE))
            return float((1 - self.bad) * calm + self.bad * bad)
        spread = SIGMA if self.kind == "independent" else math.hypot(SIGMA, DRIFT)
        return float(1 - ndtr(score / spread))

    def quantile_ns(self, share: float) -> float:
        """Return the latency that a `share` of all latencies does not exceed in the long run."""
        ends = (MEDIAN_NS / 100, MEDIAN_NS * 1e4)
        return float(brentq(lambda ns: self.share_above(ns) - (1 - share), *ends))


def boots(kind: str, number: int, generator: np.random.Generator) -> tuple[npt.NDArray[np.float64], float]:
    """Return the level (a logarithm) of each boot or run in order, and its median in the long run.

    bursty: one boot in seven is slower by half. episodic: such a state lasts for two boots on average.
    drifting: AR(1), 0.5 from boot to boot. repeated: heavy tails (Student's t with 3 degrees of freedom).
    """
    levels = generator.normal(0, BOOT_SPREAD, number)
    match kind:
        case "bursty":
            return levels + SLOW * (generator.random(number) < SLOW_SHARE), MEDIAN_LEVEL
        case "episodic":
            slow = np.empty(number, dtype=bool)
            slow[0] = generator.random() < SLOW_SHARE
            for boot in range(1, number):
                leaves = 0.5 if slow[boot - 1] else 0.5 * SLOW_SHARE / (1 - SLOW_SHARE)
                slow[boot] = slow[boot - 1] ^ (generator.random() < leaves)
            return levels + SLOW * slow, MEDIAN_LEVEL
        case "drifting":
            return np.asarray(
                lfilter([math.sqrt(0.75)], [1, -0.5], generator.normal(0, BOOT_SPREAD, number + 20))
            )[20:], 0.0
        case "repeated":
            return generator.standard_t(3, number) * BOOT_SPREAD / math.sqrt(3), 0.0
        case _:
            return levels, 0.0
