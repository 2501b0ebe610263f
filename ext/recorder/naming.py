# SPDX-License-Identifier: MIT
"""Names the culprit of a moment, as far as the recorder's share of the CPU allows."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rtgauge.errors import RecordError
from rtgauge_ext.recorder.folder import EntrySource

if TYPE_CHECKING:
    from rtgauge.explain.analysis.explanation import Culprit, Kind
    from rtgauge.explain.trace.formats import TraceFormats
    from rtgauge.record.facts import Facts

UNKNOWN = "not explained"
"""The culprit of a moment whose events are damaged, or of an unknown format."""
TURN_S = 0.2
"""The CPU time (s) that may be spent before the engine's output is read again: a full pipe would stop it."""
FIRST_S, MOST_S = 0.5, 5.0
"""The CPU time (s) that may be spent at once: at the beginning, and at most."""


@lru_cache(maxsize=2)
def _formats(formats: bytes) -> TraceFormats:
    from rtgauge.explain.trace.formats import TraceFormats

    return TraceFormats.read(json.loads(formats))


@lru_cache(maxsize=2)
def _facts(facts: bytes) -> Facts | None:
    from rtgauge.record.facts import Facts

    with suppress(ValueError):
        return Facts.model_validate_json(facts)
    return None


def culprit_of(source: EntrySource, moment: dict[str, Any]) -> str:
    """Return what took the most time of a moment. `moment`: the engine's line.

    Waits in one call count together, whoever ended them.
    """
    from rtgauge.explain.analysis.attribution import explain
    from rtgauge.explain.analysis.culprits import with_names
    from rtgauge.explain.analysis.explanation import culprit_name
    from rtgauge.explain.analysis.ranking import general
    from rtgauge.explain.trace.moment import read_moment

    try:
        formats = _formats(source.formats)
        explanation = explain(read_moment(formats, moment), formats.symbols)
    except (RecordError, ValueError):
        return UNKNOWN
    if source.facts and (facts := _facts(source.facts)) is not None:
        explanation = with_names(explanation, facts, watched=True)
    if explanation.moment.is_triggered:
        return explanation.trigger_words
    took_ns: Counter[tuple[Kind, str]] = Counter()
    for part in explanation.parts:
        took_ns[_alike(part.culprit)] += part.ns
    most = max(explanation.parts, key=lambda part: (took_ns[_alike(part.culprit)], part.ns), default=None)
    return culprit_name(general((explanation.main if most is None else most).culprit))


def _alike(culprit: Culprit) -> tuple[Kind, str]:
    from rtgauge.explain.analysis.ranking import general

    common = general(culprit)
    return common.kind, common.name


class Namer:
    """Names culprits within a share of the CPU. What it may not name now can be named later."""

    def __init__(self, share: float) -> None:
        """`share`: of one CPU, 0 to 1."""
        self._share = share
        self._left_s, self._turn_s = FIRST_S, TURN_S
        self._looked_s = time.monotonic()

    def may(self) -> bool:
        """Whether there is CPU time left."""
        now_s = time.monotonic()
        self._left_s = min(MOST_S, self._left_s + self._share * (now_s - self._looked_s))
        self._looked_s = now_s
        return self._left_s > 0 and self._turn_s > 0

    def turn(self) -> None:
        """Begin a new turn: the engine's output has been read."""
        self._turn_s = TURN_S

    def name(self, source: EntrySource, moment: dict[str, Any]) -> str:
        """Return the culprit, and count the time that it took to find it."""
        begun_s = time.process_time()
        name = culprit_of(source, moment)
        took_s = time.process_time() - begun_s
        self._left_s, self._turn_s = self._left_s - took_s, self._turn_s - took_s
        return name
