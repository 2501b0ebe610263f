# SPDX-License-Identifier: MIT
"""What all tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rtgauge.target.engine_path import engine_path

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def engine() -> Path:
    """The engine that was installed with the package, or the one that $RTGAUGE_ENGINE names."""
    return engine_path()
