# SPDX-License-Identifier: MIT
"""`rtgauge probe NAME` runs one probe without a plan. The commands are made from the probes' descriptors."""

from __future__ import annotations

from collections.abc import Callable

import typer

from rtgauge.cli.lazy_group import LazyGroup

HELP = """Measure with one probe, without a plan. To keep the record, add --save.

\b
Examples:
  rtgauge probe wakeup --cpu 1 --interval 200us --duration 5s
  rtgauge probe response --path loop:eventfd --cycles 100000
  rtgauge probe calibrate
  rtgauge probe wakeup --target ssh://root@board
"""


class Probes(LazyGroup):
    """A group with one command for each probe."""

    def lines(self) -> dict[str, str]:
        """Return probe -> its help, except for `watch`, which is a separate command."""
        from rtgauge.probe.probe_registry import PROBES

        return {probe.name: probe.help for probe in PROBES.values() if probe.command is not None}

    def line(self, name: str) -> str | None:
        """Return the help of a probe; None if it has no command here."""
        from rtgauge.probe.probe_registry import PROBES

        probe = PROBES.get(name)
        return None if probe is None or probe.command is None else probe.help

    def load(self, name: str) -> Callable[..., None]:
        """Make the command of a probe from its descriptor."""
        from rtgauge.cli.probe_command import make_command
        from rtgauge.probe.probe_registry import PROBES

        return make_command(PROBES[name])


app = typer.Typer(help=HELP, cls=Probes, no_args_is_help=True)


@app.callback()
def _probe() -> None:  # pyright: ignore[reportUnusedFunction]
    """Typer needs a callback in a group whose commands are added later."""
