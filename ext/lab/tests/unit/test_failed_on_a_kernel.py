# SPDX-License-Identifier: MIT
"""A test that fails on a guest says which kernel the guest has."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.lab import conftest
from tests.lab.conftest import Lab


class NoGuests(Lab):
    """A lab that counts how often its guests are stopped."""

    stops = 0

    def listed(self, name: str) -> dict[str, Any]:
        return {"kernel": f"7.4-rc1 of {name}"}

    def stop(self) -> None:
        self.stops += 1


@pytest.mark.parametrize(
    ("failed", "tried", "named"),
    [
        (True, "debian-newest", [("kernel", "lab:debian-newest is 7.4-rc1 of debian-newest")]),
        (True, None, []),
        (False, "debian-newest", []),
    ],
)
def test_a_failure_names_the_kernel(tried: str | None, named: list[tuple[str, str]], *, failed: bool) -> None:
    lab = NoGuests(Path())
    lab.tried = tried
    report = SimpleNamespace(failed=failed, sections=[])
    item, call = SimpleNamespace(funcargs={"lab": lab}), SimpleNamespace(when="call")
    hook = conftest.pytest_runtest_makereport(cast("Any", item), cast("Any", call))
    next(hook)
    with pytest.raises(StopIteration) as ended:
        hook.send(cast("Any", report))
    assert ended.value.value is report
    assert report.sections == named
    assert lab.stops == failed
