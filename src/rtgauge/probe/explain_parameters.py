# SPDX-License-Identifier: MIT
"""The parameters for explaining a probe's largest latencies by kernel events, and their engine options."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from rtgauge.probe.descriptor import TRACE_INSTANCE
from rtgauge.record.probe_parameters import Parameters
from rtgauge.units import NS_PER_S
from rtgauge.validation import DurationNs, between

EXPLAIN_INSTANCE = f"{TRACE_INSTANCE}-explain"
"""The tracefs instance in which the kernel records its events. The runner makes and removes it."""
COST_SHARE, MOST_COST_NS, LEAST_COST_NS = 0.1, 4 * NS_PER_S, NS_PER_S
"""How long to measure the cost of the events: a share of the measured time, with a maximum and a minimum."""
ARRIVAL = "sched/sched_wakeup"
"""The event that reports when a woken thread arrives in its CPU's queue."""
EVENTS = re.compile(r"[a-z0-9_]{1,48}(/\*?[a-zA-Z0-9_]{0,64})?")


def _check_events(text: str) -> str:
    if len(text) > 1_000 or not all(EVENTS.fullmatch(word) for word in text.split(",")):
        raise ValueError(
            "give the names of events, separated by commas, such as default, sched, sched/sched_switch or "
            "irq_vectors/*_entry"
        )
    return text


class ExplainParameters(Parameters):
    """Parameters for explaining latencies."""

    explain: bool = Field(
        default=False,
        description="record what the kernel does around each new largest latency, and explain this latency",
    )
    explain_above_ns: Annotated[DurationNs, between("1us", "1h")] | None = Field(
        default=None, description="also explain each latency above this time, e.g. 100us"
    )
    explain_events: Annotated[str, AfterValidator(_check_events)] = Field(
        default="default",
        description="kernel events to record, e.g. default,preemptirq; each further event takes more CPU "
        "time",
    )
    explain_buffer_kb: int = Field(
        default=512,
        alias="explain-buffer",
        ge=16,
        le=65_536,
        description="kernel memory for recorded events, in KiB on each CPU",
    )

    def check_explain(self) -> None:
        """Raise ValueError if a key that needs `explain` is set without it."""
        for name in ("explain_above_ns", "explain_events", "explain_buffer_kb"):
            if name in self.model_fields_set and not self.explain:
                alias = type(self).model_fields[name].alias
                raise ValueError(f"{alias} works only together with explain; add explain")


NAMES = frozenset(ExplainParameters.model_fields)
KEYS = frozenset(field.alias or name for name, field in ExplainParameters.model_fields.items())
"""The parameters' names as people write them. The engine's options have other names."""


def is_explained(parameters: Parameters) -> bool:
    """Return whether a step of any probe with these parameters records events for an explanation."""
    return parameters.get("explain") is True


def explain_cost_ns(parameters: ExplainParameters, duration_ns: int) -> int:
    """Return how long (ns) to measure the cost of the events before a measured phase of this length."""
    if not parameters.explain:
        return 0
    return round(min(max(duration_ns * COST_SHARE, LEAST_COST_NS), MOST_COST_NS))


def explain_arguments(
    parameters: ExplainParameters,
    duration_ns: int,
    *,
    cost: bool = True,
    woken_by_others: bool = False,
    more_events: str = "",
) -> list[str]:
    """Return the engine's options.

    `duration_ns`: length of the measured phase. `cost`: whether to measure the cost of the events before it.
    `woken_by_others`: whether something other than a timer of its own CPU may wake a thread. Then the engine
    also records when the woken thread arrives on the other CPU. `more_events`: what this probe needs in
    addition to the default events.
    """
    if not parameters.explain:
        return []
    events = parameters.explain_events
    more = f",{ARRIVAL}" if woken_by_others else ""
    more += f",{more_events}" if more_events else ""
    more = more if "default" in events.split(",") else ""
    options = [
        f"--explain-instance={EXPLAIN_INSTANCE}",
        f"--explain-events={events}{more}",
        f"--explain-buffer-kb={parameters.explain_buffer_kb}",
    ]
    if parameters.explain_above_ns is not None:
        options.append(f"--explain-above-ns={parameters.explain_above_ns}")
    if cost:
        options.append(f"--explain-cost-ns={explain_cost_ns(parameters, duration_ns)}")
    return options
