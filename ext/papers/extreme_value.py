# SPDX-License-Identifier: MIT
"""Estimates the latency exceeded once in a million activations or more rarely, from the largest latency in
each block of time.

The generalised extreme value distribution is fitted to block maxima by maximum likelihood. Intervals of
levels come from the profile likelihood. See Coles, An Introduction to Statistical Modeling of Extreme Values,
2001, chapter 3. The shape xi has Coles' sign (scipy uses the opposite): xi < 0 means a largest possible
value, xi > 0 a heavy tail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from rtgauge.record.strict_model import Model
from rtgauge.units import format_count, plural
from rtgauge_ext.papers.chi_square import critical_value
from rtgauge_ext.papers.scipy_functions import minimise, root, stats

FloatArray = npt.NDArray[np.float64]

LEAST_BLOCKS = 50
MOST_BLOCKS = 200
"""Windows are merged into at most this many blocks. The maxima of longer blocks are closer to the limit
distribution, and this many are enough to estimate its shape.
"""
LEAST_A_BLOCK = 100
"""The smallest number of activations in a block; the maximum of fewer is not an extreme value."""
ACTIVATIONS = (10**6, 10**7, 10**8, 10**9)
FURTHEST = 1_000
"""No level is estimated beyond this many times the number of measured activations."""
ASSUMPTION_ALPHA = 0.05 / 3
"""The level of each of the three or four tests. A sample that meets all assumptions is rejected in about 5 %
or 7 % of cases.
"""
BROKEN = {
    "no drift": "the maxima drift over time",
    "independent blocks": "successive maxima depend on each other",
    "fit": "the extreme-value distribution does not fit the maxima",
    "runs alike": "the runs differ in their maxima",
}
"""The message for each assumption that does not hold."""
DRAWN = 999
FARTHEST_BOUND = 1e9
"""An interval counts as unbounded if it extends beyond this many times the scale of the fit."""
SHAPES = tuple(np.linspace(-0.4, 1.2, 9).tolist())
"""The initial shapes to try in the fit to a supposed level."""
LEVEL_ALPHA, BOUND_ALPHA = 0.01, 0.1
"""The sample contradicts a level if the Poisson probability of the observed exceedances is below LEVEL_ALPHA,
and its upper bound if it is below BOUND_ALPHA.
"""
HEAVY = 1.0
"""From this shape up, the tail has no mean, and levels are meaningless."""


@dataclass(frozen=True)
class Gev:
    """A fitted distribution of block maxima, with its log-likelihood. Location and scale are in the unit of
    the maxima.
    """

    location: float
    scale: float
    shape: float
    log_likelihood: float

    def level(self, p: float) -> float:
        """Return the value that a block's maximum exceeds with probability `p`."""
        y = -math.log1p(-p)
        if abs(self.shape) < 1e-9:
            return self.location - self.scale * math.log(y)
        return self.location + self.scale * math.expm1(-self.shape * math.log(y)) / self.shape


def _negative(x: FloatArray, location: float, log_scale: float, shape: float) -> float:
    """Return minus the log-likelihood; infinite if the parameters make a value of `x` impossible."""
    if shape <= -1 or not abs(log_scale) <= 50:  # at -1 and below, the likelihood has no maximum
        return math.inf
    if abs(shape) < 1e-5:  # almost 0, but large enough for precise quotients below
        shape = math.copysign(1e-5, shape)
    inner = 1 + shape * (x - location) * math.exp(-log_scale)
    if not inner.min() > 0:
        return math.inf
    log = np.log(inner)
    with np.errstate(over="ignore"):
        value = len(x) * log_scale + float((1 + 1 / shape) * log.sum() + np.exp(-log / shape).sum())
    return value if math.isfinite(value) else math.inf


def _negative_at(x: FloatArray, level: float, log_y: float, location: float, shape: float) -> float:
    """Return minus the log-likelihood of the distribution with this level, of which location and shape
    determine the scale.

    `log_y`: log(-log(1 - p)), if a maximum exceeds the level with probability p (Coles 2001, eq. 3.11).
    """
    shape = math.copysign(max(abs(shape), 1e-5), shape)
    if not abs(shape * log_y) < 600 or not location < level:
        return math.inf
    scales = math.expm1(-shape * log_y) / shape  # the distance from the location to the level
    if not scales > 0:
        return math.inf
    return _negative(x, location, math.log((level - location) / scales), shape)


def _moments(ordered: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return location, scale and shape by probability-weighted moments, each of shape (...). `ordered`, shape
    (..., n), ascends along its last axis.

    Hosking, Wallis and Wood, Estimation of the generalized extreme-value distribution by the method of
    probability-weighted moments, Technometrics 27 (1985), eq. 14 and 15.
    """
    from scipy.special import gamma

    n = ordered.shape[-1]
    rank = np.arange(n, dtype=np.float64)
    b0 = ordered.mean(axis=-1)
    b1 = (ordered * rank).sum(axis=-1) / (n * (n - 1))
    b2 = (ordered * rank * (rank - 1)).sum(axis=-1) / (n * (n - 1) * (n - 2))
    c = (2 * b1 - b0) / (3 * b2 - b0) - math.log(2) / math.log(3)
    k = 7.8590 * c + 2.9554 * c**2
    k = np.where(np.abs(k) < 1e-6, 1e-6, np.maximum(k, -0.98))
    scale = (2 * b1 - b0) * k / (gamma(1 + k) * (1 - 2.0**-k))
    return b0 + scale * (gamma(1 + k) - 1) / k, scale, -k


def fit(maxima: npt.ArrayLike) -> Gev:
    """Fit the maximum-likelihood distribution to block maxima, shape (n,), in their unit.

    Raises ValueError if there are fewer than three maxima or all are equal.
    """
    x = np.asarray(maxima, dtype=np.float64)
    if len(x) < 3 or float(np.ptp(x)) == 0:
        raise ValueError("fitting a distribution needs at least three maxima that are not all equal")
    centre, spread = float(np.median(x)), float(np.std(x))  # scale the numbers to about 1
    scaled = (x - centre) / spread
    location, scale, shape = (float(part) for part in _moments(np.sort(scaled)))
    log_scale = math.log(abs(scale) or 0.5)
    starts = ((location, log_scale, shape), (location, log_scale, 0.05), (-0.45, math.log(0.78), 0.1))

    def negative(q: FloatArray) -> float:
        return _negative(scaled, *q.tolist())

    minima = [minimise(negative, start, tolerance=1e-9) for start in starts]
    (location, log_scale, shape), value = min(minima, key=lambda minimum: minimum.value)
    likelihood = -value - len(x) * math.log(spread)
    return Gev(centre + spread * float(location), spread * math.exp(log_scale), float(shape), likelihood)


def level_interval(
    maxima: npt.ArrayLike, fitted: Gev, p: float, confidence: float = 0.95
) -> tuple[float | None, float | None]:
    """Return both ends of the profile-likelihood interval of the level that a maximum exceeds with
    probability `p` (Coles 2001, sec. 3.3.4); an end is None if unbounded.

    For each supposed level, the other two parameters are fitted. The interval contains the levels at which
    twice the loss of log-likelihood stays below the chi-square quantile.
    """
    x = np.asarray(maxima, dtype=np.float64)
    estimate, spread = fitted.level(p), fitted.scale
    scaled, best = (x - estimate) / spread, -fitted.log_likelihood - len(x) * math.log(spread)
    location = (fitted.location - estimate) / spread
    allowed = critical_value(1, 1 - confidence) / 2
    log_y = math.log(-math.log1p(-p))

    def loss(level: float) -> float:
        """Return the loss of log-likelihood at a level minus the allowed loss; infinite if nothing fits."""

        def negative(q: FloatArray) -> float:
            return _negative_at(scaled, level, log_y, float(q[0]), float(q[1]))

        # Start from the fit to the previous level. If that is impossible here, start from the best of SHAPES.
        start = np.array(previous)
        if not math.isfinite(negative(start)):
            starts = (np.array((place, shape)) for place in (location, previous[0]) for shape in SHAPES)
            start = min(starts, key=negative)
            if not math.isfinite(negative(start)):
                return math.inf
        minimum, value = minimise(negative, start.tolist(), tolerance=1e-4)
        previous[:] = minimum.tolist()
        return value - best - allowed

    previous, known = [location, fitted.shape], {0.0: -1.0}

    def root_loss(level: float) -> float:
        """Return the square root of (loss / allowed loss), minus 1. It is nearly linear in the level.

        From another start, the same level may get a slightly different value, so each is computed once.
        """
        if level not in known:
            known[level] = math.sqrt(max(0.0, loss(level) + allowed) / allowed) - 1
        return known[level]

    def bound(direction: int) -> float | None:
        inside, step = 0.0, 0.25
        while step < FARTHEST_BOUND:
            outside = inside + direction * step
            value = root_loss(outside)
            if not math.isfinite(value):
                # Nothing fits this far out: move closer until something does.
                step /= 2
                if step < 1e-4:
                    return estimate + spread * inside
                continue
            if value > 0:
                return estimate + spread * root(root_loss, inside, outside, tolerance=1e-4)
            inside = outside
            # Go slightly beyond the place where a straight line would reach 0.
            step = abs(outside) * min(3.0, max(0.5, 1.05 / max(0.1, 1 + value) - 1))
        return None

    return bound(-1), bound(1)


class TailAssumption(Model):
    """The test of one assumption of the estimate."""

    name: str
    statistic: float
    p_value: float
    holds: bool


def _anderson_darling(ordered: FloatArray) -> FloatArray:
    """Return the Anderson-Darling statistics, shape (...), of sorted samples, shape (..., n), against the
    distribution fitted to each sample by moments.
    """
    location, scale, shape = (part[..., None] for part in _moments(ordered))
    inner = np.maximum(1 + shape * (ordered - location) / scale, 1e-300)
    u = np.clip(np.exp(-np.exp(np.clip(-np.log(inner) / shape, -700, 700))), 1e-12, 1 - 1e-12)
    n = ordered.shape[-1]
    weights = 2 * np.arange(1, n + 1, dtype=np.float64) - 1
    return -n - (weights * (np.log(u) + np.log1p(-u[..., ::-1]))).sum(axis=-1) / n


def fit_test(maxima: npt.ArrayLike, *, drawn: int = DRAWN, seed: int = 1) -> TailAssumption:
    """Test whether the maxima follow this family: the Anderson-Darling statistic, with the p-value of a
    parametric bootstrap.

    scipy.stats.goodness_of_fit takes a minute instead of 0.02 s, because it fits each of the 999 drawn
    samples by maximum likelihood.
    """
    ordered = np.sort(np.asarray(maxima, dtype=np.float64))
    statistic = float(_anderson_darling(ordered))
    location, scale, shape = (float(part) for part in _moments(ordered))
    exponential = np.random.default_rng(seed).exponential(size=(drawn, len(ordered)))
    samples = np.sort(location + scale * np.expm1(-shape * np.log(exponential)) / shape, axis=-1)
    as_large = int((_anderson_darling(samples) >= statistic).sum())
    return _assumption("fit", statistic, (1 + as_large) / (drawn + 1))


def drift(x: FloatArray) -> TailAssumption:
    """Test Kendall's tau between `x`, shape (n,) in order of time, and time, two-sided."""
    return _tested("no drift", stats().kendalltau(x, np.arange(len(x)), method="asymptotic"))


def serial_correlation(x: FloatArray) -> TailAssumption:
    """Test Spearman's rank correlation of each value with the next, two-sided."""
    return _tested("independent blocks", stats().spearmanr(x[:-1], x[1:]))


def runs_alike(maxima_ns: Sequence[int], runs: Sequence[int]) -> TailAssumption:
    """Test whether the maxima of all runs, at least two, have one distribution (Kruskal and Wallis)."""
    maxima, run_of = np.asarray(maxima_ns), np.asarray(runs)
    samples = [maxima[run_of == run] for run in np.unique(run_of)]
    return _tested("runs alike", stats().kruskal(*samples))


def assumptions(maxima: npt.ArrayLike) -> list[TailAssumption]:
    """Test three assumptions: no drift (Mann-Kendall), no serial correlation (Spearman's rank correlation of
    neighbours), and the fit of the family.
    """
    x = np.asarray(maxima, dtype=np.float64)
    return [drift(x), serial_correlation(x), fit_test(x)]


def _tested(name: str, result: Any) -> TailAssumption:
    return _assumption(name, float(result.statistic), float(result.pvalue))


def _assumption(name: str, statistic: float, p: float) -> TailAssumption:
    return TailAssumption(name=name, statistic=statistic, p_value=p, holds=p >= ASSUMPTION_ALPHA)


class TailLevel(Model):
    """The latency (ns) exceeded once in `activations`, and its interval; an end is None if unbounded."""

    activations: int
    ns: float
    low_ns: float | None
    high_ns: float | None


class TailEstimate(Model):
    """The extreme-value estimate of one side; `cannot` says why there is none. Location and scale are of the
    fitted distribution of block maxima, in ns.
    """

    side: str = ""
    cannot: str | None
    blocks: int
    activations_a_block: float
    location_ns: float | None = None
    scale_ns: float | None = None
    shape: float | None = None
    assumptions: list[TailAssumption] = Field(default_factory=list[TailAssumption])
    levels: list[TailLevel] = Field(default_factory=list[TailLevel])
    not_estimated: list[int] = Field(
        default_factory=list[int],
        description="numbers of activations for which rtgauge gives no estimate: far more than were "
        "measured, or fewer than in one block",
    )


def blocks_of(maxima_ns: Sequence[int], counts: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the maxima (ns) and counts of at most MOST_BLOCKS equal blocks, without a shorter last block."""
    windows = max(1, math.ceil(len(maxima_ns) / MOST_BLOCKS))
    end = len(maxima_ns) // windows * windows
    return (
        [max(maxima_ns[i : i + windows]) for i in range(0, end, windows)],
        [sum(counts[i : i + windows]) for i in range(0, end, windows)],
    )


def contradiction(maxima_ns: Sequence[int], total: int, levels: Sequence[TailLevel]) -> str | None:
    """Return a message if more windows exceed a level than the level allows, else None.

    `maxima_ns`: the maximum of every window; they have `total` activations in all. A window with a burst
    counts once. The Poisson probability of this many windows must not be below LEVEL_ALPHA for a level, or
    below BOUND_ALPHA for its upper bound.
    """
    from scipy.special import pdtrc

    for level in levels:
        expected = total / level.activations
        for ns, alpha in ((level.ns, LEVEL_ALPHA), (level.high_ns, BOUND_ALPHA)):
            beyond = 0 if ns is None else sum(value > ns for value in maxima_ns)
            if beyond and float(pdtrc(beyond - 1, expected)) < alpha:
                exceedances = f"{plural(beyond, 'window')} of {format_count(total)} activations"
                words = (
                    f"{level.ns / 1_000:.1f} us"
                    if ns == level.ns
                    else f"at most {(ns or 0.0) / 1_000:.1f} us"
                )
                return (
                    f"the fit expects {words} once in {format_count(level.activations)}, but {exceedances} "
                    f"exceeded this, up to {max(maxima_ns) / 1_000:.1f} us"
                )
    return None


def estimate(
    maxima_ns: Sequence[int],
    counts: Sequence[int],
    runs: Sequence[int] | None = None,
    *,
    confidence: float = 0.95,
) -> TailEstimate:
    """Estimate the levels exceeded once in each of ACTIVATIONS, from the largest latency (ns) and the number
    of activations of each block of time.

    A burst of late activations counts once. There is no estimate if an assumption does not hold, or if the
    sample is too small or contradicts the extrapolation; `cannot` says why. `runs`: the run of each block;
    several runs must be alike, because a pooled level says nothing about another run.
    """
    maxima, sizes = blocks_of(maxima_ns, counts)
    total = sum(counts)
    size = sum(sizes) / len(sizes) if sizes else 0.0

    tail = TailEstimate(cannot=None, blocks=len(maxima), activations_a_block=size)

    def cannot(why: str) -> TailEstimate:
        return tail.model_copy(update={"cannot": why})

    if len(maxima) < LEAST_BLOCKS:
        return cannot(
            f"only {plural(len(maxima), 'window')} of time {'has' if len(maxima) == 1 else 'have'} values; "
            f"at least {LEAST_BLOCKS} windows are needed"
        )
    if size < LEAST_A_BLOCK:
        return cannot(
            f"a window of time has only {size:.0f} activations on average; at least {LEAST_A_BLOCK} are "
            "needed"
        )
    if len(set(maxima)) < 10:
        return cannot(
            f"the maxima of all windows have only {plural(len(set(maxima)), 'different value')}; at least "
            "10 are needed"
        )
    tail.assumptions = assumptions(maxima)
    if runs is not None and len(set(runs)) > 1:
        tail.assumptions.append(runs_alike(maxima_ns, runs))
    fitted = fit(maxima)
    tail.location_ns, tail.scale_ns, tail.shape = fitted.location, fitted.scale, fitted.shape
    broken = [f"{BROKEN[test.name]} (p = {test.p_value:.2g})" for test in tail.assumptions if not test.holds]
    if fitted.shape >= HEAVY:
        broken.append(f"the largest values grow too fast to extrapolate (shape {fitted.shape:.2f})")
    if fitted.shape <= -0.5:
        broken.append(
            f"an interval cannot be calculated, because the shape, {fitted.shape:.2f}, is below -0.5"
        )
    if broken:
        return cannot("; ".join(broken))
    levels: list[TailLevel] = []
    for n in ACTIVATIONS:
        if not size < n <= FURTHEST * total:
            continue
        p = -math.expm1(size * math.log1p(-1 / n))
        low_ns, high_ns = level_interval(maxima, fitted, p, confidence)
        levels.append(TailLevel(activations=n, ns=fitted.level(p), low_ns=low_ns, high_ns=high_ns))
    contradicted = contradiction(maxima_ns, total, levels)
    if contradicted is not None:
        return cannot(contradicted)
    estimated = {level.activations for level in levels}
    not_estimated = [n for n in ACTIVATIONS if n not in estimated]
    return tail.model_copy(update={"levels": levels, "not_estimated": not_estimated})
