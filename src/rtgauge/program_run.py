# SPDX-License-Identifier: MIT
"""Runs a program to its end, without input."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def run_program(
    command: Sequence[str],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
    new_session: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Return the program's status and output, in which bytes that are not UTF-8 are replaced.

    `new_session`: whether a Ctrl-C in the terminal does not reach the program. Raises OSError if it cannot
    start, subprocess.TimeoutExpired after `timeout_s`.
    """
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        timeout=timeout_s,
        start_new_session=new_session,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
