# SPDX-License-Identifier: MIT
"""`rtgauge probe NAME`: one probe, no plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="One probe, no plan: a summary at the end, nothing kept but what is asked for.")

Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output; the rest on standard error.")]


@app.command("wakeup")
def wakeup(
    cpu: Annotated[str | None, typer.Option(help="CPUs to measure, e.g. 0-3,6; default all that may be used.")] = None,
    interval: Annotated[str, typer.Option(help="Between two releases; the papers have 100us.")] = "1ms",
    duration: Annotated[str | None, typer.Option(help="Of the measured phase; default 10s.")] = None,
    count: Annotated[int | None, typer.Option(min=1, help="Activations a CPU, in place of a duration.")] = None,
    priority: Annotated[int, typer.Option(help="Real-time priority, 1 to 99.")] = 98,
    policy: Annotated[str, typer.Option(help="fifo, rr or other.")] = "fifo",
    timer: Annotated[str, typer.Option(help="nanosleep or timerfd.")] = "nanosleep",
    phase: Annotated[str, typer.Option(help="Of the first release against the tick and the other CPUs: random or fixed.")] = "random",
    warm_up: Annotated[str, typer.Option(help="Set aside at the beginning, counted apart.")] = "500ms",
    stop_at: Annotated[str | None, typer.Option(help="End when a latency is larger, e.g. 200us.")] = None,
    dma_latency: Annotated[str, typer.Option(metavar="US|off", help="Keep to C-states that are left within this many us; off: leave them as they are.")] = "0",
    memory_lock: Annotated[str, typer.Option(help="on or off.")] = "on",
    load: Annotated[str, typer.Option(help="Interference beside the probe: idle, cpu, memory, network, scheduler, papers.")] = "idle",
    samples: Annotated[Path | None, typer.Option(help="Raw samples to FILE: .csv, .parquet, or the engine's own format.")] = None,
    require: Annotated[str | None, typer.Option(help='What is asked of the machine, e.g. "latency<=200us".')] = None,
    json: Json = False,
) -> None:
    """Scheduling latency: from the expected release to the first instruction, one thread a CPU.

    Example: rtgauge probe wakeup --cpu 1 --interval 200us --duration 5s --priority 98 --json
    """
    from rtgauge.cli.one_probe import one_probe
    from rtgauge.errors import InputError

    if count is not None and duration is not None:
        raise InputError("give --duration or --count, not both")
    written: dict[str, object] = {
        "interval": interval,
        "priority": priority,
        "policy": policy,
        "timer": timer,
        "phase": phase,
        "warm-up": warm_up,
        "dma-latency": dma_latency,
        "memory-lock": memory_lock,
        "samples": samples is not None,
    }
    optional = {"cpu": cpu, "count": count, "stop-at": stop_at, "duration": duration}
    written |= {name: value for name, value in optional.items() if value is not None}
    raise typer.Exit(one_probe("wakeup", written, load=load, samples=samples, require=require, as_json=json))


@app.command("calibrate")
def calibrate(
    count: Annotated[int, typer.Option(min=1, max=100_000_000, help="Readings of each clock.")] = 100_000,
    json: Json = False,
) -> None:
    """Resolution of each clock and the distribution of the cost of reading it."""
    from rtgauge.cli.one_probe import one_probe

    raise typer.Exit(one_probe("calibrate", {"count": count}, load="idle", samples=None, require=None, as_json=json))
