# SPDX-License-Identifier: MIT
"""Instances of tracefs: a test's own with its events, and the ones in which the kernel records for engines."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e.processes import command_line, family
from tests.support.cli import wait_until

if TYPE_CHECKING:
    from collections.abc import Generator

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
            pages[int(cpu.name.removeprefix("cpu"))] = actual = []
            try:
                while page := os.read(file, PAGE):
                    actual.append(page)
            except BlockingIOError:
                pass
            finally:
                os.close(file)
        return pages


@contextmanager
def trace_instance(tmp_path: Path, name: str | None = None) -> Generator[TraceInstance]:
    """A new instance, which is removed in the end."""
    with tracefs(tmp_path) as root:
        folder = root / "instances" / (name or f"rtgauge-test-{os.getpid()}")
        folder.mkdir()
        try:
            yield TraceInstance(folder)
        finally:
            folder.rmdir()


@contextmanager
def tracefs(tmp_path: Path) -> Generator[Path]:
    """A mount of tracefs that only this process's descriptor holds: it is gone even after kill -9."""
    place = tmp_path / "tracefs"
    place.mkdir()
    subprocess.run(["mount", "-t", "tracefs", "tracefs", place], check=True)
    try:
        held = os.open(place, os.O_PATH | os.O_DIRECTORY)
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
    try:
        yield Path(f"/proc/{os.getpid()}/fd/{held}")
    finally:
        os.close(held)


def recording(root: Path) -> list[str]:
    """The instances in which an event is on; "the kernel's own" is the ring without an instance."""
    folders = {"the kernel's own": root} | {each.name: each for each in (root / "instances").iterdir()}
    return [name for name, folder in folders.items() if (folder / "events/enable").read_text()[0] != "0"]


def instances() -> list[str]:
    """The instances of tracefs, seen in a mount namespace of their own."""
    script = (
        "mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing; ls "
        "/sys/kernel/tracing/instances"
    )
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()


def wait_until_removed(name: str) -> None:
    """Wait until this instance is gone. Another test may have one of the same name by now, on a machine of its
    own that shares this kernel.
    """
    wait_until(lambda: name not in instances(), f"{name} to be removed")


def instance_of(pid: int, option: str = "--trace-instance") -> str | None:
    """The instance of tracefs in which the kernel records for this engine; None if there is none."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return None
    actual = (word.removeprefix(f"{option}=") for word in words if word.startswith(f"{option}="))
    return next(actual, None)


def engines(below: int, verb: str, option: str = "--trace-instance") -> list[int]:
    """Processes of the engine with this verb and an instance that a process has started, however indirectly."""
    actual: list[int] = []
    for pid, _ in family(below):
        words = command_line(pid).split()
        if verb in words[1:2] and instance_of(pid, option):
            actual.append(pid)
    return actual
