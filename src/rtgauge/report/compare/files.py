# SPDX-License-Identifier: MIT
"""What a comparison leaves behind as files: its page, and its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rtgauge.record.model import Verdict
    from rtgauge.record.reader import Record
    from rtgauge.report.compare.page import Chapter


def write(
    chapters: Sequence[Chapter],
    records: Sequence[Record],
    verdicts: Mapping[str, Verdict] | None = None,
    *,
    page: Path | None,
    figures: Path | None,
    say: Callable[[str], object],
) -> None:
    """The page, with each record's verdict if there are any, and the figures, where they are wanted; `say` is
    called with a line a file.

    Raises InputError for a file that cannot be written.
    """
    if page is not None:
        from rtgauge.report.compare.page import render

        render(chapters, records, page, verdicts)
        say(f"page     {page}")
    if figures is not None:
        from rtgauge.report.compare.figures import save_figures

        for path in save_figures(
            [figure for chapter in chapters for figure in chapter.figures], records, figures
        ):
            say(f"figure   {path}")
