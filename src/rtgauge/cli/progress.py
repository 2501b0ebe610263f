# SPDX-License-Identifier: MIT
"""Shows the progress of a run or of reading a file on standard error, as plain lines or a bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TextIO

from rtgauge.record.model import LeftOut, Step, StepKey
from rtgauge.record.stream import Frame, SeriesLine, Window
from rtgauge.report.record_view import key_labels
from rtgauge.units import format_span, format_time, plural

if TYPE_CHECKING:
    from rich.progress import TaskID

    from rtgauge.cli.console import Console

LaterS = Callable[[Sequence[StepKey]], float | None]


class Display:
    """Shows progress as plain lines."""

    def __init__(self, stream: TextIO) -> None:
        """`stream`: standard error, which escapes the text."""
        self.stream = stream
        self.steps: list[StepKey] = []
        self.expected_s: list[float] = []
        self.number = 0
        self.worst_ns: dict[int, int] = {}
        self.labels: dict[str, str] = {}
        self.later_s: LaterS | None = None
        """Estimates how long a study's later steps will take; None if this is not a study."""
        self.known: list[StepKey] = []
        """The steps of all rounds so far."""
        self.rest_s: float | None = 0.0
        """The expected time of a study's later rounds; None if it is unknown."""
        self.one_step = False
        """Whether the run has only one step. If it cannot be measured, the error says why."""
        self.before = 0
        """The number of steps in a study's earlier rounds."""
        self.began_s = time.monotonic()
        self.late_s: dict[bool, list[float]] = {False: [], True: []}
        """How many seconds longer than expected each finished step took, without a load (False) and with a
        load (True).
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def stopping(self) -> None:
        """Say that the run stops, after the first Ctrl-C."""
        self.print_line("stopping cleanly; finished steps are kept (press Ctrl-C again to stop at once)")

    def print_line(self, text: str) -> None:
        """Print a line."""
        print(text, file=self.stream)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Allow other code to write to standard output inside this context."""
        yield

    def run_begins(self, steps: list[StepKey], expected_s: list[float]) -> None:
        """Print the number of steps and the expected time. A study's later rounds continue the count."""
        self.before += len(self.steps)
        self.steps, self.expected_s = steps, expected_s
        self.labels = key_labels(steps)
        self.known += steps
        also = "more " if self.before else ""
        now_s = sum(expected_s)
        self.rest_s = self.later_s(self.known) if self.later_s is not None else 0.0
        if self.rest_s is None:
            more = ", then more steps that the study chooses from the results" if not self.before else ""
        else:
            more = (
                f", then about {format_span(self.rest_s)} for more steps that the study chooses from the "
                f"results"
                if self.rest_s
                else ""
            )
        self.print_line(f"{plural(len(steps), f'{also}step')}, about {format_span(now_s)}{more}")

    def title(self, key: StepKey) -> str:
        """Return the words that distinguish the step from the run's other steps."""
        return self.labels.get(key.id, key.load)

    def left_s(self, number: int) -> float:
        """Estimate in seconds how long the steps from `number` on, and a study's later rounds, will take.

        Each step is expected to be as late as the finished steps of its kind on average, or as all finished
        steps if there are none of its kind.
        """
        late_s = 0.0
        for key in self.steps[number:]:
            like = self.late_s[key.load != "idle"] or [*self.late_s[False], *self.late_s[True]]
            late_s += sum(like) / len(like) if like else 0.0
        return max(0.0, sum(self.expected_s[number:]) + late_s) + (self.rest_s or 0.0)

    def left_out(self, what: LeftOut) -> None:
        """Print which part cannot be measured, and why."""
        if not self.one_step:
            self.print_line(f"left out: {what.what}: {what.reason} ({what.remedy})")

    def step_begins(self, number: int, key: StepKey) -> None:
        """Print the step's number, title and the time left."""
        self.number = number
        self.worst_ns = {}
        self.began_s = time.monotonic()
        self.print_line(
            f"[{self.before + number + 1}/{self.before + len(self.steps)}] {self.title(key)}, "
            f"{format_span(self.left_s(number))} left"
        )

    def waits(self, reason: str) -> None:
        """Print why the run waits."""
        self.print_line(f"waiting: {reason}")

    def phase(self, text: str) -> None:
        """Do nothing, because phases are not printed as lines."""

    def series(self, lines: Sequence[SeriesLine]) -> None:
        """Do nothing, because names of series are not shown."""

    def window(self, window: Window) -> None:
        """Keep the largest latency of each series."""
        if window.phase == "measure" and window.max_ns is not None:
            self.worst_ns[window.series] = max(self.worst_ns.get(window.series, 0), window.max_ns)

    def watched(self) -> bool:
        """Return False, because a terminal shows no simulation."""
        return False

    def frame(self, frame: Frame) -> None:
        """Do nothing, because no frames are requested."""

    def step_ends(self, step: Step) -> None:
        """Print the step's minimum, mean, maximum and marks."""
        self.late_s[step.key.load != "idle"].append(
            time.monotonic() - self.began_s - self.expected_s[self.number]
        )
        if step.total is not None and step.total.count:
            marks = ", ".join(sorted({mark.name for mark in step.marks if mark.severity != "note"}))
            self.print_line(
                f"      min {format_time(step.total.min_ns)}, mean "
                f"{format_time(step.total.mean_ns)}, max {format_time(step.total.max_ns)}"
                + (f", {step.total.missed} missed" if step.total.missed else "")
                + (f"  ({marks})" if marks else "")
            )


class LiveDisplay(Display):
    """A progress bar with the time left and the largest latency so far."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        super().__init__(sys.stderr)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.fields[worst]}"),
            console=console,
            transient=True,
            # drawn once a second with the windows, because a refresh thread would disturb the measurement
            auto_refresh=False,
        )
        self.task: TaskID | None = None
        self.done_s = 0.0
        """The expected time of all finished steps, which is the start of the present step on the bar."""
        self.phase_text = ""

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Hide the bar inside this context."""
        self.bar.stop()
        yield
        self.bar.start()

    def print_line(self, text: str) -> None:
        """Print a line above the bar."""
        from rich.text import Text

        self.bar.console.print(Text(text), soft_wrap=True)

    def run_begins(self, steps: list[StepKey], expected_s: list[float]) -> None:
        """Start a bar for the whole run, or extend the bar by a study's next round."""
        super().run_begins(steps, expected_s)
        if self.task is None:
            self.task = self.bar.add_task("", total=sum(expected_s) + (self.rest_s or 0.0), left="", worst="")
        else:
            self.bar.update(self.task, total=self.done_s + sum(expected_s) + (self.rest_s or 0.0))

    def step_begins(self, number: int, key: StepKey) -> None:
        """Show the step's title next to the bar."""
        super().step_begins(number, key)
        if self.task is not None:
            self.bar.update(
                self.task,
                description=f"{self.before + number + 1}/{self.before + len(self.steps)} {self.title(key)}",
            )
        self._update()

    def step_ends(self, step: Step) -> None:
        """Move the bar to the end of the step."""
        super().step_ends(step)
        self.done_s += self.expected_s[self.number]

    def phase(self, text: str) -> None:
        """Show the phase next to the bar until there is a latency."""
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


def make_display(*, later_s: LaterS | None = None, single_step: bool = False) -> Display:
    """Make a display: a bar if standard error is a terminal that can move its cursor, otherwise plain lines.

    `later_s`: estimates in seconds how long a study's later steps will take (None if unknown). `single_step`:
    whether the run has only one step; the error then says why it is left out.
    """
    from rtgauge.cli.console import Console

    display = Display(sys.stderr)
    if sys.stderr.isatty() and not (console := Console(stderr=True)).is_dumb_terminal:
        display = LiveDisplay(console)
    display.later_s, display.one_step = later_s, single_step
    return display
