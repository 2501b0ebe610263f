# SPDX-License-Identifier: MIT
"""Traces as others read them: trace.dat by trace-cmd, and the slices of the trace event format."""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest


def lines_of(data: bytes, tmp_path: Path) -> list[str]:
    """What trace-cmd prints of a file, without its heading."""
    if shutil.which("trace-cmd") is None:
        pytest.skip("needs trace-cmd (apt install trace-cmd)")
    file = tmp_path / "trace.dat"
    file.write_bytes(data)
    report = subprocess.run(
        ["trace-cmd", "report", "-t", "-i", file], capture_output=True, text=True, check=True
    )
    assert report.stderr == ""
    return [line.strip() for line in report.stdout.splitlines() if not line.startswith("cpus=")]


def slices(document: dict[str, Any]) -> dict[int, list[tuple[float, float, str]]]:
    """Lane -> (start, end, name), after the rules of the format: complete slices of a lane nest, to 0.1
    ns.
    """
    lanes: dict[int, list[tuple[float, float, str]]] = defaultdict(list)
    for part in document["traceEvents"]:
        assert {"ph", "name", "pid", "tid"} <= part.keys()
        assert part["ph"] in {"X", "i", "M"}
        if part["ph"] == "X":
            assert part["dur"] > 0
            lanes[part["tid"]].append((part["ts"], part["ts"] + part["dur"], part["name"]))
    for lane in lanes.values():
        opened: list[float] = []
        for start, end, _ in sorted(lane, key=lambda known: (known[0], -known[1])):
            while opened and opened[-1] <= start + 1e-4:
                opened.pop()
            assert not opened or end <= opened[-1] + 1e-4
            opened.append(end)
    return lanes
