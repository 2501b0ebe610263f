# SPDX-License-Identifier: MIT
"""Whatever the umask, no command makes a file that everyone can write to."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.records import Shape, write_record

if TYPE_CHECKING:
    from pathlib import Path


def test_without_a_umask_an_export_is_not_writable_by_everyone(tmp_path: Path) -> None:
    record = write_record(tmp_path, Shape(seconds=2, loads=("idle",), cpus=(0,)))
    out = tmp_path / "out.json"
    words = ["export", str(record), "--format", "json", "-o", str(out)]
    command = ["sh", "-c", 'umask 0; exec "$@"', "sh", sys.executable, "-m", "rtgauge", *words]
    subprocess.run(command, check=True)
    assert out.stat().st_mode & 0o777 == 0o664
