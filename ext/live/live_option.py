# SPDX-License-Identifier: MIT
"""The option `--live` of the commands that measure."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.extension_options import WhileMeasuring

if TYPE_CHECKING:
    from rtgauge.cli.progress import Display
    from rtgauge.runner.context import Progress


@dataclass(frozen=True)
class LiveOption(WhileMeasuring):
    """Shows the measurement on a page, too."""

    live: Annotated[
        str | None,
        typer.Option(
            "--live",
            metavar="[ADDRESS:PORT]",
            help=(
                "Serve a page that shows the measurement while it runs. If other machines can reach the "
                "address (e.g. 0.0.0.0:8377), the page asks for a token."
            ),
        ),
    ] = None
    """The address as it was given; empty: the default; None: no page."""

    def listening(self, display: Display, require: str | None) -> AbstractContextManager[Progress] | None:
        """Serve the page; see WhileMeasuring."""
        from rtgauge_ext.live.live_progress import listening

        return None if self.live is None else listening(display, self.live, require)
