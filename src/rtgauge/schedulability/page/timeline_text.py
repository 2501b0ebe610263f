# SPDX-License-Identifier: MIT
"""A schedule drawn with characters, as wide as the terminal allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from rtgauge.units import format_duration

if TYPE_CHECKING:
    from rtgauge.schedulability.analysis.analysis_document import TimelineResult

LEAST_CELLS = 10
BLOCKS = {
    "runs": "█",
    "runs in part": "▄",
    "waits": "·",
    "late": "!",
    "nothing": " ",
    "axis": "─",
    "tick": "┴",
}
PLAIN = {
    "runs": "#",
    "runs in part": "+",
    "waits": ".",
    "late": "!",
    "nothing": " ",
    "axis": "-",
    "tick": "+",
}
"""For a terminal without block characters."""


def cell_ns(end_ns: int, cells: int) -> int:
    """The time of one character: the least of 1, 2, 5, 10, ... ns with which it fits into `cells`."""
    power = 1
    while True:
        for step in (1, 2, 5):
            if step * power * cells >= end_ns:
                return step * power
        power *= 10


def timeline_lines(
    timeline: TimelineResult, names: list[str], width: int, *, plain: bool = False
) -> list[str]:
    """A line a task, the highest priority first, an axis, and what the characters mean.

    No line is wider than `width`, of at least 20.
    """
    signs = PLAIN if plain else BLOCKS
    margin = min(max(cell_len(name) for name in names), max(4, width // 4))
    size_ns = cell_ns(timeline.end_ns, max(LEAST_CELLS, width - margin - 2))
    cells = -(-timeline.end_ns // size_ns)
    runs = {name: [0] * cells for name in names}
    present = {name: [False] * cells for name in names}
    late = {name: [False] * cells for name in names}
    for activation in timeline.activations:
        finish_ns = timeline.end_ns if activation.finish_ns is None else activation.finish_ns
        for cell in range(activation.release_ns // size_ns, min(cells, -(-finish_ns // size_ns))):
            present[activation.task][cell] = True
            late[activation.task][cell] |= (cell + 1) * size_ns > activation.deadline_ns and activation.missed
    for segment in timeline.segments:
        for cell in range(segment.start_ns // size_ns, -(-segment.end_ns // size_ns)):
            runs[segment.task][cell] += min(segment.end_ns, (cell + 1) * size_ns) - max(
                segment.start_ns, cell * size_ns
            )
    lines: list[str] = []
    for name in names:
        row = [
            _sign(signs, runs[name][i], size_ns, waits=present[name][i], late=late[name][i])
            for i in range(cells)
        ]
        cut = cell_len(name) > margin
        short = (
            set_cell_size(name, margin - 1) + ("~" if plain else "…") if cut else set_cell_size(name, margin)
        )
        lines.append(f"{short}  {''.join(row)}".rstrip())
    return [
        *lines,
        *_axis(signs, timeline.end_ns, size_ns, cells, margin),
        *_legend(signs, size_ns, width, late=any(any(row) for row in late.values())),
    ]


def _sign(signs: dict[str, str], ran_ns: int, size_ns: int, *, waits: bool, late: bool) -> str:
    if late:
        return signs["late"]
    if ran_ns:
        return signs["runs"] if ran_ns == size_ns else signs["runs in part"]
    return signs["waits"] if waits else signs["nothing"]


def _axis(signs: dict[str, str], end_ns: int, size_ns: int, cells: int, margin: int) -> list[str]:
    """The line with ticks every so many cells, and the times beneath them."""
    longest = max(len(format_duration(end_ns)), len(format_duration(size_ns)) + 2)
    every = next(step * 10**power for power in range(20) for step in (1, 2, 5) if step * 10**power > longest)
    line = "".join(signs["tick"] if cell % every == 0 else signs["axis"] for cell in range(cells))
    numbers = ""
    for cell in range(0, cells, every):
        text = format_duration(cell * size_ns) if cell else "0"
        if cell + len(text) <= max(cells, 2):
            numbers = f"{numbers:<{cell}}{text}"
    return [" " * (margin + 2) + line, " " * (margin + 2) + numbers]


def _legend(signs: dict[str, str], size_ns: int, width: int, *, late: bool) -> list[str]:
    parts = [
        f"one character {format_duration(size_ns)}",
        f"{signs['runs']} runs",
        f"{signs['runs in part']} runs for a part of it",
        f"{signs['waits']} waits or is preempted",
    ]
    parts += [f"{signs['late']} late"] if late else []
    lines = [""]
    for part in parts:
        joined = f"{lines[-1]}, {part}" if lines[-1] else part
        lines = [*lines[:-1], joined] if len(joined) <= width else [*lines, part]
    return [line for line in lines if line]
