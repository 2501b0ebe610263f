# SPDX-License-Identifier: MIT
"""Sides of a comparison drawn from a known system: latencies that depend on each other, heavy tails, runs
that differ by a random factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from scipy.signal import lfilter  # pyright: ignore[reportUnknownVariableType]
from scipy.special import ndtr

from rtgauge.analysis.sides import Side
from rtgauge.record.histogram import bin_of
from rtgauge.record.merged_windows import merge
from rtgauge.record.model import Run, Step, StepKey
from rtgauge.record.probe_parameters import OpenParameters
from rtgauge.record.reader import Record
from rtgauge.record.windows import NO_WINDOWS, Bins, Windows

MEDIAN_NS = 20_000
TRAITS = {
    "host": "h",
    "processor": "not emulated",
    "kernel": "k",
    "load": "idle",
    "deployment": "as-is",
    "tool": "rtgauge",
    "space": "user space",
}
RECORD = Record(
    Path("drawn"),
    Run(id="drawn", created="2026-11-21T10:03:22Z", ended=None, state="complete", rtgauge="0.1.0", command=["rtgauge", "run", "quick"], plan={},
        targets=["local"], seed=1, requirement=None, verdicts=[], steps=[], planned=[], left_out=[]),
    [], {},
)  # fmt: skip
STEP = Step.model_construct(
    id="01-wakeup-idle", key=StepKey.model_construct(parameters=OpenParameters()), parameters={}, marks=[]
)


@dataclass(frozen=True)
class System:
    """`dependence`: of a latency on the one before (AR(1), of normal scores).

    `run_shift`: standard deviation of the logarithm of a run's factor.
    """

    dependence: float = 0.0
    per_window: int = 250
    windows: int = 60
    run_shift: float = 0.0
    heavy_tail: bool = False
    """Pareto with the shape 0.4, whose variance is finite and whose third moment is not; else log-normal."""


def latencies(system: System, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """The latencies (ns) of one run, a row a window."""
    shocks = rng.standard_normal(system.windows * system.per_window)
    shocks[1:] *= math.sqrt(1 - system.dependence**2)
    scores = np.asarray(lfilter([1], [1, -system.dependence], shocks))
    relative = (2 * (1 - ndtr(scores))) ** -0.4 if system.heavy_tail else np.exp(0.35 * scores)
    values = MEDIAN_NS * relative * math.exp(rng.normal(0, system.run_shift))
    return np.minimum(values, 9e9).astype(np.int64).reshape(system.windows, system.per_window)


def side(label: str, system: System, runs: int, rng: np.random.Generator, *, factor: float = 1.0) -> Side:
    """A side of so many runs, its latencies multiplied by `factor`."""
    drawn = [(latencies(system, rng) * factor).astype(np.int64) for _ in range(runs)]
    return side_of(label, drawn)


def windows_of(windows: npt.NDArray[np.int64]) -> Windows:
    """Windows of one series, from its latencies (ns), a row a window."""
    number = np.arange(len(windows))
    bins, counts = zip(*(np.unique(bin_of(values), return_counts=True) for values in windows), strict=True)
    lengths = np.array([len(each) for each in bins])
    return Windows(
        series=np.zeros_like(number), measured=number >= 0, index=number,
        start_ns=np.zeros_like(number), end_ns=np.zeros_like(number),
        count=np.full_like(number, windows.shape[1]), missed=np.zeros_like(number),
        min_ns=windows.min(axis=1), max_ns=windows.max(axis=1), sum_ns=windows.sum(axis=1),
        m2_ns2=windows.var(axis=1) * windows.shape[1],
        bins=Bins(np.concatenate(bins).astype(np.int32), np.concatenate(counts), lengths),
        missed_bins=Bins(NO_WINDOWS.bins.bins, NO_WINDOWS.bins.counts, np.zeros_like(number)),
    )  # fmt: skip


def side_of(label: str, runs: Sequence[npt.NDArray[np.int64]]) -> Side:
    """A side of these runs, each given by its latencies (ns), a row a window."""
    columns = windows_of(np.concatenate(runs))
    run = np.repeat(np.arange(len(runs)), [len(windows) for windows in runs])
    traits = {**TRAITS, "parameters": label}
    return Side(label, (RECORD,), (STEP,), traits, columns, columns.index, run, merge(columns), 1)


@st.composite
def runs(draw: st.DrawFn, most: int = 3) -> list[np.ndarray]:
    """Runs of a few windows of latencies (ns), some of them late."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(1, 25)), draw(st.integers(5, 60))
    sigma, late = draw(st.sampled_from([0.0, 0.3, 1.5])), draw(st.sampled_from([0.0, 0.02, 0.3]))
    return [
        (generator.lognormal(10, sigma, shape) * np.where(generator.random(shape) < late, 20, 1)).astype(
            np.int64
        )
        for _ in range(draw(st.integers(1, most)))
    ]
