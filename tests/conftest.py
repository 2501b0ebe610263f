# SPDX-License-Identifier: MIT
"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from rtgauge.target.engine_path import engine_path
from tests.support.signals import give_children_defaults

give_children_defaults()

# No deadline: how long an example takes depends on how busy the machine is.
settings.register_profile("rtgauge", deadline=None)
settings.load_profile("rtgauge")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without root the tests that need it are skipped, and say so; CI is root."""
    if os.geteuid() != 0:
        for item in items:
            if item.get_closest_marker("root") is not None:
                item.add_marker(pytest.mark.skip(reason="needs root"))


@pytest.fixture(scope="session")
def engine() -> Path:
    """The built engine."""
    return engine_path()
