# SPDX-License-Identifier: MIT
"""The keys of a plan file: a list of steps, or a matrix of lists to combine."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from rtgauge.validation import NAME_PATTERN, DurationNs, between

STEP_KEYS = ("probe", "load", "deployment")
CrossCheckTool = Literal[
    "cyclictest", "rtla", "xenomai-latency", "xenomai-switchtest", "rtai-latency", "rtai-switches"
]
CROSS_CHECK_TOOLS: tuple[str, ...] = get_args(CrossCheckTool)


class PlanFile(BaseModel):
    """The content of a plan's TOML file. Steps and the matrix also take their probe's parameters as keys."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    name: str = Field(default="plan", min_length=1, max_length=40, pattern=NAME_PATTERN)
    description: str = ""
    repeats: int = Field(default=1, ge=1, le=1000)
    order: Literal["random", "as-written"] = "random"
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    targets: list[str] = Field(
        default_factory=lambda: ["local"],
        min_length=1,
        max_length=100,
        description="the machines to measure, one after the other",
    )
    require: str | None = None
    allow_left_out: bool = Field(
        default=False,
        alias="allow-left-out",
        description="whether the verdict may be `holds` even if a load or a step could not be measured",
    )
    cross_check: CrossCheckTool | None = Field(default=None, alias="cross-check")
    load_warm_up_ns: Annotated[DurationNs, between("0s", "1h")] = Field(
        default=1_500_000_000, alias="load-warm-up"
    )
    controller: bool = Field(
        default=False,
        description=(
            "run rtgauge's controller at FIFO 10, cap other real-time threads at 80, and raise the IRQ "
            "threads of the devices in `raise` to 99"
        ),
    )
    raised: list[Annotated[str, Field(min_length=1, max_length=64)]] = Field(
        default_factory=list,
        alias="raise",
        description="devices whose IRQ threads get priority FIFO 99 from the controller",
    )
    boot: Literal["each-deployment"] | None = Field(
        default=None,
        description="boot the guest again for each deployment, instead of changing settings of the "
        "running guest",
    )
    defaults: dict[str, Any] = Field(
        default_factory=dict, description="values of keys, used by every step that does not set them itself"
    )
    step: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    matrix: dict[str, Any] = Field(
        default_factory=dict,
        description="key -> list of values; rtgauge makes a step for every combination of the values",
    )


def plan_keys() -> list[str]:
    """Return the keys as people write them in the file."""
    return [field.alias or name for name, field in PlanFile.model_fields.items()]
