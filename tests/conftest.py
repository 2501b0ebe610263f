# SPDX-License-Identifier: MIT
"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from rtgauge.target.engine_path import engine_path

# How long an example takes says how busy the machine is.
settings.register_profile("rtgauge")
settings.load_profile("rtgauge")


@pytest.fixture(scope="session")
def engine() -> Path:
    """The built engine."""
    return engine_path()
