# SPDX-License-Identifier: MIT
"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from rtgauge.target.engine_path import engine_path
from tests.support.signals import give_children_defaults

give_children_defaults()

# No deadline: how long an example takes depends on how busy the machine is.
settings.register_profile("rtgauge", deadline=None)
settings.load_profile("rtgauge")


@pytest.fixture(scope="session")
def engine() -> Path:
    """The built engine."""
    return engine_path()
