# SPDX-License-Identifier: MIT
"""`rtgauge probe response` and `periodic`."""

from __future__ import annotations

from typing import Annotated

import typer

from rtgauge.cli.probe_options import DmaLatency, Json, Load, MemoryLock, Policy, Priority, Samples, Target, WarmUp

_Path = Annotated[
    str, typer.Option("--path", metavar="PATH", help="The line: loop:eventfd, loop:pipe, loop:socketpair, loop:udp, udp:HOST:PORT or gpio:CHIP:LINES.")
]
_Cpu = Annotated[str | None, typer.Option("--cpu", metavar="CPU", help="CPU of the master, or of the slave where it is alone.")]
_SlaveCpu = Annotated[int | None, typer.Option("--slave-cpu", metavar="CPU", min=0, help="CPU of the slave with --role both; default one of another core.")]
_Duration = Annotated[str | None, typer.Option("--duration", metavar="TIME", help="Measured time, e.g. 5s, 2h; default 10s.")]


def response(
    path: _Path = "loop:eventfd",
    role: Annotated[str, typer.Option(metavar="NAME", help="master: make stimuli and measure; slave: answer; both: two processes on this machine.")] = "both",
    interval: Annotated[str | None, typer.Option(metavar="TIME", help="Fixed time from one stimulus to the next, e.g. 10ms, in place of one drawn.")] = None,
    interval_min: Annotated[str | None, typer.Option(metavar="TIME", help="Time from an answer to the next stimulus is drawn from this; default 3us.")] = None,
    interval_max: Annotated[str | None, typer.Option(metavar="TIME", help="... to this; default 7071us.")] = None,
    cycles: Annotated[int | None, typer.Option(metavar="N", min=1, help="Stimuli to measure, in place of a duration.")] = None,
    duration: _Duration = None,
    timeout: Annotated[str, typer.Option(metavar="TIME", help="After this time an answer is lost.")] = "100ms",
    seed: Annotated[int | None, typer.Option(metavar="N", min=0, help="Draw the same intervals as the run with this seed.")] = None,
    trace_parts: Annotated[bool, typer.Option("--trace-parts", help="Take the response apart by the kernel's irq, softirq and sched tracepoints.")] = False,
    cpu: _Cpu = None,
    slave_cpu: _SlaveCpu = None,
    priority: Priority = 98,
    policy: Policy = "fifo",
    warm_up: WarmUp = "200ms",
    dma_latency: DmaLatency = "0",
    memory_lock: MemoryLock = "on",
    load: Load = "idle",
    samples: Samples = None,
    target: Target = "local",
    json: Json = False,
) -> None:
    """Response: from a stimulus on a line to the answer of a task that waits for it.

    \b
    Examples:
      rtgauge probe response --cycles 100000
      rtgauge probe response --path loop:pipe --interval 10ms --load network
      rtgauge probe response --path gpio:/dev/gpiochip0:17,27 --role master
      rtgauge probe response --path udp:192.168.1.5:7000 --role slave --duration 1h

    Exit status as of rtgauge run.
    """
    written: dict[str, object] = {"path": path, "role": role, "interval": interval, "interval-min": interval_min, "interval-max": interval_max}
    written |= {"cycles": cycles, "duration": duration, "timeout": timeout, "seed": seed, "trace-parts": trace_parts, "cpu": cpu, "slave-cpu": slave_cpu}
    written |= {"priority": priority, "policy": policy, "warm-up": warm_up, "dma-latency": dma_latency, "memory-lock": memory_lock}
    raise typer.Exit(_measure("response", written, load=load, target=target, samples=samples, json=json))


def periodic(
    path: _Path = "loop:eventfd",
    role: Annotated[str, typer.Option(metavar="NAME", help="master: toggle and measure itself; slave: observe; both: two processes on this machine.")] = "both",
    period: Annotated[str, typer.Option(metavar="TIME", help="Of the signal; the line is toggled each half of it.")] = "7071us",
    timer: Annotated[str, typer.Option(metavar="NAME", help="How the task waits: nanosleep, or timerfd as in the papers.")] = "nanosleep",
    cycles: Annotated[int | None, typer.Option(metavar="N", min=1, help="Half-periods to measure, in place of a duration.")] = None,
    duration: _Duration = None,
    cpu: _Cpu = None,
    slave_cpu: _SlaveCpu = None,
    priority: Priority = 98,
    policy: Policy = "fifo",
    warm_up: WarmUp = "200ms",
    dma_latency: DmaLatency = "0",
    memory_lock: MemoryLock = "on",
    load: Load = "idle",
    samples: Samples = None,
    target: Target = "local",
    json: Json = False,
) -> None:
    """Periodic: a task toggles a line at a fixed period; how late is each edge, how even are the half-periods?

    Measured by the task itself, by the other end of the line, or by both.

    \b
    Examples:
      rtgauge probe periodic --period 1ms --duration 10s
      rtgauge probe periodic --path gpio:/dev/gpiochip0:17 --role master --timer timerfd --period 30ms

    Exit status as of rtgauge run.
    """
    written: dict[str, object] = {"path": path, "role": role, "period": period, "timer": timer, "cycles": cycles, "duration": duration, "cpu": cpu}
    written |= {"slave-cpu": slave_cpu, "priority": priority, "policy": policy, "warm-up": warm_up, "dma-latency": dma_latency, "memory-lock": memory_lock}
    raise typer.Exit(_measure("periodic", written, load=load, target=target, samples=samples, json=json))


def _measure(name: str, written: dict[str, object], *, load: str, target: str, samples: Samples, json: bool) -> int:
    """`written`: parameters as a plan has them; what is None was not given."""
    from rtgauge.cli.one_probe import one_probe
    from rtgauge.errors import InputError

    given = {key: value for key, value in written.items() if value is not None}
    if "duration" in given and "cycles" in given:
        raise InputError("give --duration or --cycles, not both")
    return one_probe(name, {**given, "samples": samples is not None}, load=load, target=target, samples=samples, require=None, as_json=json)
