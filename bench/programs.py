# SPDX-License-Identifier: MIT
"""The programs that are measured: where they are, which Debian package has them, how they are started."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from figures import CannotMeasure

PACKAGES = {"cyclictest": "rt-tests", "jitterdebugger": "jitterdebugger", "valgrind": "valgrind"}
PATIENCE_S = 600


def program(name: str) -> str:
    """Path of a program. Raises CannotMeasure with the package that has it."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")
    if path is None:
        raise CannotMeasure(f"{name} is not installed: apt-get install {PACKAGES[name]}")
    return path


def engine() -> str:
    """Path of rtgauge's engine. Raises CannotMeasure."""
    from rtgauge.errors import RtgaugeError
    from rtgauge.target.engine_path import engine_path

    try:
        return str(engine_path())
    except RtgaugeError as error:
        raise CannotMeasure(str(error)) from error


def run(command: list[str], cwd: Path | None = None, timeout_s: float = PATIENCE_S) -> str:
    """Standard output of a program.

    Raises CannotMeasure with its own last words where it failed or took too long.
    """
    try:
        completed = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise CannotMeasure(f"{Path(command[0]).name} did not end within {timeout_s:.0f} s") from error
    if completed.returncode:
        words = last_words(completed.stderr) or last_words(completed.stdout) or "no message"
        raise CannotMeasure(f"{Path(command[0]).name} failed (exit status {completed.returncode}): {words}")
    return completed.stdout


def last_words(output: str) -> str:
    """The last line of a program's output, valgrind's own lines apart; of the engine's stream the message of
    its last line.
    """
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("==")]
    text = lines[-1] if lines else ""
    if not text.startswith("{"):
        return text
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError):
        return text


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def last_cpu() -> int:
    """The CPU that is measured where none was asked for: the last one allowed; the first one has most
    interrupts.
    """
    return max(os.sched_getaffinity(0))
