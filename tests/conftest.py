# SPDX-License-Identifier: MIT
"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtgauge.target.engine_path import engine_path


@pytest.fixture(scope="session")
def engine() -> Path:
    """The built engine."""
    return engine_path()
