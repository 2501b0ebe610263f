# SPDX-License-Identifier: MIT
"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def engine() -> Path:
    """The built engine."""
    return Path(os.environ["RTGAUGE_ENGINE"])
