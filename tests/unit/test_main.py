# SPDX-License-Identifier: MIT
"""`python -m rtgauge` is the same command."""

import subprocess
import sys


def test_the_package_runs_as_a_module() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "rtgauge", "--version"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert run.stdout.startswith("rtgauge ")
