# SPDX-License-Identifier: MIT
"""Writes every figure of a record, as `rtgauge report --figures` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.report.fact_rows import system_lines
from rtgauge.report.figures.figure_files import FORMATS, write_figures
from rtgauge.report.record_page import Drawn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rtgauge.record.reader import Record


def save_figures(record: Record, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write the figures into `folder`; return the files."""
    drawn, subtitle = Drawn.of(record), "\n".join(system_lines(record))
    return write_figures(drawn.figures.values(), folder, subtitle, formats, len(drawn.source.cpus))
