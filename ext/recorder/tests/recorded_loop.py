# SPDX-License-Identifier: MIT
"""A program with a loop of 5 ms, which the tests record."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

SOURCE = Path(__file__).parents[3] / "bench" / "own_loops" / "loops.c"


def built_loop(program: Path) -> Path:
    """The program, compiled."""
    subprocess.run(["gcc", "-O2", "-pthread", SOURCE, "-o", program], check=True)
    return program


@contextmanager
def loop(program: Path, folder: Path) -> Generator[subprocess.Popen[str]]:
    """The program, which has begun its loop."""
    words = ["absolute", "--log", str(folder / "log"), "--period-us", "5000", "--fifo", "20"]
    with subprocess.Popen([str(program), *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()
