# SPDX-License-Identifier: MIT
"""What the unit tests of the recorder share."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody cuts the power here, so nothing waits for the disk."""
    monkeypatch.setattr(os, "fdatasync", lambda _: None)
    monkeypatch.setattr(os, "fsync", lambda _: None)
