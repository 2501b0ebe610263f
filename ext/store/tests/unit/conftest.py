# SPDX-License-Identifier: MIT
"""The stores of these tests: a file, and a database of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.postgresql import PostgreSQL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    server = PostgreSQL()
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Names a store that is not there yet."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgresql").database
    names = (str(tmp_path / f"store-{n}.sqlite") for n in range(100))
    return lambda: next(names)
