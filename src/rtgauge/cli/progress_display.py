# SPDX-License-Identifier: MIT
"""Progress of a run on standard error: plain lines, a live progress bar in a terminal."""

from __future__ import annotations

import sys

from rtgauge.cli.progress_lines import Display, LaterS


def make_display(*, later_s: LaterS | None = None, one_step: bool = False) -> Display:
    """A live display if standard error is a terminal, else plain lines.

    `later_s`: of a study, about how long what it chooses after the steps planned so
    far takes, in s (None: it cannot be told); `one_step`: the error says what is left out."""
    display = Display(sys.stderr)
    if sys.stderr.isatty():
        from rtgauge.cli.progress_bar import live_display

        display = live_display() or display
    display.later_s, display.one_step = later_s, one_step
    return display
