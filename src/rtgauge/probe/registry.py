# SPDX-License-Identifier: MIT
"""Finds probes by name, and imports them when needed. A probe is a module of this package with a descriptor
`PROBE`, or another package's entry point in the group `rtgauge.probes` (the probe's name = its descriptor).
"""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple, cast

import rtgauge.probe
from rtgauge.errors import InputError
from rtgauge.probe.descriptor import Probe, runtime_of
from rtgauge.record.model import Step
from rtgauge.record.parameters import Parameters
from rtgauge.suggest import nearest

GROUP = "rtgauge.probes"
"""The entry point group in which packages register their probes."""


AnyProbe = Probe[Any]
"""A probe of any parameter type, found by its name. Pass it the parameters of its own steps."""


class _Probes(Mapping[str, AnyProbe]):
    """Maps names to descriptors, sorted by the descriptors' `order`, then by name.

    This package's probes are in the modules with their names.
    """

    def __init__(self) -> None:
        self._modules = {module.name for module in pkgutil.iter_modules(rtgauge.probe.__path__)}
        self._imported: dict[str, AnyProbe] = {}

    @cached_property
    def _registered(self) -> dict[str, EntryPoint]:
        # Look up entry points only for a name that this package lacks: it scans every installed package.
        return {point.name: point for point in entry_points(group=GROUP) if point.name not in self._modules}

    def _load(self, name: str) -> AnyProbe | None:
        if name in self._modules:
            found: AnyProbe | None = getattr(import_module(f"rtgauge.probe.{name}"), "PROBE", None)
            return found
        point = self._registered.get(name)
        if point is None:
            return None
        try:
            probe: Any = point.load()
        except (ImportError, AttributeError) as error:
            raise InputError(
                f"the package that registers the probe {name} cannot be used ({point.value}: {error}); "
                f"update or remove that package"
            ) from None
        if not isinstance(probe, Probe) or cast("AnyProbe", probe).name != name:
            raise InputError(
                f"{point.value} is not the descriptor of a probe called {name}; update or remove its package"
            )
        return cast("AnyProbe", probe)

    def __getitem__(self, name: str) -> AnyProbe:
        if name not in self._imported:
            probe = self._load(name)
            if probe is None:
                raise KeyError(name)
            self._imported[name] = probe
        return self._imported[name]

    def __iter__(self) -> Iterator[str]:
        return iter(
            sorted(
                (name for name in self._modules | self._registered.keys() if self._works(name)),
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
        raise InputError(f"unknown probe '{name}'{nearest(name, PROBES)}")
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
        missed="activations whose release time passed before the task came back to wait",
    )


def requirement_metrics() -> list[str]:
    """Return the metrics that a requirement can bound, in the order of the probes."""
    return list(
        dict.fromkeys(
            metric.name for probe in PROBES.values() for metric in probe.metrics if metric.bound is not None
        )
    )


def clock_probe() -> AnyProbe:
    """Return this package's probe that measures the clocks. Each run begins with it."""
    own = (PROBES.get(module.name) for module in pkgutil.iter_modules(rtgauge.probe.__path__))
    return next(probe for probe in own if probe is not None and probe.measures_clocks)


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
