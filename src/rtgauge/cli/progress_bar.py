# SPDX-License-Identifier: MIT
"""Progress bars in a terminal, on standard error: over a run, and over a file that is read."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Self

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from rtgauge.cli.console import Console
from rtgauge.cli.progress_lines import Display
from rtgauge.record.model import Step, StepKey
from rtgauge.record.stream import Window
from rtgauge.units import format_span, format_time


class LiveDisplay(Display):
    """A progress bar with the time left and the largest latency so far."""

    def __init__(self, console: Console) -> None:
        super().__init__(sys.stderr)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.fields[worst]}"),
            console=console,
            transient=True,
            # drawn once a second with the windows: a refresh thread would disturb the measurement
            auto_refresh=False,
        )
        self.task: TaskID | None = None
        self.done_s = 0.0
        """What the finished steps were expected to take: the length of the bar up to the present step."""
        self.phase_text = ""

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Without the bar."""
        self.bar.stop()
        yield
        self.bar.start()

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self.bar.console.print(Text(text), soft_wrap=True)

    def run_begins(self, steps: list[StepKey], expected_s: list[float]) -> None:
        """One bar for the whole run, which grows with each round of a study."""
        super().run_begins(steps, expected_s)
        if self.task is None:
            self.task = self.bar.add_task("", total=sum(expected_s) + (self.rest_s or 0.0), left="", worst="")
        else:
            self.bar.update(self.task, total=self.done_s + sum(expected_s) + (self.rest_s or 0.0))

    def step_begins(self, number: int, key: StepKey) -> None:
        """Name the step at the bar."""
        super().step_begins(number, key)
        if self.task is not None:
            self.bar.update(
                self.task,
                description=f"{self.before + number + 1}/{self.before + len(self.steps)} {self.title(key)}",
            )
        self._update()

    def step_ends(self, step: Step) -> None:
        """Fill the bar up to the end of the step."""
        super().step_ends(step)
        self.done_s += self.expected_s[self.number]

    def phase(self, text: str) -> None:
        """Show the phase next to the bar until the first latency."""
        self.phase_text = text
        self._update()

    def window(self, window: Window) -> None:
        """Move the bar."""
        super().window(window)
        self._update()

    def _update(self) -> None:
        if self.task is None:
            return
        elapsed_s = time.monotonic() - self.began_s
        worst = max(self.worst_ns.values(), default=None)
        self.bar.update(
            self.task,
            completed=self.done_s + min(elapsed_s, self.expected_s[self.number]),
            left=(
                f"{format_span(max(self.left_s(self.number) - elapsed_s, self.left_s(self.number + 1)))} left"
            ),
            worst=self.phase_text if worst is None else f"max {format_time(worst)}",
            refresh=True,
        )


def live_display() -> LiveDisplay | None:
    """None: this terminal cannot move its cursor."""
    console = Console(stderr=True)
    return None if console.is_dumb_terminal else LiveDisplay(console)


@contextmanager
def file_progress(text: str) -> Generator[Callable[[int, int], None]]:
    """A bar over a file that is read, where standard error is a terminal.

    Gives what is to be told the bytes that were read, and those of the file.
    """
    console = Console(stderr=True)
    if not sys.stderr.isatty() or console.is_dumb_terminal:
        yield lambda _done, _size: None
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as bar:
        task = bar.add_task(Text(text).plain, total=None)
        yield lambda done, size: bar.update(task, completed=done, total=size)
