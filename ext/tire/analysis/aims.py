# SPDX-License-Identifier: MIT
"""Reads from the command line what a study of the tire measures: solvers, threads, policies, sizes, times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rtgauge.errors import InputError
from rtgauge.nearest_name import nearest
from rtgauge.units import format_duration, parse_duration_ns
from rtgauge_ext.tire.analysis.runs import SOLVERS
from rtgauge_ext.tire.tire_probe import MOST_NODES, THREAD_WORDS

if TYPE_CHECKING:
    from rtgauge.plan.make_plan import Overrides

FAST_SHARE = 5
"""How much shorter a real-fast run is than a paced one: it only needs a mean, not every late step."""
SHORTEST_NS = 100_000_000
SIZES = (400, 1600, 6400)
POLICIES = ("fifo", "rr", "other")


@dataclass(frozen=True)
class Aims:
    """What a study will measure. `threads`: numbers and words. `rest`: other parameters."""

    solvers: tuple[str, ...] = SOLVERS
    threads: tuple[str, ...] = THREAD_WORDS
    policies: tuple[str, ...] = ("fifo",)
    sizes: tuple[int, ...] = SIZES
    period_ns: int = 10_000_000
    duration_ns: int = 2_000_000_000
    repeats: int | None = None
    rest: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def fast_duration(self) -> str:
        """The duration of a real-fast run, as text."""
        return format_duration(max(SHORTEST_NS, self.duration_ns // FAST_SHARE))

    @property
    def paced_duration(self) -> str:
        """The duration of a paced run, as text; it lasts whole periods."""
        return format_duration(-(-self.duration_ns // self.period_ns) * self.period_ns)

    @property
    def bisections(self) -> int:
        """How many bisections a search makes, and how many runs confirm its result."""
        return self.repeats if self.repeats is not None else 5

    @property
    def several(self) -> tuple[str, ...]:
        """The thread counts above one."""
        return tuple(word for word in self.threads if word not in ("1", "one"))


def _listed(key: str, value: Any) -> list[str]:
    """Split values separated by commas."""
    words = [word.strip() for word in str(value).split(",")]
    if not all(words) or isinstance(value, bool):
        raise InputError(f"--set {key}={value}: give one value, or several separated by commas")
    return words


def _chosen(key: str, value: Any, known: Sequence[str]) -> tuple[str, ...]:
    words = _listed(key, value)
    for word in words:
        if word not in known:
            raise InputError(f"--set {key}={value}: unknown {key} '{word}'{nearest(word, known)}")
    return tuple(dict.fromkeys(words))


def _number(key: str, word: str, most: int) -> int:
    if not (word.isascii() and word.isdigit()) or not 1 <= int(word) <= most:
        raise InputError(f"--set {key}={word}: give numbers from 1 to {most}")
    return int(word)


def _threads(value: Any) -> tuple[str, ...]:
    words = _listed("threads", value)
    known = (word if word in THREAD_WORDS else str(_number("threads", word, 1024)) for word in words)
    return tuple(dict.fromkeys(known))


def _duration_ns(key: str, value: Any) -> int:
    try:
        ns = parse_duration_ns(str(value))
    except ValueError as error:
        raise InputError(f"{key} {value}: {error}") from None
    if ns <= 0:
        raise InputError(f"{key} must be more than 0, not {value}")
    return ns


def aims_of(overrides: Overrides, default: Aims, name: str) -> Aims:
    """Return `default`, changed by the command line. Raises InputError if a value is invalid."""
    for what, given in (("load", overrides.loads), ("deployment", overrides.deployments)):
        if given is not None and len(given) > 1:
            raise InputError(
                f"the study {name} measures under a single {what}; give one, and run the study once for each"
            )
    rest = dict(overrides.parameters)
    aims = default
    if "duration" in rest:
        aims = replace(aims, duration_ns=_duration_ns("--duration", rest.pop("duration")))
    if "period" in rest:
        aims = replace(aims, period_ns=_duration_ns("--set period", rest.pop("period")))
    if "solver" in rest:
        aims = replace(aims, solvers=_chosen("solver", rest.pop("solver"), SOLVERS))
    if "policy" in rest:
        aims = replace(aims, policies=_chosen("policy", rest.pop("policy"), POLICIES))
    if "threads" in rest:
        aims = replace(aims, threads=_threads(rest.pop("threads")))
    if "nodes" in rest:
        sizes = sorted({_number("nodes", word, MOST_NODES) for word in _listed("nodes", rest.pop("nodes"))})
        aims = replace(aims, sizes=tuple(sizes))
    if aims.duration_ns < aims.period_ns:
        duration, period = format_duration(aims.duration_ns), format_duration(aims.period_ns)
        raise InputError(
            f"a run of {duration} is shorter than its period of {period}; give a longer --duration"
        )
    return replace(aims, repeats=overrides.repeats, rest=rest)


GARRE2014, TIRE_SEARCH = "garre2014", "tire-search"
DEFAULTS = {
    TIRE_SEARCH: Aims(repeats=5),
    GARRE2014: Aims(policies=("fifo", "other"), sizes=(100, 400, 1600, 6400, 25600, 102400)),
}
"""The default aims of each study that searches for the largest tire."""


def aims_of_study(name: str, overrides: Overrides) -> Aims:
    """Return the aims of the study `name`. Raises InputError if a value is invalid, or if nodes are given to
    a search.
    """
    aims = aims_of(overrides, DEFAULTS[name], name)
    if name == TIRE_SEARCH and aims.sizes != SIZES:
        raise InputError("the search finds the number of nodes itself; leave nodes out")
    return aims


def searched_policies(name: str, aims: Aims) -> tuple[str, ...]:
    """Return the policies to search for a frontier. garre2014 searches only the first; maps show
    the others.
    """
    return aims.policies[:1] if name == GARRE2014 else aims.policies
