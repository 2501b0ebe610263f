# SPDX-License-Identifier: MIT
"""The options of `rtgauge audit` and `rtgauge resume` about tunings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli.extension_options import MoreOf
from rtgauge_ext.audit.added_check import Audited


@dataclass(frozen=True)
class AuditedProfile(Audited):
    """The option of `rtgauge audit`."""

    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="RECORD|DIR",
            help=(
                "Show which settings no longer have the values that `rtgauge tune` kept. Give its record or "
                "the folder of --files."
            ),
        ),
    ] = None

    def check(self) -> Callable[[str], int] | None:
        """Return what prints the settings that have drifted; see Audited."""
        from rtgauge_ext.tune.drift import print_drift

        return None if self.profile is None else partial(print_drift, self.profile)


@dataclass(frozen=True)
class MoreOfTuning(MoreOf):
    """The options of `rtgauge resume`."""

    budget: Annotated[
        str | None, typer.Option(metavar="TIME", help="A larger budget for a tuning, counted from its start.")
    ] = None
    files: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write files that keep the settings of a tuning.")
    ] = None
