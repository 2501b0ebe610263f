# SPDX-License-Identifier: MIT
"""Implements `--live`: an extension shows the runner's progress on a page, too."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, cast

import typer

from rtgauge.errors import InputError
from rtgauge.extension import load, registered

if TYPE_CHECKING:
    from rtgauge.cli.progress import Display
    from rtgauge.runner.context import Progress

Live = Annotated[
    str | None,
    typer.Option(
        "--live",
        metavar="[ADDRESS:PORT]",
        help=(
            "Serve a page that shows the measurement while it runs. If other machines can reach the "
            "address (e.g. 0.0.0.0:8377), the page asks for a token."
        ),
    ),
]


@dataclass(frozen=True)
class LivePage:
    """Shows a measurement on a page while it runs."""

    serve: Callable[[Display, str, str | None], AbstractContextManager[Progress]]
    """Serves the page as `listening` says, for an address, and yields what the runner reports to."""


@contextmanager
def listening(display: Display, address: str | None, require: str | None) -> Generator[Progress]:
    """Yield the object that shows the runner's progress: the display and, with an address, a live page.
    `address`: as --live has it; empty: the default; None: no page. `require`: the run's requirement, or None.

    Raises InputError if the address is wrong or in use, or if no extension serves a page.
    """
    if address is None:
        yield display
        return
    name = next(iter(registered("live_pages")), None)
    if name is None:
        raise InputError("--live needs the extension live; install it, or leave out --live")
    page = cast("LivePage", load("live_pages", name, LivePage))
    with page.serve(display, address, require) as progress:
        yield progress
