# SPDX-License-Identifier: MIT
"""A trigger by a line that the program writes into the kernel's trace_marker."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from rtgauge.errors import MeasureError, RecordError
from rtgauge.escape import one_line
from rtgauge.explain.trace.formats import TraceFormats
from rtgauge.explain.trace.moment import read_pages
from rtgauge_ext.recorder.program import PROC, Program
from rtgauge_ext.recorder.tracing import instance_folder, make_instance, remove_instance
from rtgauge_ext.recorder.triggers import Trigger

MARKER = "marker"
MOST_TEXT = 100
EVENT = "ftrace/print"
COPY = "options/copy_trace_marker"
"""Since Linux 6.16: an instance gets what programs write into the trace_marker of the whole machine."""
SETTINGS = {
    "trace_clock": "mono",
    "buffer_size_kb": "64",
    "buffer_percent": "0",
    COPY: "1",
    "tracing_on": "1",
}
PIECE = 1 << 16


class Markers:
    """The lines of trace_marker that begin with a text. Only root and the recorded program can pull the
    trigger; others are counted. `name`: of its instance of tracefs.
    """

    def __init__(self, begins: str) -> None:
        """Make an instance of tracefs that gets the lines. Raises MeasureError."""
        self._begins = begins
        self.name = make_instance("marker")
        self._folder = instance_folder(self.name)
        self._rings: dict[int, int] = {}
        self.refused = 0
        try:
            if not (self._folder / COPY).exists():
                raise MeasureError(
                    "--trigger-marker needs Linux 6.16 or newer, whose tracefs has the option "
                    "copy_trace_marker; let the program send a datagram (--socket)"
                )
            for name, value in SETTINGS.items():
                (self._folder / name).write_text(value)
            self._formats = self._read_formats()
            for ring in self._folder.glob("per_cpu/cpu*"):
                flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
                self._rings[int(ring.name.removeprefix("cpu"))] = os.open(ring / "trace_pipe_raw", flags)
        except OSError as error:
            self.close()
            raise MeasureError(f"the lines of trace_marker cannot be read: {error}") from None
        except BaseException:
            self.close()
            raise

    @property
    def descriptors(self) -> dict[int, int]:
        """CPU -> the descriptor that is readable when lines have come."""
        return self._rings

    def read(self, program: Program | None, known: Callable[[], set[int]] = set) -> list[Trigger]:
        """Return the triggers that have come. `known`: threads of the program, also ones that have ended."""
        pages = {cpu: [page] for cpu, ring in self._rings.items() if (page := _page(ring))}
        try:
            events = read_pages(self._formats, pages).events
        except RecordError:
            self.refused += 1
            return []
        triggers: list[Trigger] = []
        for event in events:
            text = event.text("buf")
            if not text.startswith(self._begins):
                continue
            if may_trigger(event.pid, program, known()):
                line = one_line(text.strip())[:MOST_TEXT]
                triggers.append(Trigger(MARKER, line, event.time_ns, event.pid))
            else:
                self.refused += 1
        return triggers

    def close(self) -> None:
        """Close and remove the instance."""
        for ring in self._rings.values():
            os.close(ring)
        self._rings = {}
        remove_instance(self.name)

    def _read_formats(self) -> TraceFormats:
        events = self._folder.parent.parent / "events"
        return TraceFormats.read(
            {
                "type": "trace_formats",
                "clock": "mono",
                "events": {EVENT: (events / EVENT / "format").read_text()},
                "header_page": (events / "header_page").read_text(),
                "header_event": (events / "header_event").read_text(),
                "page_bytes": os.sysconf("SC_PAGE_SIZE"),
                "cpus": os.cpu_count() or 1,
            }
        )


def _page(ring: int) -> bytes:
    with suppress(BlockingIOError):
        return os.read(ring, PIECE)
    return b""


def may_trigger(thread: int, program: Program | None, known: set[int]) -> bool:
    """Return whether the thread is root's, or one of the recorded program."""
    if thread in known:
        return True
    with suppress(OSError, ValueError, KeyError):
        lines = (PROC / str(thread) / "status").read_text(errors="replace").splitlines()
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        own = program is not None and int(fields["Tgid"]) == program.pid
        return own or int(fields["Uid"].split()[0]) == 0
    return False
