# SPDX-License-Identifier: MIT
"""What people type at first leads to this extension."""

from __future__ import annotations

import pytest
from tests.support.command_line import refused

LEADS_TO = {
    "isolate 1": "deploy",
    "irq": "deploy",
    "deploy isolate 1": "choose from show, apply, cmdline",
}


@pytest.mark.parametrize(("typed", "leads_to"), LEADS_TO.items())
def test_a_wrong_guess_leads_on(
    typed: str, leads_to: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert leads_to in refused(monkeypatch, capfd, *typed.split())
