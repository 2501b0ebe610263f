# SPDX-License-Identifier: MIT
"""What a mark of this extension means for a verdict."""

from __future__ import annotations

from rtgauge_ext.network.path_marks import NetworkMarkKind


def test_a_loop_that_was_late_itself_only_makes_responses_longer() -> None:
    """A cycle that was sent or read late, or not sent, counts with its lateness: what holds with it, holds."""
    assert NetworkMarkKind.OWN_LATE.mark("6 frames were sent late").only_delays
