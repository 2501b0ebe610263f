# SPDX-License-Identifier: MIT
"""Presents wakeup in kernel space: whether the thread was the kernel's, and whether events were dropped."""

from __future__ import annotations

from rtgauge.record.model import Step
from rtgauge.report.presenter import Presenter
from rtgauge.units import plural


class Timerlat(Presenter):
    """Presents steps in kernel space, and shows nothing for other steps."""

    def lines(self, step: Step) -> list[str]:
        """Return a line like "measured by the kernel's timerlat tracer; the thread is of the kernel"."""
        lines: list[str] = []
        for result in step.results:
            if result.name == "timerlat":
                dropped = result.values.get("dropped")
                lost = (
                    f", which dropped events {plural(dropped, 'time')}"
                    if isinstance(dropped, int) and dropped
                    else ""
                )
                has_user = any(series.metric == "user-latency" for series in step.series)
                older = "; user-latency is missing, because it needs timerlat_fd (Linux 6.5 or newer)"
                thread = f"the thread is {result.values.get('thread')}{'' if has_user else older}"
                lines.append(f"measured by the kernel's timerlat tracer{lost}; {thread}")
        return lines


TIMERLAT = Timerlat()
