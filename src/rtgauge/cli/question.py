# SPDX-License-Identifier: MIT
"""Says in words what a record asks, for the options that `rtgauge resume` refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtgauge.analysis.gate_options import GateOptions
    from rtgauge.record.model import Run, StepKey

MOST_NAMED = 3
"""The most probes that are named. Otherwise the rest is only counted."""


def question_of(run: Run) -> str:
    """Return what a record asks: "p99 of wakeup latency under idle, 10 % larger, 12 pairs". Raises
    RecordError if its plan is damaged.
    """
    from rtgauge.analysis.gate_options import options_of
    from rtgauge.cli.decided import asker_of
    from rtgauge.units import plural

    gate = options_of(run)
    if gate is not None:
        return gate_question(gate, run.planned)
    asker = asker_of(run)
    if asker is not None:
        return asker.question(run)
    parts = [measured(run.planned), *([run.requirement] if run.requirement else [])]
    return ", ".join([*parts, plural(len(run.planned), "step")])


def gate_question(options: GateOptions, planned: Sequence[StepKey]) -> str:
    """Return what a gate decides. `planned`: the steps of one of its runs, or of all of them."""
    from rtgauge.units import format_size, plural

    what = measured(planned)
    if options.series is not None:
        probe, metric, load = f"{options.series}//".split("/")[:3]
        what = f"{probe} {metric} under {load}"
    decides = f"{options.quantile} of" if options.require is None else f"violations of {options.require} by"
    return f"{decides} {what}, {format_size(options.larger_than)}, {plural(options.max_pairs, 'pair')}"


def measured(planned: Sequence[StepKey]) -> str:
    """Return what steps measure, and under which loads: "wakeup latency under idle, cpu"."""
    from rtgauge.probe import probe_registry

    names: list[str] = []
    for probe in map(probe_registry.get, dict.fromkeys(key.probe for key in planned)):
        metrics = [metric.name for metric in probe.metrics]
        names.append(
            f"{probe.name} {'latency' if 'latency' in metrics else metrics[0]}" if metrics else probe.name
        )
    more = len(names) - MOST_NAMED
    what = ", ".join([*names[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])])
    return f"{what} under {', '.join(dict.fromkeys(key.load for key in planned))}"
