# SPDX-License-Identifier: MIT
"""What a tuning keeps at each boot: prints which values have drifted, and undoes `rtgauge tune apply`."""

from __future__ import annotations

from pathlib import Path

import typer

from rtgauge.cli.kept_settings import Keeper
from rtgauge.errors import EXIT_FAILS, EXIT_OK


def print_drift(profile: Path, target: str) -> int:
    """Print the settings that have drifted from a profile. Return the exit status, 1 if there are any."""
    from rtgauge.units import plural
    from rtgauge_ext.tune.drift import drifted

    kept = drifted(profile, target)
    changed = {value: now for value, now in kept.items() if now is not None}
    for value, now in changed.items():
        typer.echo(f"{value.path} is {now}; rtgauge tune kept {value.wanted}")
    typer.echo(f"{len(changed)} of {plural(len(kept), 'kept setting')} drifted")
    return EXIT_FAILS if changed else EXIT_OK


def _undo() -> bool:
    """Undo `rtgauge tune apply` on this machine. Return whether there was something to undo."""
    from rtgauge.units import plural
    from rtgauge_ext.tune.installing import is_installed, uninstall

    if not is_installed():
        return False
    back, left = uninstall(0.0, lambda reason: typer.echo(reason, err=True))
    for line in left:
        typer.echo(f"left as it is: {line}")
    typer.echo(f"restored {plural(back, 'setting')} and removed the files that the tuning had installed")
    return True


KEPT = Keeper(_undo)
