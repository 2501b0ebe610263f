# SPDX-License-Identifier: MIT
"""An option of the probes of signals that another command does not have leads to them."""

from __future__ import annotations

import pytest
from tests.support.command_line import refused


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (
            ["run", "--cycles", "5"],
            "give --set cycles=VALUE, which sets this parameter of periodic, response",
        ),
        (["probe", "noise", "--cycles", "5"], "the probes periodic, response have this option"),
    ],
)
def test_what_belongs_elsewhere_is_pointed_to(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], words: list[str], instead: str
):
    assert instead in refused(monkeypatch, capfd, *words)
