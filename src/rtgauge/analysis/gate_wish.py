# SPDX-License-Identifier: MIT
"""Defines the options of a gate, which its record keeps."""

from __future__ import annotations

from pydantic import Field

from rtgauge.record.model import Run, kept_in_plan
from rtgauge.record.strict_model import Model

KEY = "gate"
"""The key in the plan of run.json."""
QUANTILES = ("p50", "p95", "p99", "p99.9", "p99.99")


class GateWish(Model):
    """The endpoint and the limits of a gate."""

    series: str | None = Field(
        default=None,
        description="the series that decides; None: the load with the largest values in the first pairs",
    )
    quantile: str = Field(default="p99.9", pattern=r"^p(50|95|99|99\.9|99\.99)$")
    larger_than: float = Field(default=0.1, gt=0, description="the change that matters: 0.1 is 10 %")
    max_pairs: int
    require: str | None = Field(
        default=None, description="a bound; how often it is exceeded decides, instead of a quantile"
    )
    kernels: tuple[str | None, str | None] = Field(
        default=(None, None), description="text that the kernel release of each side must contain"
    )
    allowed_marks: list[str] = Field(
        default_factory=list[str], description="doubtful marks with which a run still counts"
    )


def wish_of(run: Run) -> GateWish | None:
    """Return the options of the record's gate; None if it has none. Raises RecordError if the plan does not
    fit GateWish.
    """
    return kept_in_plan(run, KEY, GateWish, "what its gate decides")
