# SPDX-License-Identifier: MIT
"""`rtgauge probe NAME`: one probe, no plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli import microbenchmarks, signal_probes
from rtgauge.cli.probe_options import Json, Target

HELP = """Measure one thing, without a plan.

Nothing is kept but what is asked for.

\b
Examples:
  rtgauge probe wakeup --cpu 1 --interval 200us --duration 5s
  rtgauge probe response --path loop:eventfd --cycles 100000
  rtgauge probe calibrate
  rtgauge probe wakeup --target ssh://root@board
"""

app = typer.Typer(help=HELP)

for command in (
    microbenchmarks.noise,
    microbenchmarks.switch,
    microbenchmarks.preempt,
    microbenchmarks.semaphore,
    microbenchmarks.inversion,
    signal_probes.periodic,
    signal_probes.response,
):
    app.command(command.__name__)(command)


@app.command("wakeup")
def wakeup(
    cpu: Annotated[str | None, typer.Option(metavar="CPUS", help="CPUs to measure, e.g. 0-3,6; default all that may be used.")] = None,
    interval: Annotated[str, typer.Option(metavar="TIME", help="Time between two wake-ups of a thread; the papers have 100us.")] = "1ms",
    duration: Annotated[str | None, typer.Option(metavar="TIME", help="Measured time, e.g. 5s, 10min; default 10s.")] = None,
    count: Annotated[int | None, typer.Option(metavar="N", min=1, help="Wake-ups to measure on each CPU, in place of a duration.")] = None,
    priority: Annotated[int, typer.Option(metavar="N", help="Real-time priority, 1 to 99.")] = 98,
    policy: Annotated[str, typer.Option(metavar="NAME", help="Scheduling policy: fifo, rr, other or deadline.")] = "fifo",
    timer: Annotated[str, typer.Option(metavar="NAME", help="How the thread waits: nanosleep or timerfd.")] = "nanosleep",
    phase: Annotated[str, typer.Option(metavar="NAME", help="First wake-up against the clock tick: random, or fixed as in the papers.")] = "random",
    warm_up: Annotated[str, typer.Option(metavar="TIME", help="Time at the beginning that is counted apart.")] = "500ms",
    stop_at: Annotated[str | None, typer.Option(metavar="TIME", help="End when a latency is larger, e.g. 200us.")] = None,
    dma_latency: Annotated[str, typer.Option(metavar="US|off", help="Keep CPUs out of sleep states that take more us to leave; off: leave them alone.")] = "0",
    memory_lock: Annotated[str, typer.Option(metavar="on|off", help="Lock the memory of the measuring program: on or off.")] = "on",
    load: Annotated[str, typer.Option(metavar="NAME", help="What the machine does meanwhile: idle, cpu, memory, network, scheduler, papers.")] = "idle",
    target: Target = "local",
    samples: Annotated[Path | None, typer.Option(metavar="FILE", help="Every single latency into FILE: .csv, .parquet, or else binary, a file a CPU.")] = None,
    require: Annotated[str | None, typer.Option(metavar="TEXT", help='What is asked of the machine, e.g. "latency<=200us".')] = None,
    json: Json = False,
) -> None:
    """Scheduling latency: how late a thread wakes.

    On each CPU one thread sleeps until a given time, reads the clock when it runs again, and notes the difference.

    \b
    Examples:
      rtgauge probe wakeup --cpu 1 --interval 200us --duration 5s --priority 98
      rtgauge probe wakeup --load cpu --require "latency<=200us"
      rtgauge probe wakeup --count 100000 --samples latencies.csv
      rtgauge probe wakeup --duration 1h --stop-at 500us --json

    Exit status as of rtgauge run.
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
    raise typer.Exit(one_probe("wakeup", written, load=load, target=target, samples=samples, require=require, as_json=json))


@app.command("taskset")
def taskset(
    file: Annotated[str, typer.Argument(metavar="FILE.toml", help="The task set, as for rtgauge sched.")],
    duration: Annotated[str, typer.Option(metavar="TIME", help="Measured time, e.g. 10s, 10min.")] = "10s",
    execution: Annotated[str, typer.Option(metavar="wall|cpu", help="What busy loops burn: wall time as in the paper, or CPU time.")] = "wall",
    policy: Annotated[str, typer.Option(metavar="NAME", help="Scheduling policy: fifo, rr or deadline.")] = "fifo",
    cpu: Annotated[int | None, typer.Option(metavar="CPU", help="All tasks on this CPU, whatever the file says.")] = None,
    pin: Annotated[str, typer.Option(metavar="on|off", help="Hold each task on its CPU; off: for policy deadline, which takes no pinned task.")] = "on",
    force: Annotated[bool, typer.Option("--force", help="Run a set that overloads its CPU, for 10 s at the most.")] = False,
    warm_up: Annotated[str, typer.Option(metavar="TIME", help="Time at the beginning that is counted apart.")] = "500ms",
    dma_latency: Annotated[str, typer.Option(metavar="US|off", help="Keep CPUs out of sleep states that take more us to leave; off: leave them alone.")] = "0",
    memory_lock: Annotated[str, typer.Option(metavar="on|off", help="Lock the memory of the measuring program: on or off.")] = "on",
    load: Annotated[str, typer.Option(metavar="NAME", help="What the machine does meanwhile: idle, cpu, memory, network, scheduler, papers.")] = "idle",
    target: Target = "local",
    samples: Annotated[Path | None, typer.Option(metavar="FILE", help="Every single value into FILE: .csv, .parquet, or else binary, a file a series.")] = None,
    json: Json = False,
) -> None:
    """A set of periodic tasks, run for real: does it keep its deadlines, and what does the calculation say?

    Each task burns its execution time in each period. Shown are period, response, jitter, release latency,
    deadline misses and pre-emptions of each, beside the calculated response.

    \b
    Examples:
      rtgauge probe taskset control.toml --duration 1min
      rtgauge probe taskset control.toml --execution cpu --load cpu
      rtgauge probe taskset control.toml --policy deadline --pin off

    Exit status as of rtgauge run.
    """
    from rtgauge.cli.one_probe import one_probe

    written: dict[str, object] = {
        "duration": duration,
        "execution": execution,
        "policy": policy,
        "pin": pin,
        "force": force,
        "warm-up": warm_up,
        "dma-latency": dma_latency,
        "memory-lock": memory_lock,
        "samples": samples is not None,
    }
    needed: dict[str, object] = {"file": file, "force": force, "duration": duration, "warm-up": warm_up}
    if cpu is not None:
        needed["cpu"] = cpu
    raise typer.Exit(one_probe("taskset", written, load=load, target=target, samples=samples, require=None, as_json=json, needed=needed))


@app.command("calibrate")
def calibrate(
    count: Annotated[int, typer.Option(min=1, max=100_000_000, metavar="N", help="Readings of each clock.")] = 100_000,
    target: Target = "local",
    json: Json = False,
) -> None:
    """Clocks: the resolution of each, and what it costs to read it.

    \b
    Example:
      rtgauge probe calibrate --count 1000000
    """
    from rtgauge.cli.one_probe import one_probe

    raise typer.Exit(one_probe("calibrate", {"count": count}, load="idle", target=target, samples=None, require=None, as_json=json))
