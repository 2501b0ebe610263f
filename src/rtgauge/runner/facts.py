# SPDX-License-Identifier: MIT
"""The facts of a target that is held."""

from __future__ import annotations

from typing import Any

from rtgauge.system.facts import FACT_PATHS, facts, more_fact_paths
from rtgauge.target.base import Target


def read_facts(target: Target) -> dict[str, Any]:
    """What a target is and how it is set."""
    files = dict(target.read(FACT_PATHS))
    files |= target.read(more_fact_paths(files))
    return dict(facts(files, {"machine": target.machine}))
