# SPDX-License-Identifier: MIT
"""`rtgauge probe NAME`: one probe, no plan.

The commands are made from the probes' descriptors on first use.
"""

from __future__ import annotations

import typer

from rtgauge.cli.lazy_group import LazyGroup

HELP = """Measure with one probe, without a plan.

The record is kept with --save.

\b
Examples:
  rtgauge probe wakeup --cpu 1 --interval 200us --duration 5s
  rtgauge probe response --path loop:eventfd --cycles 100000
  rtgauge probe calibrate
  rtgauge probe wakeup --target ssh://root@board
"""


class Probes(LazyGroup):
    """A command a probe."""

    def names(self) -> list[str]:
        """Names of the probes."""
        from rtgauge.probe.registry import PROBES

        return list(PROBES)

    def add(self, name: str, app: typer.Typer) -> None:
        """Make the command of a probe from its descriptor."""
        from rtgauge.cli.probe_command import make_command
        from rtgauge.probe.registry import PROBES

        probe = PROBES[name]
        app.command(name, short_help=probe.help)(make_command(probe))


app = typer.Typer(help=HELP, cls=Probes)


@app.callback()
def _probe() -> None:  # pyright: ignore[reportUnusedFunction]
    """Typer needs a callback in a group whose commands are added later."""
