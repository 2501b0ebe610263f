# SPDX-License-Identifier: MIT
"""`rtgauge toy`."""

import typer


def toy() -> None:
    """Say what a toy is."""
    typer.echo("a toy reads the clock twice")
