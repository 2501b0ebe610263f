# SPDX-License-Identifier: MIT
"""An instance of tracefs with a test's own events, and what it recorded."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class TraceInstance:
    """A folder `instances/NAME` of tracefs."""

    folder: Path

    def write(self, file: str, text: str) -> None:
        """Write one of its files."""
        (self.folder / file).write_text(text)

    def start(self, *groups: str) -> None:
        """Record all events of these groups by CLOCK_MONOTONIC, on every CPU."""
        self.write("tracing_on", "0")
        self.write("trace_clock", "mono")
        self.write("buffer_size_kb", "1024")
        for group in groups:
            if (self.folder / "events" / group).is_dir():
                self.write(f"events/{group}/enable", "1")
        self.write("tracing_on", "1")

    def formats(self, *groups: str) -> dict[str, object]:
        """What `trace_formats` of a stream has."""
        events = {
            f"{group}/{file.parent.name}": file.read_text()
            for group in groups
            for file in sorted((self.folder / "events" / group).glob("*/format"))
        }
        common = self.folder.parent.parent / "events"
        return {
            "type": "trace_formats",
            "clock": "mono",
            "cpus": os.cpu_count(),
            "page_bytes": PAGE,
            "header_page": (common / "header_page").read_text(),
            "header_event": (common / "header_event").read_text(),
            "events": events,
        }

    def pages(self) -> dict[int, list[bytes]]:
        """Every page of every CPU, as trace_pipe_raw gives it; they are gone from the ring then."""
        pages: dict[int, list[bytes]] = {}
        for cpu in sorted((self.folder / "per_cpu").iterdir()):
            file = os.open(cpu / "trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)
            pages[int(cpu.name.removeprefix("cpu"))] = found = []
            try:
                while page := os.read(file, PAGE):
                    found.append(page)
            except BlockingIOError:
                pass
            finally:
                os.close(file)
        return pages


@contextmanager
def trace_instance(tmp_path: Path, name: str | None = None) -> Generator[TraceInstance]:
    """A new instance, which is removed in the end."""
    root = tmp_path / "tracefs"
    root.mkdir()
    subprocess.run(["mount", "-t", "tracefs", "tracefs", root], check=True)
    folder = root / "instances" / (name or f"rtgauge-test-{os.getpid()}")
    try:
        folder.mkdir()
        try:
            yield TraceInstance(folder)
        finally:
            folder.rmdir()
    finally:
        subprocess.run(["umount", root], check=True)
