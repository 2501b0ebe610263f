# SPDX-License-Identifier: MIT
"""A link that leads to itself is refused in one line, wherever a command follows a link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rtgauge.cli.record_argument import open_records
from rtgauge.errors import RtgaugeError
from rtgauge.record.writer import RecordWriter


@pytest.mark.parametrize(
    "opens",
    [
        lambda link: open_records([link], []),
        RecordWriter.open_partial,
    ],
    ids=["compare", "resume"],
)
def test_a_link_to_itself_is_refused(tmp_path: Path, opens: Callable[[Path], object]) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    with pytest.raises(RtgaugeError, match=r"link|cannot be resumed"):
        opens(link)
