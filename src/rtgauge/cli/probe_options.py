# SPDX-License-Identifier: MIT
"""The options that several probes have, one definition each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output; the rest on standard error.")]
Cpu = Annotated[str | None, typer.Option(metavar="CPUS", help="CPUs to measure, e.g. 0-3,6; default all that may be used.")]
FirstCpu = Annotated[str | None, typer.Option("--cpu", metavar="CPUS", help="The first of them is measured; a second task takes its CPU from the others.")]
Duration = Annotated[str | None, typer.Option(metavar="TIME", help="Measured time, e.g. 5s, 10min; default 5s.")]
Count = Annotated[int | None, typer.Option(metavar="N", min=1, help="Samples to measure, in place of a duration.")]
Priority = Annotated[int, typer.Option(metavar="N", help="Real-time priority, 1 to 99.")]
Policy = Annotated[str, typer.Option(metavar="NAME", help="Scheduling policy: fifo, rr or other.")]
WarmUp = Annotated[str, typer.Option(metavar="TIME", help="Time at the beginning that is counted apart.")]
DmaLatency = Annotated[str, typer.Option(metavar="US|off", help="Keep CPUs out of sleep states that take more us to leave; off: leave them alone.")]
MemoryLock = Annotated[str, typer.Option(metavar="on|off", help="Lock the memory of the measuring program: on or off.")]
Load = Annotated[
    str, typer.Option(metavar="NAME", help="What the machine does meanwhile: idle, cpu, memory, network, scheduler, copy, read:FILE, swarm, papers.")
]
Samples = Annotated[Path | None, typer.Option(metavar="FILE", help="Every single sample into FILE: .csv, .parquet, or else binary, a file a series.")]
Target = Annotated[str, typer.Option(metavar="NAME", help="The machine to measure: local, ssh://[user@]host[:port] or lab:NAME.")]
