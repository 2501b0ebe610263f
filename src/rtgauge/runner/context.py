# SPDX-License-Identifier: MIT
"""What every step of a run shares, and how a step that is not measured ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rtgauge.errors import MeasureError
from rtgauge.record.model import Calibration
from rtgauge.runner.interrupt import Interrupt
from rtgauge.runner.progress import Progress
from rtgauge.runner.resume_state import Kept
from rtgauge.system.priorities import Controller
from rtgauge.target.target import Target

if TYPE_CHECKING:
    from rtgauge.runner.deploy_boot import Boots

TRACE_PARTS = "trace_parts"
STOPPED_EARLY = ("stopped", "died")
"""Reasons of a step that is not finished: it is measured again when the run is resumed."""


class Abandoned(Exception):  # noqa: N818 - no error: the user said so
    """The user ended the run before this step had measured anything."""


def abandon() -> None:
    """What takes long before the measuring begins is not waited for when the user wants to end."""
    raise Abandoned


class LoadFailed(MeasureError):  # noqa: N818 - reads as what it is
    """The load could not be started; the other steps can be measured all the same."""


class NotHere(MeasureError):  # noqa: N818 - reads as what it is
    """This machine has not what the step needs; the other steps can be measured all the same."""


def _keep_nothing(_kept: Kept | None) -> None:
    """For a target where nothing outlives this process."""


@dataclass
class Context:
    """What every step of a run shares."""

    target: Target
    facts: dict[str, Any]
    progress: Progress
    interrupt: Interrupt
    load_warm_up_s: float
    calibrations: list[Calibration] = field(default_factory=list[Calibration])
    controller: Controller | None = None
    group: str | None = None
    """Where to measure, while CPUs are set aside: a control group, or `cpus:LIST`."""
    isolated: list[int] = field(default_factory=list[int])
    not_put_back: list[str] = field(default_factory=list[str])
    """Settings of earlier steps that could not be put back."""
    boots: Boots | None = None
    """Where deployments are brought about by booting."""
    at_armed: Callable[[], None] | None = None
    """What is to be set once the probe is armed: it concerns what the probe itself has made."""
    targets: Mapping[str, Target] = field(default_factory=dict[str, "Target"])
    """Every target of the run by its name: also those that play the other role of a signal probe."""
    keep: Callable[[Kept | None], None] = _keep_nothing
    earlier: Kept | None = None


def now_utc() -> str:
    """ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
