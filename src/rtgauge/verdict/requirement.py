# SPDX-License-Identifier: MIT
"""Models and parses a requirement on a machine, such as `period=1ms latency<=200us hardness=100%`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from rtgauge.errors import InputError
from rtgauge.nearest_name import nearest
from rtgauge.probe.probe_registry import requirement_metrics
from rtgauge.units import format_duration, parse_duration_ns

SETTINGS = ("period", "hardness", "confidence")
EXAMPLE = '"period=1ms latency<=200us hardness=100%"'
DEFAULT_CONFIDENCE = Fraction(95, 100)
BOTH = ("latency", "response")
"""The metrics that one requirement can bound together."""

LIFE_SAFETY = frozenset({"life-safety", "life-safety-hard", "safety", "safety-critical"})
NO_LIFE_SAFETY = (
    "life-safety is refused: no sample can show that people cannot be hurt, and "
    "rtgauge is not meant for that (Brown & Martin 2010, sec. 1.1); "
    "use hardware and software that are built and certified for it"
)
"""The answer if lives or valuable property depend on a deadline."""

_TERM = re.compile(
    r"\s*([A-Za-z_-]{1,40}|[pP][0-9]{1,3}(?:\.[0-9]{1,15})?)\s*(<=|=<|>=|<|>|==|=|≤)\s*([^\s,;<>=≤]+)\s*[,;]?"
)


@dataclass(frozen=True)
class Requirement:
    """A bound on one metric, within which a share of the activations must stay.

    `hardness`: that share; 1 for all. `confidence`: how certain a verdict on a share below 1 must be.
    `period_ns`: None if the requirement gives no period.
    """

    metric: str
    bound_ns: int
    hardness: Fraction = Fraction(1)
    period_ns: int | None = None
    confidence: Fraction = DEFAULT_CONFIDENCE
    also: tuple[str, int] | None = None
    """A second metric and its bound (ns), within which the activations must stay too."""

    @property
    def each(self) -> list[Requirement]:
        """The requirements with one bound each."""
        if self.also is None:
            return [self]
        metric, bound_ns = self.also
        return [replace(self, also=None), replace(self, metric=metric, bound_ns=bound_ns, also=None)]

    @property
    def allowed(self) -> Fraction:
        """The share of the activations that may exceed the bound."""
        return 1 - self.hardness

    def __str__(self) -> str:
        """Return the requirement as users write it. Parsing this text returns an equal requirement."""
        period = "" if self.period_ns is None else f"period={format_duration(self.period_ns)} "
        confidence = (
            "" if self.confidence == DEFAULT_CONFIDENCE else f" confidence={format_percent(self.confidence)}"
        )
        also = "" if self.also is None else f"{self.also[0]}<={format_duration(self.also[1])} "
        return (
            f"{period}{self.metric}<={format_duration(self.bound_ns)} {also}"
            f"hardness={format_percent(self.hardness)}{confidence}"
        )


def format_percent(share: Fraction) -> str:
    """Return a share in percent, exact if it was a decimal number: Fraction(99999, 100000) -> `"99.999%"`."""
    percent = share * 100
    digits = 0
    while digits < 30 and (percent * 10**digits).denominator != 1:
        digits += 1
    scaled = percent * 10**digits
    whole = str(round(scaled)).rjust(digits + 1, "0")
    return f"{whole[: len(whole) - digits]}{'.' + whole[len(whole) - digits :] if digits else ''}%"


def _wrong(text: str, what: str) -> InputError:
    return InputError(f"requirement '{text}': {what}; write it like {EXAMPLE}")


def _percent(text: str, key: str, value: str) -> Fraction:
    if key == "hardness" and value == "hard":
        return Fraction(1)
    if key == "hardness" and value.lower() in LIFE_SAFETY:
        raise InputError(f"requirement '{text}': {NO_LIFE_SAFETY}")
    match = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,15})?)(%?)", value)
    if match is None:
        raise _wrong(text, f"{key} must be a share in percent, not '{value}'")
    if not match[2]:
        raise _wrong(text, f"{key} '{value}' has no %: is it {value}%?")
    share = Fraction(match[1]) / 100
    if not 0 < share <= 1:
        raise _wrong(text, f"{key} must be more than 0% and at most 100%, not {value}")
    if key == "confidence" and share == 1:
        raise _wrong(text, "no measurement gives a confidence of 100%; give less, such as 99%")
    return share


def _duration(text: str, key: str, value: str) -> int:
    try:
        ns = parse_duration_ns(value)
    except ValueError as error:
        raise _wrong(text, f"{key}: {error}") from None
    if ns <= 0:
        raise _wrong(text, f"{key} must be longer than 0, not {value}")
    return ns


def _values(text: str, metrics: Sequence[str]) -> dict[str, str]:
    """Return key -> value of each term."""
    values: dict[str, str] = {}
    at = 0
    while at < len(text.rstrip()):
        match = _TERM.match(text, at)
        if match is None:
            rest = text[at:].strip()[:40]
            raise _wrong(text, f"'{rest}' is not understood (leave no space between a number and its unit)")
        at = match.end()
        key, sign, value = match[1].lower(), match[2], match[3]
        quantile = re.fullmatch(r"p([0-9.]+)", key)
        if quantile is not None:
            if "hardness" in values:
                instead = f"latency{sign}{value} hardness={quantile[1]}%"
                raise _wrong(text, f"p{quantile[1]} and hardness set the same thing; give {instead}")
            key, values["hardness"] = "latency", f"{quantile[1]}%"
        if key not in (*metrics, *SETTINGS):
            raise _wrong(text, f"unknown key '{key}'{nearest(key, (*metrics, *SETTINGS))}")
        if key in values:
            raise _wrong(text, f"{key} is given twice")
        if key in metrics and sign not in {"<=", "≤"}:
            raise _wrong(text, f"a bound is written {key}<={value}, not {key}{sign}{value}")
        if key in SETTINGS and sign != "=":
            raise _wrong(text, f"{key} is written {key}={value}, not {key}{sign}{value}")
        values[key] = value
    return values


def parse_requirement(text: str) -> Requirement:
    """Parse `period=`, one bound such as `latency<=`, `hardness=` and `confidence=`, in any order.

    There must be a bound or a period. The default bound is `latency<=` half the period, as in Brown and
    Martin (2010, tables 4 to 9). By default, `hardness` is 100% and `confidence` 95%. `p99.9<=TIME` is short
    for `latency<=TIME hardness=99.9%`. Raises InputError, which names the error and, for an unknown key, the
    nearest key.
    """
    if len(text) > 1000:
        raise InputError(f"a requirement of {len(text)} characters is too long; write it like {EXAMPLE}")
    metrics = requirement_metrics()
    values = _values(text, metrics)
    bounds = [key for key in metrics if key in values]
    if len(bounds) > 1 and bounds != list(BOTH):
        raise _wrong(
            text,
            f"{' and '.join(bounds)} cannot be combined; give one bound at a time, or latency with response",
        )
    if bounds == ["gap"] and values.get("hardness", "100%") not in {"100%", "hard"}:
        raise _wrong(text, "a bound on gaps holds for each gap; leave out hardness")
    period = _duration(text, "period", values["period"]) if "period" in values else None
    hardness = _percent(text, "hardness", values["hardness"]) if "hardness" in values else Fraction(1)
    confidence = (
        _percent(text, "confidence", values["confidence"]) if "confidence" in values else DEFAULT_CONFIDENCE
    )
    if bounds:
        also = (bounds[1], _duration(text, bounds[1], values[bounds[1]])) if len(bounds) > 1 else None
        return Requirement(
            bounds[0], _duration(text, bounds[0], values[bounds[0]]), hardness, period, confidence, also
        )
    if period is None:
        raise _wrong(
            text,
            f"give a requirement a period or a bound ({', '.join(f'{metric}<=' for metric in metrics)})",
        )
    if period < 2:
        raise _wrong(text, "half a period of 1ns is not a bound; give one, e.g. latency<=1ns")
    return Requirement("latency", period // 2, hardness, period, confidence)
