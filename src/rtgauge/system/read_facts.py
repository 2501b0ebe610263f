# SPDX-License-Identifier: MIT
"""The facts of a machine, without holding it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtgauge.system.facts import FACT_PATHS, facts, more_fact_paths
from rtgauge.target.factory import reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


def read_machine(target: str, more_paths: Sequence[str] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
    """(facts, files) of a target in two batches; `more_paths` are read with the first. Raises InputError or MeasureError."""
    with reader(target) as (machine, read):
        return facts_by(read, machine, more_paths)


def facts_by(read: Callable[[Iterable[str]], Mapping[str, Any]], machine: str, more_paths: Sequence[str] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
    """(facts, files) by a target's engine's verb `read`; `machine`: what its `uname -m` says."""
    files: dict[str, Any] = dict(read([*FACT_PATHS, *more_paths]))
    files |= read(more_fact_paths(files))
    return facts(files, {"machine": machine}), files
