# SPDX-License-Identifier: MIT
"""`rtgauge probe noise`, `switch`, `preempt`, `semaphore` and `inversion`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli.probe_options import Count, Cpu, DmaLatency, Duration, FirstCpu, Json, Load, MemoryLock, Policy, Priority, Samples, Target, WarmUp

_Placed = Annotated[str, typer.Option(metavar="NAME", help="Where the second task runs: same-cpu, same-core or other-core.")]


def _measure(name: str, written: dict[str, object], *, load: str, target: str, samples: Path | None, json: bool) -> int:
    """`written`: parameters as a plan has them; what is None was not given."""
    from rtgauge.cli.one_probe import one_probe
    from rtgauge.errors import InputError

    given = {key: value for key, value in written.items() if value is not None}
    if "duration" in given and "count" in given:
        raise InputError("give --duration or --count, not both")
    return one_probe(name, {**given, "samples": samples is not None}, load=load, target=target, samples=samples, require=None, as_json=json)


def noise(
    cpu: Cpu = None,
    threshold: Annotated[str, typer.Option(metavar="TIME", help="What is shorter is no gap.")] = "1us",
    round_: Annotated[str, typer.Option("--round", metavar="TIME", help="From one busy stretch to the next.")] = "100ms",
    busy: Annotated[str, typer.Option(metavar="TIME", help="Busy time of each round, 80 % of it at the most.")] = "75ms",
    interrupts: Annotated[str, typer.Option(metavar="on|off", help="Count interrupts after each gap, where that is cheap.")] = "on",
    duration: Duration = None,
    count: Count = None,
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
    """Noise: how often and for how long a CPU is taken from a task that wants nothing but to run.

    Each gap is laid to another task, to an interrupt, or to what is below the kernel: hardware, firmware, a hypervisor.

    \b
    Examples:
      rtgauge probe noise --duration 10s
      rtgauge probe noise --cpu 1 --threshold 5us --load network

    Exit status as of rtgauge run.
    """
    written: dict[str, object] = {"cpu": cpu, "threshold": threshold, "round": round_, "busy": busy, "interrupts": interrupts, "duration": duration}
    written |= {"count": count, "priority": priority, "policy": policy, "warm-up": warm_up, "dma-latency": dma_latency, "memory-lock": memory_lock}
    raise typer.Exit(_measure("noise", written, load=load, target=target, samples=samples, json=json))


def switch(
    cpu: FirstCpu = None,
    tasks: Annotated[int, typer.Option(metavar="N", help="Tasks that take turns, 2 to 64.")] = 2,
    duration: Duration = None,
    count: Count = None,
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
    """Task switch: tasks of equal priority on one CPU yield to each other.

    \b
    Examples:
      rtgauge probe switch --count 100000
      rtgauge probe switch --policy other --tasks 4 --cpu 1

    Exit status as of rtgauge run.
    """
    written: dict[str, object] = {"cpu": cpu, "tasks": tasks, "duration": duration, "count": count, "priority": priority}
    written |= {"policy": policy, "warm-up": warm_up, "dma-latency": dma_latency, "memory-lock": memory_lock}
    raise typer.Exit(_measure("switch", written, load=load, target=target, samples=samples, json=json))


def preempt(
    cpu: FirstCpu = None,
    event: Annotated[str, typer.Option(metavar="NAME", help="What makes the high task ready: timer, or wake-up by a task on another CPU.")] = "timer",
    placement: Annotated[str, typer.Option(metavar="NAME", help="Where the task runs that wakes it: other-core or same-core.")] = "other-core",
    interval: Annotated[str, typer.Option(metavar="TIME", help="Time between two events.")] = "200us",
    duration: Duration = None,
    count: Count = None,
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
    """Preemption: a task of high priority becomes ready while one of low priority runs on its CPU.

    \b
    Examples:
      rtgauge probe preempt --duration 10s
      rtgauge probe preempt --event wake-up --cpu 1

    Exit status as of rtgauge run.
    """
    written: dict[str, object] = {"cpu": cpu, "event": event, "placement": placement, "interval": interval, "duration": duration, "count": count}
    written |= {"priority": priority, "policy": policy, "warm-up": warm_up, "dma-latency": dma_latency, "memory-lock": memory_lock}
    raise typer.Exit(_measure("preempt", written, load=load, target=target, samples=samples, json=json))


def semaphore(
    cpu: FirstCpu = None,
    method: Annotated[str, typer.Option(metavar="NAME", help="How a task waits: semaphore, mutex, condition, eventfd, pipe, mqueue or signal.")] = "semaphore",
    placement: _Placed = "same-cpu",
    duration: Duration = None,
    count: Count = None,
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
    """Semaphore: from one task's post to the other's return from wait, and the same by other means.

    \b
    Examples:
      rtgauge probe semaphore --count 100000
      rtgauge probe semaphore --method pipe --placement other-core

    Exit status as of rtgauge run.
    """
    written: dict[str, object] = {"cpu": cpu, "method": method, "placement": placement, "duration": duration, "count": count}
    written |= {"priority": priority, "policy": policy, "warm-up": warm_up, "dma-latency": dma_latency, "memory-lock": memory_lock}
    raise typer.Exit(_measure("semaphore", written, load=load, target=target, samples=samples, json=json))


def inversion(
    cpu: FirstCpu = None,
    lock: Annotated[str, typer.Option(metavar="NAME", help="all, pi-mutex, mutex, ceiling-mutex, semaphore, futex or spin.")] = "all",
    section: Annotated[str, typer.Option(metavar="TIME", help="The low task's time on the CPU while it holds the lock.")] = "2ms",
    limit: Annotated[str, typer.Option(metavar="TIME", help="After this time the high task has starved.")] = "100ms",
    trials: Annotated[int, typer.Option(metavar="N", help="Trials with each kind of lock.")] = 3,
    priority: Annotated[int, typer.Option(metavar="N", help="Of the high task, 3 to 99; the others have one and two less.")] = 98,
    dma_latency: DmaLatency = "0",
    memory_lock: MemoryLock = "on",
    load: Load = "idle",
    samples: Samples = None,
    target: Target = "local",
    json: Json = False,
) -> None:
    """Priority inversion: does a high task starve that waits for a lock which a low one holds, while a middle one computes?

    \b
    Examples:
      rtgauge probe inversion
      rtgauge probe inversion --lock semaphore --section 5ms --trials 10

    Exit status as of rtgauge run.
    """
    written: dict[str, object] = {"cpu": cpu, "lock": lock, "section": section, "limit": limit, "trials": trials, "priority": priority}
    written |= {"dma-latency": dma_latency, "memory-lock": memory_lock}
    raise typer.Exit(_measure("inversion", written, load=load, target=target, samples=samples, json=json))
