# SPDX-License-Identifier: MIT
"""`rtgauge probe tire`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli.probe_options import Cpu, DmaLatency, Json, Load, MemoryLock, Policy, Priority, Samples, Target, WarmUp

DEFAULT_NODES = 4000
_STABLE = "default: stable, by nodes and mass."


def tire(
    solver: Annotated[str, typer.Option(metavar="NAME", help="halo (fast), semaphore (the paper's) or serial.")] = "halo",
    nodes: Annotated[int, typer.Option(metavar="N", help="Point masses, a multiple of 4, 4 to 16000000.")] = DEFAULT_NODES,
    threads: Annotated[str, typer.Option(metavar="N", help="A number, or one, cores, hardware-threads, twice (two a hardware thread).")] = "1",
    period: Annotated[str, typer.Option(metavar="TIME", help="Real-time: a step each, e.g. 10ms; 0: real-fast, as fast as possible.")] = "0",
    steps: Annotated[int | None, typer.Option(metavar="N", min=1, help="Steps to measure, in place of a duration.")] = None,
    duration: Annotated[str | None, typer.Option(metavar="TIME", help="Measured time, e.g. 5s, 1min; default 5s.")] = None,
    policy: Policy = "fifo",
    priority: Priority = 80,
    cpu: Cpu = None,
    without: Annotated[str, typer.Option(metavar="NAME", help="Leave springs or integration out of a step, to know what they cost.")] = "none",
    free_running: Annotated[bool, typer.Option("--free-running", help="semaphore: the paper to the letter; a neighbour may be a step ahead.")] = False,
    mass: Annotated[str, typer.Option(metavar="KG", help="Of the whole tire.")] = "10",
    radius: Annotated[str, typer.Option(metavar="M", help="Of the tire.")] = "0.3",
    height: Annotated[str, typer.Option(metavar="M", help="From which it falls.")] = "0.5",
    gravity: Annotated[str, typer.Option(metavar="M/S2", help="0: none.")] = "9.81",
    speed: Annotated[str, typer.Option(metavar="M/S", help="To the right while it rolls.")] = "0",
    stiffness: Annotated[str | None, typer.Option(metavar="N/M", help=f"Of a spring; {_STABLE}")] = None,
    damping: Annotated[str | None, typer.Option(metavar="NS/M", help=f"Of a spring; {_STABLE}")] = None,
    floor: Annotated[str, typer.Option(metavar="on|off", help="The floor: on or off.")] = "on",
    state: Annotated[Path | None, typer.Option(metavar="FILE", help="Final positions and velocities into FILE: .csv, .npy, or else binary.")] = None,
    warm_up: WarmUp = "200ms",
    dma_latency: DmaLatency = "0",
    memory_lock: MemoryLock = "on",
    load: Load = "idle",
    samples: Samples = None,
    search: Annotated[bool, typer.Option("--search", help="Find the largest tire that keeps every deadline, for each number of threads.")] = False,
    repeats: Annotated[int | None, typer.Option(min=1, max=100, metavar="N", help="With --search: bisections, and runs that confirm; default 5.")] = None,
    target: Target = "local",
    json: Json = False,
) -> None:
    """Tire: a physical simulation on several threads, as fast as possible or one step each period.

    Point masses on a circle, joined by spring-dampers, fall on a floor. Real-fast tells how many steps of how many
    nodes the machine computes in a second; real-time tells whether each step is done at its deadline.

    \b
    Examples:
      rtgauge probe tire --solver halo --nodes 4000 --threads 2 --steps 6000
      rtgauge probe tire --solver semaphore --threads cores --period 10ms --duration 1min
      rtgauge probe tire --nodes 40 --steps 100 --state drop.csv
      rtgauge probe tire --search --solver semaphore,halo --threads one,cores,twice --duration 2s
          the real-time frontier; `rtgauge run tire-search` keeps a record of it

    Exit status as of rtgauge run.
    """
    from rtgauge.cli.one_probe import one_probe
    from rtgauge.errors import InputError

    if repeats is not None and not search:
        raise InputError("--repeats is for --search")
    if duration is not None and steps is not None:
        raise InputError("give --duration or --steps, not both")
    written: dict[str, object] = {"solver": solver, "nodes": nodes, "threads": threads, "period": period, "policy": policy, "priority": priority}
    written |= {"without": without, "free-running": free_running, "mass": mass, "radius": radius, "height": height, "gravity": gravity, "speed": speed}
    written |= {"floor": floor, "state": state is not None, "warm-up": warm_up, "dma-latency": dma_latency, "memory-lock": memory_lock}
    optional = {"cpu": cpu, "steps": steps, "duration": duration, "stiffness": stiffness, "damping": damping}
    given = {key: value for key, value in written.items() if value is not None} | {key: value for key, value in optional.items() if value is not None}
    given["samples"] = samples is not None
    if search:
        from rtgauge.cli.tire_search import tire_search

        refused: dict[str, object] = {"--steps": steps, "--samples": samples, "--state": state, "--nodes": None if nodes == DEFAULT_NODES else nodes}
        refused |= {"--without": None if without == "none" else without, "--free-running": free_running or None}
        raise typer.Exit(tire_search(given, refused, load=load, target=target, repeats=repeats, as_json=json))
    raise typer.Exit(one_probe("tire", given, load=load, target=target, samples=samples, require=None, as_json=json, state=state))
