# SPDX-License-Identifier: MIT
"""The option `--cross-check` of `rtgauge run`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.extension_options import ChangesPlan

if TYPE_CHECKING:
    from rtgauge.plan.make_plan import Overrides


@dataclass(frozen=True)
class CrossCheckOption(ChangesPlan):
    """Also measures with another tool."""

    cross_check: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=(
                "Also measure with another tool, alternately: cyclictest, rtla; xenomai-latency, "
                "xenomai-switchtest; rtai-latency, rtai-switches."
            ),
        ),
    ] = None

    def changed(self, overrides: Overrides) -> Overrides:
        """Name the tool in the changes to the plan."""
        return replace(overrides, cross_check=self.cross_check)
