# SPDX-License-Identifier: MIT
"""The loops of a watched program's threads, from the results of `watch` (docs/formats/stream.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rtgauge.record.model import Result, Step
from rtgauge.units import format_duration, format_time, plural

DEFINITIONS = 2
"""The version of the definitions of release, start and end (docs/probes/watch.md) that this version has. In
version 1, which steps without a version have, an activation was from a wake-up to a sleep.
"""
SAME_PERIOD = 0.1
"""A thread has the required period if its own differs by less."""
LEAST_SLEEP = 0.5
"""... and if it sleeps for at least this share of it, or waits for points of a grid."""
DRIFT = 0.01
"""A period that differs from the required one by more is named."""


def _whole(result: Result, name: str) -> int:
    value = result.values.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _text(result: Result, name: str) -> str | None:
    value = result.values.get(name)
    return value if isinstance(value, str) else None


@dataclass(frozen=True)
class WatchedLoop:
    """What a watched thread does in each cycle, and what was wrong with its cycles.

    `kind`: periodic, relative, own-schedule, data, poller or unknown. `period_ns`: of its grid, or the usual
    time from one release to the next; 0 if unknown. `sleep_ns`: how long a relative loop sleeps. `overruns`:
    releases for which it did not wait; `unknown`: releases of which nothing is known; `lost_ends`:
    activations whose end was lost with events. `cut_latency_ns`, `cut_response_ns`: the age of the activation
    that the end of the step cut, before and after it began; 0 if there is none. `own_ns`: how long
    rtgauge itself kept it from running. `series`: series number by metric.
    """

    task: str
    kind: str
    call: str | None
    fd: int | None
    wall_clock: bool
    sleep_ns: int
    period_ns: int
    unclear: bool
    activations: int
    overruns: int
    unknown: int
    lost_ends: int
    cut_latency_ns: int
    cut_response_ns: int
    stuck: bool
    stuck_in: str | None
    ended: bool
    slack_ns: int
    own_ns: int
    series: Mapping[str, int]

    @classmethod
    def of(cls, result: Result, step: Step) -> WatchedLoop:
        """Read the result `thread` of one thread."""
        task = str(result.labels.get("task"))
        fd = result.values.get("fd")
        return cls(
            task=task,
            kind=_text(result, "kind") or "unknown",
            call=_text(result, "call"),
            fd=fd if isinstance(fd, int) else None,
            wall_clock=result.values.get("wall_clock") is True,
            sleep_ns=_whole(result, "sleep_ns"),
            period_ns=_whole(result, "period_ns"),
            unclear=result.values.get("unclear") is True,
            activations=_whole(result, "activations"),
            overruns=_whole(result, "overruns"),
            unknown=_whole(result, "unknown_releases"),
            lost_ends=_whole(result, "lost_ends"),
            cut_latency_ns=_whole(result, "cut_latency_ns"),
            cut_response_ns=_whole(result, "cut_response_ns"),
            stuck=result.values.get("stuck") is True,
            stuck_in=_text(result, "stuck_in"),
            ended=_whole(result, "ended_ns") > 0,
            slack_ns=_whole(result, "timer_slack_ns"),
            own_ns=_whole(result, "preempted_by_rtgauge_ns"),
            series={
                summary.metric: summary.series
                for summary in step.series
                if summary.labels.get("task") == task and summary.series is not None
            },
        )

    @property
    def releases(self) -> int:
        """All releases in the measured phase."""
        return self.activations + self.overruns + self.unknown

    def has_period(self, period_ns: int) -> bool:
        """Return whether the thread has this period, within 10 %.

        A relative loop that sleeps for less than half of it has not: this sleep may be a pause in the cycle
        of a loop on a grid that is always too late to wait.
        """
        if self.kind == "relative" and self.sleep_ns < LEAST_SLEEP * period_ns:
            return False
        return self.period_ns > 0 and abs(self.period_ns - period_ns) < SAME_PERIOD * period_ns

    def drift(self, period_ns: int) -> str | None:
        """Say by how much and why the period differs from the required one; None if it does not."""
        if not self.period_ns or abs(self.period_ns - period_ns) <= DRIFT * period_ns:
            return None
        text = (
            f"the period of {self.task} is {format_time(self.period_ns)} instead of "
            f"{format_duration(period_ns)}"
        )
        return f"{text}: {why}" if (why := self.why_it_drifts()) else text

    def why_it_drifts(self) -> str | None:
        """Say why a period is not what the program's author meant; None if nothing is known."""
        if self.kind == "relative":
            return (
                f"it sleeps for {format_time(self.sleep_ns)} after its work; let it sleep until an absolute "
                "time instead"
            )
        if self.slack_ns >= 1_000_000:
            return (
                f"its timers have a slack of {format_time(self.slack_ns)}; set a smaller one "
                "(PR_SET_TIMERSLACK)"
            )
        return None

    @property
    def waits(self) -> str:
        """Describe how the thread waits: "every 1ms in clock_nanosleep"."""
        call = self.call or "a sleep"
        call += f" of file descriptor {self.fd}" if self.fd is not None else ""
        often = f"every {format_time(self.period_ns)}" if self.period_ns else "at unknown intervals"
        about = f"about {often}" if self.period_ns else often
        clock = " on the wall clock" if self.wall_clock else ""
        return {
            "periodic": f"runs {often} (waits in {call}{clock})",
            "relative": (
                f"sleeps for {format_time(self.sleep_ns)} after its work, so it runs {often} (waits in "
                f"{call}{clock})"
            ),
            "own-schedule": f"wakes at times that it sets itself (in {call}{clock}), {about}",
            "data": f"runs when others wake it (waits in {call}), {about}",
            "poller": "never sleeps",
        }.get(self.kind, "has no known cycle")

    @property
    def trouble(self) -> list[str]:
        """Return what went wrong with its cycles, apart from lateness."""
        problems: list[str] = []
        if self.stuck:
            problems.append(
                f"{self.task} is stuck in {self.stuck_in or 'its work'} and did not return to its wait"
            )
        if self.ended:
            problems.append(f"{self.task} ended while it was watched")
        if self.overruns:
            problems.append(
                f"{plural(self.overruns, 'release')} of {self.task} came while the thread was not waiting "
                "for them"
            )
        if self.unknown:
            problems.append(
                f"the kernel's events do not show what happened at {plural(self.unknown, 'release')} of "
                f"{self.task}"
            )
        return problems


def loops_of(step: Step) -> list[WatchedLoop]:
    """Return the loops of a step of `watch`; none for other steps, and for steps with older definitions."""
    return [
        WatchedLoop.of(result, step)
        for result in step.results
        if result.name == "thread" and result.values.get("definitions") == DEFINITIONS
    ]


def definitions_of(step: Step) -> int | None:
    """Return the version of the definitions of release, start and end; None for other probes than `watch`."""
    if step.key.probe != "watch":
        return None
    versions = [result.values.get("definitions") for result in step.results if result.name == "thread"]
    return next((version for version in versions if isinstance(version, int)), 1)
