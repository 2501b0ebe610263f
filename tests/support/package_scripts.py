# SPDX-License-Identifier: MIT
"""Runs the scripts of the Debian packages on a folder of a test."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "packaging/debian"


def purge(root: Path, package: str) -> str:
    """Run a package's script with /etc, /run and /var in `root`; return what it printed as errors."""
    text = (SCRIPTS / f"{package}.postrm").read_text(encoding="utf-8")
    moved = re.sub(r"(?<=[ =])(?=/(?:etc|run|var)/)", str(root), text)
    completed = subprocess.run(
        ["sh", "-c", moved, "postrm", "purge"], capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stderr
