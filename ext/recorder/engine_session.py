# SPDX-License-Identifier: MIT
"""One engine that watches one program: its command line, its process and its lines."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

from rtgauge.probe.common_parameters import LONGEST
from rtgauge.probe.watch import PROBE, WatchParameters
from rtgauge.target.engine_path import engine_path
from rtgauge.units import NS_PER_S
from rtgauge_ext.recorder.program import Program
from rtgauge_ext.recorder.tracing import make_instance, remove_instance

PIECE = 1 << 18
PIPE_BYTES = 1 << 20
GRACE_S = 10.0
BUFFER_KB, LEAST_BUFFER_KB = 8192, 512
"""Room for the kernel's events around a moment, for each CPU; the latter is the engine's usual one."""
BUFFER_NS, MOST_DRAIN_NS = 20_000_000, 160_000_000
"""The engine's usual time between two readings of the events. In a larger buffer, they may wait longer, up to
the latter.
"""
SPARING_NS = NS_PER_S // 2
"""The time between two readings while recording takes too much of the CPU. Later ones would need larger
buffers, and a moment costs the reading of a whole buffer.
"""
EVERY_NS, SPARING_EVERY_NS = 10 * NS_PER_S, 20 * NS_PER_S
"""In a storm, one latency of each size is kept in each such time; the latter while recording takes too much
of the CPU.
"""
MEMORY_PART = 64
"""The buffers of all CPUs take at most one part in this many of the memory."""
LOOK_NS = 10 * NS_PER_S
"""Between two searches for new threads. The engine also searches when a watched thread begins one."""
OWN_OPTIONS = (
    *("--pid=", "--program=", "--explain-cost-ns=", "--explain-buffer-kb="),
    *("--trace-instance=", "--explain-instance="),
)


def buffer_kb(memory_kb: int, cpus: int) -> int:
    """Return the KiB of each CPU's buffer on a machine with this memory and this number of CPUs."""
    return min(BUFFER_KB, max(LEAST_BUFFER_KB, memory_kb // MEMORY_PART // cpus))


def engine_arguments(
    options: dict[str, str | int], pid: int, trace: str, explain: str, *, spares: bool = False
) -> list[str]:
    """Return the engine's command line. `options`: as a plan has them. `spares`: reads the events as rarely
    as possible, so that moments that come close together get lost. Raises ValueError for a wrong option.
    """
    given = {"pid": pid, "duration": LONGEST, "explain": True, **options}
    arguments = PROBE.arguments(WatchParameters.model_validate(given), None)
    kept = [word for word in arguments if not word.startswith(OWN_OPTIONS)]
    memory_kb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024
    room_kb = buffer_kb(memory_kb, os.cpu_count() or 1)
    drain_ns = SPARING_NS if spares else min(MOST_DRAIN_NS, room_kb * BUFFER_NS // LEAST_BUFFER_KB)
    return [
        *kept,
        f"--look-ns={LOOK_NS}",
        f"--explain-buffer-kb={room_kb}",
        f"--drain-ns={drain_ns}",
        f"--explain-every-ns={SPARING_EVERY_NS if spares else EVERY_NS}",
        "--keep-end",
        f"--pid={pid}",
        f"--trace-instance={trace}",
        f"--explain-instance={explain}",
    ]


class EngineSession:
    """A running engine. Its lines come from `lines`, whenever `stdout` is readable. `instances`: the kernel's
    rings that it reads.
    """

    def __init__(
        self, number: int, program: Program, options: dict[str, str | int], *, spares: bool = False
    ) -> None:
        """Start the engine; `spares`: see engine_arguments. Raises MeasureError or OSError."""
        self.program, self.spares = program, spares
        self.instances = [make_instance(f"{number}{part}") for part in ("", "-explain")]
        try:
            self._process = subprocess.Popen(
                [
                    str(engine_path()),
                    *engine_arguments(options, program.pid, *self.instances, spares=spares),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        except BaseException:
            self._remove()
            raise
        with suppress(OSError):  # so that the engine need not wait for a recorder that is busy for a moment
            fcntl.fcntl(self.stdout.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._rest = b""
        self.stopping = False

    @property
    def stdout(self) -> IO[bytes]:
        """The engine's output."""
        assert self._process.stdout is not None  # noqa: S101 - Popen was asked for a pipe
        return self._process.stdout

    @property
    def pid(self) -> int:
        """The engine's process."""
        return self._process.pid

    def lines(self) -> Iterator[bytes] | None:
        """Return the whole lines that have come; None at the end of the output."""
        piece = os.read(self.stdout.fileno(), PIECE)
        if not piece:
            return None
        *whole, self._rest = (self._rest + piece).split(b"\n")
        return iter(whole)

    def send(self, word: str) -> bool:
        """Send the engine a command; return False if it has ended."""
        assert self._process.stdin is not None  # noqa: S101 - Popen was asked for a pipe
        with suppress(OSError, ValueError):
            os.write(self._process.stdin.fileno(), f"{word}\n".encode())
            return True
        return False

    def stop(self) -> None:
        """Let the engine end in order."""
        self.stopping = True
        self.send("stop")

    def close(self) -> int:
        """Wait for the engine's end, remove its instances, and return its exit status."""
        try:
            status = self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._remove()
        return status

    def _remove(self) -> None:
        for name in self.instances:
            remove_instance(name)
