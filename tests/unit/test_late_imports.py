# SPDX-License-Identifier: MIT
"""What a command needs after the measurement is imported while the probe warms up, and not where it might not
be ready by then.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rtgauge.runner.late_imports import import_late

if TYPE_CHECKING:
    from pathlib import Path

HOUR_S = 3600.0


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of two that nobody has imported yet."""
    names = [f"late_{name}" for name in ("one", "two")]
    for name in names:
        (tmp_path / f"{name}.py").write_text("")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return names


def test_a_long_warm_up_has_room_for_all(modules: list[str]):
    import_late(modules, 1e6 * HOUR_S)
    assert set(modules) <= set(sys.modules)


@pytest.mark.parametrize("warm_up_s", [0.0, -1.0])
def test_nothing_is_begun_that_might_last_into_the_measurement(modules: list[str], warm_up_s: float):
    import_late(modules, warm_up_s)
    assert not set(modules) & set(sys.modules)


def test_what_is_not_needed_to_begin_is_not_imported_before():
    code = (
        "import sys, rtgauge.cli.main, rtgauge.cli.probe_command, rtgauge.cli.progress_display, "
        "rtgauge.plan.plan, rtgauge.runner.run\n"
        "late = {'rich', 'numpy', 'polars', 'rtgauge.cli.conclusion', 'rtgauge.report.terminal', "
        "'rtgauge.lab.boot_guest', 'rtgauge.target.ssh'}\n"
        "print(sorted(late & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
