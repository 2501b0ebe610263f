# SPDX-License-Identifier: MIT
"""Plans a gate, which adds pairs of runs until it can decide whether the candidate is worse."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from fractions import Fraction

from rtgauge.analysis.gate_options import KEY, GateOptions, options_of
from rtgauge.analysis.gate_test import looks
from rtgauge.analysis.quantile_interval import LEAST_BEYOND, too_few_beyond
from rtgauge.errors import InputError
from rtgauge.nearest_name import nearest
from rtgauge.plan.alternating_plan import alternating_plan, further_pairs
from rtgauge.plan.make_plan import Overrides, Plan
from rtgauge.probe import probe_registry as probes
from rtgauge.record.alternation import Alternation, pair_of
from rtgauge.record.model import StepKey
from rtgauge.record.reader import Record
from rtgauge.target.address import LOCAL
from rtgauge.units import NS_PER_S, format_count, format_duration, parse_cpu_list
from rtgauge.verdict.gate_pairs import series_names
from rtgauge.verdict.gate_result import GateResult


def gate_plan(source: str, overrides: Overrides, alternation: Alternation, options: GateOptions) -> Plan:
    """Plan the first pair, which shows whether a gate can decide anything here.

    Raises InputError if the number of pairs is impossible, or if not exactly one series of the plan matches.
    """
    looks(options.max_pairs)
    plan = alternating_plan(source, overrides, alternation, 1)
    names = series_names([key for key in plan.steps if key.repeat == 1])
    if options.series is not None:
        matching = [name for name in names if fnmatchcase(name, options.series)]
        if len(matching) != 1:
            what = (
                f" matches several series; name one of {', '.join(matching)}"
                if matching
                else f" is not in the plan{nearest(options.series, names)}"
            )
            raise InputError(f"--series {options.series}{what}")
        options = options.model_copy(update={"series": matching[0]})
    if options.require is None:
        _check_long_enough(plan.steps, options)
    return replace(
        plan, name="gate", written={**plan.written, "name": "gate", KEY: options.model_dump(mode="json")}
    )


def _check_long_enough(steps: Sequence[StepKey], options: GateOptions) -> None:
    """Raise InputError, with the shortest duration that is enough, if a run is too short for the quantile.

    It checks steps with a period on CPUs that are known. The first pair shows whether other steps are long
    enough.
    """
    share = Fraction(options.quantile[1:]) / 100
    for key in steps:
        probe, cpus = probes.get(key.probe), _cpus(key)
        interval_ns, duration_ns = probe.interval_ns(key.parameters), key.parameters.get("duration_ns")
        counted = probe.pace is not None and key.parameters.get(probe.pace.count) is not None
        if interval_ns is None or cpus is None or counted or not isinstance(duration_ns, int):
            continue
        activations = cpus * (duration_ns // interval_ns + 1)
        short = too_few_beyond(activations, share)
        if short is None:
            continue
        shortest_ns = math.ceil(LEAST_BEYOND / (1 - share) / cpus) * interval_ns
        unit_ns = NS_PER_S if shortest_ns > NS_PER_S else NS_PER_S // 10
        longer = format_duration(-(-shortest_ns // unit_ns) * unit_ns)
        raise InputError(
            f"a run of {format_duration(duration_ns)} is too short for {options.quantile} (about "
            f"{format_count(activations)} activations: {short}); give --duration {longer} or longer, or a "
            f"lower --quantile"
        )


def _cpus(key: StepKey) -> int | None:
    """Return on how many CPUs the step measures; None if only the target knows."""
    if key.probe != "wakeup":
        return 1
    named = key.parameters.get("cpu")
    if isinstance(named, str):
        return len(parse_cpu_list(named))
    return len(os.sched_getaffinity(0)) if key.targets["self"] == LOCAL else None


def with_more_pairs(record: Record, max_pairs: int | None) -> dict[str, object]:
    """Let the record's gate measure up to `max_pairs` pairs, and return the keys of the plan that this
    changes; none if that is as many as before, or None.

    Raises InputError for fewer pairs than before, or too many.
    """
    options = options_of(record.run)
    if options is None or max_pairs is None or max_pairs == options.max_pairs:
        return {}
    if max_pairs < options.max_pairs:
        raise InputError(f"--max-pairs {max_pairs} is less than the record's {options.max_pairs}; give more")
    more = options.model_copy(
        update={"max_pairs": max_pairs, "extended_from": (*options.extended_from, options.max_pairs)}
    )
    looks(max_pairs, more.extended_from)
    replaced_keys: dict[str, object] = {KEY: more.model_dump(mode="json")}
    record.run.plan.update(replaced_keys)
    return replaced_keys


def next_pairs(record: Record) -> Sequence[StepKey]:
    """Return the steps of the next pairs; empty if the gate has decided, or cannot decide."""
    result = GateResult.of(record)
    planned = max(pair_of(key.repeat) for key in record.run.planned)
    return further_pairs(record.run, range(planned + 1, planned + result.next_pairs + 1))
