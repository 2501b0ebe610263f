# SPDX-License-Identifier: MIT
"""How late once in a million activations, and rarer: an extreme-value estimate from the largest latency of each stretch of time.

The generalised extreme value distribution is fitted to block maxima by maximum likelihood; levels have intervals by profile likelihood.
Coles, An Introduction to Statistical Modeling of Extreme Values (2001), ch. 3. Here the shape xi has Coles' sign (scipy's is the opposite):
xi < 0 has a largest possible value, xi > 0 a heavy tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rtgauge.analysis.newton import crossing, newton

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]

LEAST_BLOCKS = 50
MOST_BLOCKS = 200
"""More windows than this are put together: longer blocks are nearer to the limit that the distribution is for, and this many tell its shape."""
LEAST_A_BLOCK = 100
"""Fewer activations than this in a block, and its maximum is not one of many."""
ACTIVATIONS = (10**6, 10**7, 10**8, 10**9)
FURTHEST = 1_000
"""A level is not estimated for more than this many times the activations that were measured."""
ASSUMPTION_ALPHA = 0.05 / 3
"""Three assumptions are tested, so that a sample that keeps them all is refused in about 5 % of cases."""
DRAWN = 999
FARTHEST_EDGE = 1e9
"""An interval that reaches so many scales of the fit has no end."""
SHAPES = tuple(np.linspace(-0.4, 1.2, 9).tolist())
"""Where the fit to a supposed level begins."""
HEAVY = 1.0
"""From this shape on the tail has no mean: no level means anything."""


@dataclass(frozen=True)
class Gev:
    """A fitted distribution of block maxima, and the logarithm of its likelihood."""

    location: float
    scale: float
    shape: float
    log_likelihood: float

    def level(self, p: float) -> float:
        """The value that a block's maximum exceeds with probability `p`."""
        y = -math.log1p(-p)
        if abs(self.shape) < 1e-9:
            return self.location - self.scale * math.log(y)
        return self.location + self.scale * math.expm1(-self.shape * math.log(y)) / self.shape


def _negative(x: FloatArray, location: float, log_scale: float, shape: float) -> tuple[float, FloatArray]:
    """Minus the log-likelihood, and its gradient by the three parameters; infinite outside of what they allow."""
    outside = math.inf, np.zeros(3)
    if shape <= -1 or not abs(log_scale) <= 50:  # at -1 and below the likelihood has no maximum
        return outside
    if abs(shape) < 1e-5:  # as at 0, and the quotients below have digits enough
        shape = math.copysign(1e-5, shape)
    z = (x - location) * math.exp(-log_scale)
    inner = 1 + shape * z
    if not inner.min() > 0:
        return outside
    log = np.log(inner)
    with np.errstate(over="ignore", invalid="ignore"):
        power = np.exp(-log / shape)
        value = len(x) * log_scale + float((1 + 1 / shape) * log.sum() + power.sum())
        by_z = (1 + shape - power) / inner
        by_shape = (power - 1) @ log / shape**2 + (z / inner) @ (1 + (1 - power) / shape)
        found = np.array([-by_z.sum() * math.exp(-log_scale), len(x) - by_z @ z, by_shape])
    return (value, found) if math.isfinite(value) and np.isfinite(found).all() else outside


def _negative_at(x: FloatArray, level: float, log_y: float, location: float, shape: float) -> tuple[float, FloatArray]:
    """The same of that distribution whose level is given, and its gradient by the location and the shape; the scale follows from them.

    `log_y`: the logarithm of -log(1 - p), p being the probability with which a maximum exceeds the level.
    """
    shape = math.copysign(max(abs(shape), 1e-5), shape)
    if not abs(shape * log_y) < 600 or not location < level:
        return math.inf, np.zeros(2)
    above = math.expm1(-shape * log_y) / shape  # so many scales the level lies above the location
    if not above > 0:
        return math.inf, np.zeros(2)
    steeper = -(log_y * math.exp(-shape * log_y) + above) / shape
    value, (by_location, by_scale, by_shape) = _negative(x, location, math.log((level - location) / above), shape)
    return value, np.array([by_location - by_scale / (level - location), by_shape - by_scale * steeper / above])


def _moments(ordered: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Location, scale and shape by probability-weighted moments, a row each; `ordered` rises along its last axis.

    Hosking, Wallis and Wood, Estimation of the generalized extreme-value distribution by the method of probability-weighted moments (1985).
    """
    from scipy.special import gamma

    n = ordered.shape[-1]
    rank = np.arange(n)
    b0 = ordered.mean(axis=-1)
    b1 = (ordered * rank).sum(axis=-1) / (n * (n - 1))
    b2 = (ordered * rank * (rank - 1)).sum(axis=-1) / (n * (n - 1) * (n - 2))
    c = (2 * b1 - b0) / (3 * b2 - b0) - math.log(2) / math.log(3)
    k = 7.8590 * c + 2.9554 * c**2
    k = np.where(np.abs(k) < 1e-6, 1e-6, np.maximum(k, -0.98))
    scale = (2 * b1 - b0) * k / (gamma(1 + k) * (1 - 2.0**-k))
    return b0 + scale * (gamma(1 + k) - 1) / k, scale, -k


def fit(maxima: npt.ArrayLike) -> Gev:
    """The distribution that makes these block maxima most likely. Raises ValueError for fewer than three, or all equal."""
    x = np.asarray(maxima, dtype=np.float64)
    if len(x) < 3 or float(np.ptp(x)) == 0:
        raise ValueError("a distribution of maxima cannot be fitted to fewer than three, or to equal ones")
    centre, spread = float(np.median(x)), float(np.std(x))  # the fit itself is on numbers near 1
    scaled = (x - centre) / spread
    location, scale, shape = (float(part) for part in _moments(np.sort(scaled)))
    candidates = [(location, abs(scale) or 0.5, shape), (location, abs(scale) or 0.5, 0.05), (-0.45, 0.78, 0.1)]
    starts = [np.array([at, math.log(width), bend]) for at, width, bend in candidates]
    ends = [newton(lambda q: _negative(scaled, *q.tolist()), start, tolerance=1e-9) for start in starts]
    (location, log_scale, shape), value = min(ends, key=lambda end: end[1])
    return Gev(centre + spread * float(location), spread * math.exp(log_scale), float(shape), -value - len(x) * math.log(spread))


def level_interval(maxima: npt.ArrayLike, fitted: Gev, p: float, confidence: float = 0.95) -> tuple[float | None, float | None]:
    """The profile-likelihood interval of the level that a maximum exceeds with probability `p`; None: no bound to that side within reach.

    For each supposed level the other two parameters are fitted; the interval is where twice the loss of log-likelihood stays below the chi-square quantile.
    """
    from rtgauge.analysis.chi_square import critical_value

    x = np.asarray(maxima, dtype=np.float64)
    estimate, spread = fitted.level(p), fitted.scale
    scaled, best = (x - estimate) / spread, -fitted.log_likelihood - len(x) * math.log(spread)
    location = (fitted.location - estimate) / spread
    allowed = critical_value(1, 1 - confidence) / 2
    log_y = math.log(-math.log1p(-p))

    def loss(level: float) -> float:
        """What supposing this level costs in log-likelihood, less what the confidence allows; infinite where nothing fits at all."""

        def negative(q: FloatArray) -> tuple[float, FloatArray]:
            return _negative_at(scaled, level, log_y, float(q[0]), float(q[1]))

        # Begin from what fitted the level before; where that is impossible, from the best of some shapes.
        start = np.array(known)
        if not math.isfinite(negative(start)[0]):
            start = min((np.array((place, shape)) for place in (location, known[0]) for shape in SHAPES), key=lambda q: negative(q)[0])
        at, value = newton(negative, start, tolerance=1e-4)
        known[:] = at.tolist()
        return value - best - allowed

    known = [location, fitted.shape]

    def lost(level: float) -> float:
        """The loss as a share of what is allowed, less 1; its square root, since that grows about evenly with the distance and is found in fewer steps."""
        return math.sqrt(max(0.0, loss(level) + allowed) / allowed) - 1

    def edge(direction: int) -> float | None:
        inside, at_inside, step = 0.0, -1.0, 0.25
        while step < FARTHEST_EDGE:
            outside = inside + direction * step
            value = lost(outside)
            if not math.isfinite(value):
                # Nothing fits there at all: come nearer until something does.
                step /= 2
                if step < 1e-4:
                    return estimate + spread * inside
                continue
            if value > 0:
                return estimate + spread * crossing(lost, (inside, at_inside), (outside, value), tolerance=1e-4)
            inside, at_inside, far = outside, value, abs(outside)
            step = far * min(3.0, max(0.5, 1.05 / max(0.1, 1 + value) - 1))  # a little beyond where it would be if it grew evenly
        return None

    return edge(-1), edge(1)


@dataclass(frozen=True)
class Assumption:
    """A test of what the estimate rests on. `holds` is false where it is rejected."""

    name: str
    statistic: float
    p_value: float
    holds: bool
    says: str


def _anderson_darling(ordered: FloatArray) -> FloatArray:
    """The Anderson-Darling distance of sorted samples (last axis) from the distribution fitted to each by its moments."""
    location, scale, shape = (part[..., None] for part in _moments(ordered))
    inner = np.maximum(1 + shape * (ordered - location) / scale, 1e-300)
    u = np.clip(np.exp(-np.exp(np.clip(-np.log(inner) / shape, -700, 700))), 1e-12, 1 - 1e-12)
    n = ordered.shape[-1]
    weights = 2 * np.arange(1, n + 1) - 1
    return -n - (weights * (np.log(u) + np.log1p(-u[..., ::-1]))).sum(axis=-1) / n


def fit_test(maxima: npt.ArrayLike, *, drawn: int = DRAWN, seed: int = 1) -> tuple[float, float]:
    """(Anderson-Darling statistic, p-value) of "these come from a distribution of this family"; the p-value from samples drawn of the fitted one."""
    ordered = np.sort(np.asarray(maxima, dtype=np.float64))
    statistic = float(_anderson_darling(ordered))
    location, scale, shape = (float(part) for part in _moments(ordered))
    exponential = np.random.default_rng(seed).exponential(size=(drawn, len(ordered)))
    samples = np.sort(location + scale * np.expm1(-shape * np.log(exponential)) / shape, axis=-1)
    others = _anderson_darling(samples)
    return statistic, (1 + int((others >= statistic).sum())) / (drawn + 1)


def drift(x: FloatArray) -> tuple[float, float]:
    """(Kendall's tau with time, two-sided p-value) by the test of Mann (1945) and Kendall (1975): normal approximation, variance corrected for ties."""
    n = len(x)
    score = float(np.sign(x[None, :] - x[:, None])[np.triu_indices(n, 1)].sum())
    ties = np.unique(x, return_counts=True)[1]
    pairs, tied = n * (n - 1) / 2, float((ties * (ties - 1)).sum()) / 2
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if variance <= 0:
        return math.nan, math.nan
    return score / math.sqrt(pairs * (pairs - tied)), math.erfc(abs(score) / math.sqrt(2 * variance))


def neighbours(x: FloatArray) -> tuple[float, float]:
    """(Spearman's rank correlation of each value with the next, two-sided p-value from Student's t)."""
    from scipy.special import stdtr

    def ranks(values: FloatArray) -> FloatArray:
        _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
        return (np.cumsum(counts) - (counts - 1) / 2)[place]

    freedom = len(x) - 3
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = np.corrcoef(ranks(x[:-1]), ranks(x[1:]))[0, 1]
        t = rho * np.sqrt(freedom / ((1 - rho) * (1 + rho)))
    return float(rho), float(2 * stdtr(freedom, -abs(t)))


def assumptions(maxima: npt.ArrayLike) -> list[Assumption]:
    """Tests that the maxima neither drift (Mann-Kendall) nor hang together (Spearman's rank correlation of neighbours), and that the family fits."""
    x = np.asarray(maxima, dtype=np.float64)
    tau, p_drift = drift(x)  # scipy.stats has both, and takes longer to import than six records to compare
    rho, p_neighbours = neighbours(x)
    distance, p_fit = fit_test(x)
    found = [
        ("no drift", tau, p_drift, "the maxima drift over time"),
        ("independent blocks", rho, p_neighbours, "neighbouring maxima hang together"),
        ("fit", distance, p_fit, "the distribution of extremes does not fit the maxima"),
    ]
    return [Assumption(name, statistic, p, p >= ASSUMPTION_ALPHA, says) for name, statistic, p, says in found]


@dataclass(frozen=True)
class Level:
    """The latency exceeded once in `activations`; None for a bound that the sample does not give."""

    activations: int
    ns: float
    low_ns: float | None
    high_ns: float | None


@dataclass(frozen=True)
class Tail:
    """The estimate, or why there is none (`cannot`). `not_estimated`: numbers of activations too far beyond the sample, or below a block."""

    cannot: str | None
    blocks: int
    activations_a_block: float
    fitted: Gev | None = None
    assumptions: list[Assumption] = field(default_factory=list[Assumption])
    levels: list[Level] = field(default_factory=list[Level])
    not_estimated: list[int] = field(default_factory=list[int])


def blocks_of(maxima_ns: Sequence[int], counts: Sequence[int]) -> tuple[list[int], list[int]]:
    """Neighbouring windows put together until there are at most MOST_BLOCKS, each of equally many windows; a shorter last one is left out."""
    together = max(1, math.ceil(len(maxima_ns) / MOST_BLOCKS))
    whole = len(maxima_ns) // together * together
    return (
        [max(maxima_ns[i : i + together]) for i in range(0, whole, together)],
        [sum(counts[i : i + together]) for i in range(0, whole, together)],
    )


def estimate(maxima_ns: Sequence[int], counts: Sequence[int], *, activations: Sequence[int] = ACTIVATIONS, confidence: float = 0.95) -> Tail:
    """The levels exceeded once in `activations`, from the largest latency (ns) and the count of each stretch of time.

    A burst of late activations counts once: a level is that of how often lateness begins. Where an assumption does not hold, or the sample is
    too small, there is no estimate and `cannot` says why.
    """
    maxima, sizes = blocks_of(maxima_ns, counts)
    total = sum(counts)
    size = sum(sizes) / len(sizes) if sizes else 0.0

    def cannot(why: str, tests: list[Assumption] | None = None, fitted: Gev | None = None) -> Tail:
        return Tail(why, len(maxima), size, fitted, tests or [])

    if len(maxima) < LEAST_BLOCKS:
        return cannot(f"{len(maxima)} windows of time have a largest value, at least {LEAST_BLOCKS} are needed")
    if size < LEAST_A_BLOCK:
        return cannot(f"a window holds {size:.0f} activations, at least {LEAST_A_BLOCK} are needed")
    if len(set(maxima)) < 10:
        return cannot(f"the largest values take only {len(set(maxima))} different value{'s' if len(set(maxima)) > 1 else ''}")
    tests = assumptions(maxima)
    fitted = fit(maxima)
    broken = [f"{test.says} (p = {test.p_value:.2g})" for test in tests if not test.holds]
    if fitted.shape >= HEAVY:
        broken.append(f"the tail is too heavy (shape {fitted.shape:.2f})")
    if fitted.shape <= -0.5:
        broken.append(f"the shape, {fitted.shape:.2f}, is below -0.5, where the likelihood gives no interval")
    if broken:
        return cannot("; ".join(broken), tests, fitted)
    within = [n for n in activations if size < n <= FURTHEST * total]
    levels: list[Level] = []
    for n in within:
        p = -math.expm1(size * math.log1p(-1 / n))
        low, high = level_interval(maxima, fitted, p, confidence)
        levels.append(Level(n, fitted.level(p), low, high))
    return Tail(None, len(maxima), size, fitted, tests, levels, [n for n in activations if n not in within])
