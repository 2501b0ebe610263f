# SPDX-License-Identifier: MIT
"""Finds probes by name, and imports them when needed. A probe is an object `PROBE`, the descriptor."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from rtgauge import extension
from rtgauge.errors import InputError
from rtgauge.known_extensions import from_where
from rtgauge.nearest_name import nearest
from rtgauge.probe.descriptor import Probe, runtime_of
from rtgauge.record.model import Step
from rtgauge.record.probe_parameters import Parameters

AnyProbe = Probe[Any]
"""A probe of any parameter type, found by its name. Pass it the parameters of its own steps."""


class _Probes(Mapping[str, AnyProbe]):
    """Maps names to descriptors, sorted by the descriptors' `order`, then by name."""

    def __init__(self) -> None:
        self._imported: dict[str, AnyProbe] = {}

    def _load(self, name: str) -> AnyProbe:
        probe = cast("AnyProbe", extension.load("probes", name, Probe))
        if probe.name != name:
            raise InputError(
                f"{extension.registered('probes')[name]} does not describe a probe called {name}; update or "
                "remove the package that adds it"
            )
        return probe

    def __getitem__(self, name: str) -> AnyProbe:
        if name not in self._imported:
            self._imported[name] = self._load(name)
        return self._imported[name]

    def __iter__(self) -> Iterator[str]:
        return iter(
            sorted(
                (name for name in extension.registered("probes") if self._works(name)),
                key=lambda name: (self[name].order, name),
            )
        )

    def _works(self, name: str) -> bool:
        """Return whether the probe can be used. A package that does not load does not hide other probes."""
        try:
            return name in self
        except InputError as error:
            warnings.warn(f"left out: {error}", stacklevel=2)
            return False

    def __len__(self) -> int:
        return sum(1 for _ in self)


PROBES: Mapping[str, AnyProbe] = _Probes()
DEFAULT = "wakeup"
"""The probe of a step that names none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Unknown(Probe[Parameters]):
    """A probe of a newer rtgauge or another tool. rtgauge shows only what it shows for every probe."""

    def arguments(self, parameters: Parameters, samples_dir: str | None) -> list[str]:  # noqa: ARG002 - the same for every probe
        raise InputError(f"unknown probe '{self.name}'")

    def expected_ns(self, parameters: Parameters) -> int | None:  # noqa: ARG002 - the same for every probe
        return None


def get(name: str) -> AnyProbe:
    """Return the probe with that name. Raises InputError, with the nearest name, if there is none."""
    if name not in PROBES:
        raise InputError(f"unknown probe '{name}'{from_where('probes', name) or nearest(name, PROBES)}")
    return PROBES[name]


def probe_of(step: Step) -> AnyProbe:
    """Return the descriptor of the probe that measured a step; a bare one if this rtgauge does not have the
    probe.
    """
    name = step.key.probe
    return PROBES.get(name) or _Unknown(
        name=name,
        help="",
        parameters=Parameters,
        method="",
        metrics=(),
        missed="activations whose release time passed before the task was waiting again",
    )


def operation_of(step: Step) -> str | None:
    """Return the operation whose cost a step measured, such as "semaphore (same-cpu)"; None if there is none.
    Raises RecordError if its parameters are invalid.
    """
    probe = probe_of(step)
    return None if probe.operation is None else probe.operation(probe.own(step.key))


def requirement_metrics() -> list[str]:
    """Return the metrics that a requirement can bound, in the order of the probes."""
    return list(
        dict.fromkeys(
            metric.name for probe in PROBES.values() for metric in probe.metrics if metric.bound is not None
        )
    )


def clock_probe() -> AnyProbe:
    """Return the probe that measures the clocks. Each run begins with it."""
    return next(probe for probe in PROBES.values() if probe.measures_clocks)


class Preset(NamedTuple):
    """A preset's name, and the probe whose metric the preset measures."""

    probe: AnyProbe
    name: str


def preset_of(metric: str) -> Preset | None:
    """Return a preset that measures a metric that requirements can bound; None if there is none."""
    for probe in PROBES.values():
        known = probe.metric(metric)
        if known is not None and known.bound is not None and known.bound.preset is not None:
            return Preset(probe, known.bound.preset)
    return None


def plural_of(metric: str) -> str:
    """Return the plural of a metric: "latency" -> "latencies"."""
    return next(
        (known.plural for probe in PROBES.values() if (known := probe.metric(metric)) is not None),
        f"{metric}s",
    )


def measured_by(tool: str) -> str:
    """Return, in words, the probes that another tool can check, and the runtime."""
    names = [name for name, probe in PROBES.items() if tool in probe.cross_checked]
    return f"{' and '.join(names)} with rt {runtime_of(tool)}"
