# SPDX-License-Identifier: MIT
"""`rtgauge probe NAME`: one probe, no plan. The commands are made from the probes' descriptors on first use."""

from __future__ import annotations

from typing import Any, cast

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
    """Imports the probes on first use, so that other commands start quickly."""

    def _loaded(self) -> dict[str, Any]:
        if not self.commands:
            from rtgauge.cli.probe_command import make_command
            from rtgauge.probe.registry import PROBES

            probes = typer.Typer(rich_markup_mode=None, add_completion=False)
            for name, probe in PROBES.items():
                probes.command(name, short_help=probe.help)(make_command(probe))
            self.commands.update(cast("Any", typer.main.get_group(probes)).commands)
        return cast("dict[str, Any]", self.commands)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - signature of the base class
        """Names of the probes."""
        return list(self._loaded())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - signature of the base class
        """The command of a probe; None if there is no such probe."""
        return self._loaded().get(cmd_name)


app = typer.Typer(help=HELP, cls=Probes)


@app.callback()
def _probe() -> None:  # pyright: ignore[reportUnusedFunction]
    """Typer needs a callback in a group whose commands are added later."""
