# SPDX-License-Identifier: MIT
"""`rtgauge probe NAME`: one probe, no plan. The commands are made from the probes' descriptors on first use."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

HELP = """Measure with one probe, without a plan.

The record is kept with --save.

\b
Examples:
  rtgauge probe wakeup --cpu 1 --interval 200us --duration 5s
  rtgauge probe response --path loop:eventfd --cycles 100000
  rtgauge probe calibrate
  rtgauge probe wakeup --target ssh://root@board
"""


class Probes(TyperGroup):
    """Imports the probes on first use, and makes the command of one when it is asked for, so that commands start quickly."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - signature of the base class
        """Names of the probes."""
        from rtgauge.probe.registry import PROBES

        return list(PROBES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a probe; None if there is no such probe."""
        from rtgauge.cli.probe_command import make_command
        from rtgauge.probe.registry import PROBES

        probe = PROBES.get(cmd_name)
        if probe is None:
            self.commands.update({name: self.get_command(ctx, name) for name in PROBES})  # among which typer looks for one of a like name
            return None
        if cmd_name not in self.commands:
            probes = typer.Typer(rich_markup_mode=None, add_completion=False)
            probes.command(cmd_name, short_help=probe.help)(make_command(probe))
            self.commands[cmd_name] = typer.main.get_command(probes)
        return self.commands[cmd_name]


app = typer.Typer(help=HELP, cls=Probes)


@app.callback()
def _probe() -> None:  # pyright: ignore[reportUnusedFunction]
    """Typer needs a callback in a group whose commands are added later."""
