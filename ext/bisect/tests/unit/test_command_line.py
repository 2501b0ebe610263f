# SPDX-License-Identifier: MIT
"""What `rtgauge bisect` refuses before it measures."""

from __future__ import annotations

import pytest
from tests.support.command_line import refused


def test_a_change_that_no_histogram_can_show_is_refused(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    words = ["bisect", "--larger-than", "1.9%", "--good", "HEAD~1", "--bad", "HEAD", "--", "true"]
    assert "--larger-than 1.9%: give at least 2%" in refused(monkeypatch, capfd, *words)
