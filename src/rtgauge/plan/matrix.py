# SPDX-License-Identifier: MIT
"""A step as the plan file has it, and the step that results from defaults, matrix and command line."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from rtgauge.errors import InputError
from rtgauge.load import load_registry as loads
from rtgauge.nearest_name import nearest
from rtgauge.plan.plan_keys import STEP_KEYS, PlanFile
from rtgauge.probe import probe_registry as probes
from rtgauge.probe.descriptor import key_names, normalise
from rtgauge.probe.explain_parameters import KEYS as EXPLAIN_KEYS
from rtgauge.probe.probe_registry import AnyProbe
from rtgauge.record.model import StepKey
from rtgauge.system.deployment.definition import AS_IS, Deployment, parse_deployment
from rtgauge.target.address import LOCAL

DMA_LATENCY = "dma-latency"
SELF = "self"
COMMAND_LINE = "command line"
MAX_STEPS = 10_000
Keys = Mapping[str, object]
"""A step's keys and values, as the plan file has them."""


@dataclass(frozen=True)
class StepEntry:
    """A step as the plan file has it; `place` names it in errors."""

    keys: Keys
    place: str

    @property
    def probe_name(self) -> str:
        """The name of the step's probe."""
        return str(self.keys.get("probe", probes.DEFAULT))

    @cached_property
    def probe(self) -> AnyProbe | None:
        """The step's probe; None if there is none of this name."""
        return probes.PROBES.get(self.probe_name)

    @property
    def in_kernel(self) -> bool:
        """Whether the step's task runs in kernel space."""
        return self.keys.get("space") == "kernel"

    @cached_property
    def allowed(self) -> set[str]:
        """The keys that the step may have."""
        return {*STEP_KEYS, *(key_names(self.probe) if self.probe is not None else ())}

    def given(self, keys: Keys) -> StepEntry:
        """Return the step with these keys set. A key replaces its alternatives too: a count replaces a
        duration.
        """
        probe = StepEntry(keys, self.place).probe if "probe" in keys else self.probe
        groups = probe.parameters.alternatives if probe is not None else ()
        replaced = {other for group in groups if group & keys.keys() for other in group}
        kept = {name: value for name, value in self.keys.items() if name not in replaced}
        return StepEntry({**kept, **keys}, self.place)

    def fitting(self, keys: Keys, allowed: set[str]) -> Keys:
        """Return the keys that this step accepts. A key that no step accepts (not in `allowed`) stays, so
        that a later check refuses it.
        """
        elsewhere = allowed - self.allowed
        if self.in_kernel and "space" not in keys:  # only steps in user space can be explained
            elsewhere |= EXPLAIN_KEYS
        return {name: value for name, value in keys.items() if name not in elsewhere}

    def checked(self) -> StepKey:
        """Return the step. Raises InputError if a key is unknown or not valid."""
        try:
            probe = self.probe or probes.get(self.probe_name)
            load = str(self.keys.get("load", "idle"))
            loads.get(load)
            deployment = parse_deployment(str(self.keys.get("deployment", AS_IS)))
        except InputError as error:
            raise InputError(f"{self.place}: {error}") from None
        written = {name: value for name, value in self.keys.items() if name not in STEP_KEYS}
        for name in written:
            if name not in key_names(probe):
                others = [*STEP_KEYS, *key_names(probe)]
                raise InputError(f"{self.place}: unknown key '{name}'{nearest(name, others)}")
        _keep_c_states(deployment, written, probe, self.place)
        parameters = normalise(probe, written, self.place)
        return StepKey(
            probe=probe.name,
            parameters=parameters,
            load=load,
            deployment=deployment.name,
            targets={SELF: LOCAL, **probe.peers(parameters)},
            repeat=1,
        )

    def checked_with(self, keys: Keys, allowed: set[str]) -> StepKey:
        """Return the step with the command line's keys that fit it. Raises InputError, which says whether the
        plan or the command line is wrong.
        """
        step = self.checked()
        fitting = self.fitting(keys, allowed)
        if not fitting:
            return step
        written = self.keys
        if "probe" in fitting:  # the other probe may not know the keys that the plan sets
            other = StepEntry({"probe": fitting["probe"]}, COMMAND_LINE)
            written = {name: value for name, value in written.items() if name in other.allowed}
        return StepEntry(written, COMMAND_LINE).given(fitting).checked()

    def is_only_for_others(self, keys: Keys, allowed: set[str]) -> bool:
        """Return whether a key of the command line fits only other steps, because this one runs in kernel
        space. An example is a path within user space. Raises InputError if the plan is wrong.
        """
        if not self.in_kernel or "space" in keys:
            return False
        self.checked()
        try:
            self.checked_with(keys, allowed)
        except InputError:
            return True
        return False


def _keep_c_states(deployment: Deployment, written: dict[str, object], probe: AnyProbe, place: str) -> None:
    """If the deployment has C-states on, keep the probe from disabling them."""
    if deployment.c_states != "on" or DMA_LATENCY not in key_names(probe):
        return
    if written.setdefault(DMA_LATENCY, "off") != "off":
        raise InputError(
            f"{place}: {DMA_LATENCY}={written[DMA_LATENCY]} keeps C-states off, but the deployment "
            f"{deployment.name} turns them on; leave out {DMA_LATENCY}"
        )


def step_entries(plan: PlanFile, place: str) -> tuple[list[StepEntry], set[str]]:
    """Return the steps of a plan with the defaults that fit them, and the keys that at least one of them may
    have. Raises InputError if the matrix is wrong.
    """
    # A step may take its probe from the defaults.
    probe = {"probe": plan.defaults.get("probe", probes.DEFAULT)}
    entries = [
        *(StepEntry(probe | keys, f"{place}, step {i}") for i, keys in enumerate(plan.step, 1)),
        *(StepEntry(probe | keys, f"{place}, matrix") for keys in _combinations(plan.matrix, place)),
    ]
    allowed = set[str]().union(*(entry.allowed for entry in {e.probe_name: e for e in entries}.values()))
    entries = [
        StepEntry(entry.fitting(plan.defaults, allowed), entry.place).given(entry.keys) for entry in entries
    ]
    return entries, allowed


def _combinations(matrix: Keys, place: str) -> list[dict[str, object]]:
    """Return every combination of the matrix's lists; a value that is not a list is part of every one. Raises
    InputError if a list is empty, or there are too many.
    """
    if not matrix:
        return []
    axes = [cast("list[object]", value) if isinstance(value, list) else [value] for value in matrix.values()]
    for name, axis in zip(matrix, axes, strict=True):
        if not axis:
            raise InputError(f"{place}: the matrix gives '{name}' an empty list; give at least one value")
    chosen = list(itertools.islice(itertools.product(*axes), MAX_STEPS + 1))
    if len(chosen) > MAX_STEPS:
        raise InputError(f"{place}: the matrix has more than {MAX_STEPS} combinations; give fewer values")
    return [dict(zip(matrix, values, strict=True)) for values in chosen]


def under_each(
    entries: Sequence[StepEntry], loads: Sequence[str] | None, deployments: Sequence[str] | None
) -> list[StepEntry]:
    """Return the steps under each of the command line's loads and deployments; None keeps the plan's own. If
    loads are given, steps that differ only in their load first become one.
    """
    if loads is not None:
        first: dict[str, StepEntry] = {}
        for entry in entries:
            others = sorted((name, value) for name, value in entry.keys.items() if name != "load")
            first.setdefault(repr(others), entry)
        entries = [entry.given({"load": load}) for entry in first.values() for load in loads]
    if deployments is not None:
        entries = [entry.given({"deployment": name}) for entry in entries for name in deployments]
    return list(entries)
