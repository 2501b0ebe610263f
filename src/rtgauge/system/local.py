# SPDX-License-Identifier: MIT
"""The facts of this machine, without holding it."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

from rtgauge.system.facts import FACT_PATHS, facts, more_fact_paths
from rtgauge.target.local import read_local

if TYPE_CHECKING:
    from collections.abc import Sequence


def read_this_machine(more_paths: Sequence[str] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
    """(facts, files) of this machine in two batches; `more_paths` are read with the first. Raises MeasureError."""
    files: dict[str, Any] = dict(read_local([*FACT_PATHS, *more_paths]))
    files |= read_local(more_fact_paths(files))
    return facts(files, {"machine": platform.machine()}), files
