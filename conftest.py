# SPDX-License-Identifier: MIT
"""What all tests share, here and in the folders of extensions."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from tests.engine.stream import REAL_TIME
from tests.support.own_lock import own_lock
from tests.support.signals import give_children_defaults

from rtgauge.target.engine_path import engine_path

pytest_plugins = [
    "tests.support.exported",
    "tests.support.kept_records",
    "tests.support.real_record",
    "tests.support.small_disk",
]

give_children_defaults()

# A guest of the lab that its owner runs would mark every measurement of the tests.
DATA = TemporaryDirectory(prefix="rtgauge-data-")
os.environ["XDG_DATA_HOME"] = DATA.name

# No deadline: how long an example takes depends on how busy the machine is.
settings.register_profile("rtgauge", deadline=None)
settings.load_profile("rtgauge")


def pytest_configure(config: pytest.Config) -> None:
    """Workers measure at the same time, except as an ordinary user, or without CAP_SYS_ADMIN."""
    if hasattr(config, "workerinput") and os.geteuid() == 0:
        with suppress(PermissionError):
            own_lock()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that need what this machine does not have, and say what; CI has all of it.

    Files with slow tests come first: a worker takes a whole file, and the others would wait for the last one.
    """
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])
    here = {
        "root": os.geteuid() == 0,
        "real_time": REAL_TIME,
        "tracefs": "tracefs" in Path("/proc/filesystems").read_text(),
    }
    for item in items:
        missing = [
            name
            for name, is_here in here.items()
            if not is_here and item.get_closest_marker(name) is not None
        ]
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"needs {' and '.join(missing)}"))


@pytest.fixture(scope="session")
def engine() -> Path:
    """The built engine."""
    return engine_path()
