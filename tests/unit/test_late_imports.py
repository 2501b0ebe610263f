# SPDX-License-Identifier: MIT
"""What a command needs after the measurement is imported while the probe warms up, and not where it might not
be ready by then.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest

from rtgauge.runner.late_imports import import_late

HOUR_S = 3600.0


def test_a_long_warm_up_has_room_for_all():
    imported: list[str] = []
    import_late([partial(imported.append, "one"), partial(imported.append, "two")], 1e6 * HOUR_S)
    assert imported == ["one", "two"]


@pytest.mark.parametrize("warm_up_s", [0.0, -1.0])
def test_nothing_is_begun_that_might_last_into_the_measurement(warm_up_s: float):
    imported: list[str] = []
    import_late([partial(imported.append, "one")], warm_up_s)
    assert not imported


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
