# SPDX-License-Identifier: MIT
"""What people type at first leads to this extension."""

from __future__ import annotations

import pytest
from tests.support.command_line import refused

LEADS_TO = {
    "optimize": "tune",
    "fix": "tune",
    "tune --reboot": "--boot each-deployment",
    "tune --cpus 1": "--cpu",
    "tune --watch 12": "--pid",
    "resume --budgett 1h": "--budget)",
}


@pytest.mark.parametrize(("typed", "leads_to"), LEADS_TO.items())
def test_a_wrong_guess_leads_on(
    typed: str, leads_to: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert leads_to in refused(monkeypatch, capfd, *typed.split())
