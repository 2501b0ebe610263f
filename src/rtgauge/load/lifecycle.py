# SPDX-License-Identifier: MIT
"""Runs a load: starts it, warms it up, watches it, measures its effect, and ends it with all its children."""

from __future__ import annotations

import os
import re
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

from typing_extensions import TypedDict  # before Python 3.12, pydantic needs this TypedDict

from rtgauge.errors import MeasureError
from rtgauge.load.load import Load, LoadContext, LoadTarget, PartSpec, PartState
from rtgauge.load.processes import (
    STAT_GLOB,
    USER_HZ,
    ProcessStat,
    count_alive,
    descendants,
    parse_all,
    resident_bytes,
    total_ticks,
)
from rtgauge.load.resources import make_context
from rtgauge.record.model import LoadPart, LoadReport
from rtgauge.target.log_bound import KEPT_LOG, append_only, bound_log
from rtgauge.target.target_protocol import ProgramPlace
from rtgauge.units import NS_PER_S


class KeptPart(TypedDict):
    """One program of a load, saved for a process that picks it up."""

    kept: ProgramPlace
    argv: list[str]
    wanted: dict[str, Any]
    notes: list[str]
    pids: list[int]
    cpu_ticks_begin: int | None


class KeptLoad(TypedDict):
    """A step's load, saved for a process that picks it up. Times are ns of the target's CLOCK_MONOTONIC."""

    started_ns: int | None
    warm_ns: int | None
    begin_ns: int | None
    parts: list[KeptPart]


WARM_UP_S = 2.0
READY_S, EMULATED_READY_S = 30.0, 180.0
"""How long (s) a load may take until its programs run, and on an emulated processor."""
POLL_S = 0.1
GRACE_S = 3.0
MEMORY_EVERY_S = 1.0


class RunningLoad:
    """A load that runs during a step. Leaving this context manager always ends the load.

    with RunningLoad.start(target, get("cpu"), log_path, expected_s=10) as load:
        load.wait_warm()
        ...  # measure; call load.check() now and then
        report = load.stop()
    """

    def __init__(self, target: LoadTarget, load: Load, context: LoadContext, log_path: Path | None) -> None:
        self._target = target
        self._load = load
        self._context = context
        self._log_path = log_path
        self._parts: list[PartState] = []
        self._started_ns: int | None = None
        self._warm_ns: int | None = None
        self._begin_ns: int | None = None
        self._memory_read_at = 0.0
        self._report: LoadReport | None = None

    @classmethod
    def start(
        cls,
        target: LoadTarget,
        load: Load,
        log_path: Path | None,
        *,
        expected_s: float,
        peer: str | None = None,
    ) -> Self:
        """Start every part of the load.

        `log_path`: the file for the programs' output, written when the load ends, unless the load has no
        part. `expected_s`: how long the load will be needed, including its warm-up. Each program gets a much
        higher safety limit. `peer`: HOST:PORT of an iperf3 server for the network load.

        If the load cannot be started, raises InputError or MeasureError and leaves nothing running.
        """
        context = make_context(target, expected_s, peer)
        running = cls(target, load, context, log_path)
        specs = load.parts(context)
        running._started_ns = target.monotonic_ns()
        try:
            for spec in specs:
                log = _new_log()
                try:
                    handle = target.start(spec.argv, log)
                except BaseException:
                    log.close()
                    raise
                running._parts.append(PartState(spec, handle, log))
        except BaseException:
            running.stop()
            raise
        return running

    @classmethod
    def pick_up(
        cls, target: LoadTarget, load: Load, log_path: Path | None, *, expected_s: float, state: KeptLoad
    ) -> Self:
        """Continue a load that another process started on the target, from the `state` that it left.

        Raises MeasureError if the load is gone or does not belong to the record.
        """
        context = make_context(target, expected_s)
        running = cls(target, load, context, log_path)
        running._started_ns, running._warm_ns, running._begin_ns = (
            state["started_ns"],
            state["warm_ns"],
            state["begin_ns"],
        )
        specs = load.parts(context)
        if len(specs) != len(state["parts"]):
            raise MeasureError(
                f"the record is damaged: it names {load.name} programs of the load {len(state['parts'])}, "
                f"which has {len(specs)}"
            )
        for spec, part in zip(specs, state["parts"], strict=True):
            log = _new_log()
            try:
                handle = target.attach(part["kept"], log)
            except BaseException:
                log.close()
                raise
            same = replace(spec, argv=part["argv"], wanted=part["wanted"], notes=tuple(part["notes"]))
            running._parts.append(
                PartState(same, handle, log, pids=part["pids"], cpu_ticks_begin=part["cpu_ticks_begin"])
            )
        return running

    def state(self) -> KeptLoad | None:
        """Return the state for `pick_up` after measuring began; None if the load ends with this process."""
        parts: list[KeptPart] = []
        for part in self._parts:
            kept = part.handle.kept
            if kept is None:
                return None
            spec = part.spec
            parts.append(
                KeptPart(
                    kept=kept,
                    argv=spec.argv,
                    wanted=spec.wanted,
                    notes=list(spec.notes),
                    pids=part.pids,
                    cpu_ticks_begin=part.cpu_ticks_begin,
                )
            )
        return KeptLoad(
            started_ns=self._started_ns, warm_ns=self._warm_ns, begin_ns=self._begin_ns, parts=parts
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def wait_warm(self, warm_up_s: float = WARM_UP_S, ready_s: float = READY_S) -> None:
        """Wait until the programs really run, then for `warm_up_s` seconds. Then begin to measure what the
        load achieves.

        Raises MeasureError if a program ends meanwhile or is not ready within `ready_s` seconds.
        """
        deadline = time.monotonic() + ready_s
        waiting = list(
            self._parts
        )  # Each program must be seen running once. Programs that come and go need not run at the same time.
        while waiting:
            self._raise_if_died()
            processes = parse_all(self._target.read([STAT_GLOB]))
            waiting = [
                part for part in waiting if not self._runs(part, descendants(processes, part.handle.pid))
            ]
            if waiting and time.monotonic() > deadline:
                raise MeasureError(
                    f"{' and '.join(part.spec.program for part in waiting)} did not start running within "
                    f"{ready_s:g} s"
                )
            if waiting:
                time.sleep(POLL_S)
        deadline = time.monotonic() + (warm_up_s if self._parts else 0)
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, POLL_S))
            self._raise_if_died()
        self.begin()

    def begin(self) -> None:
        """Begin, or begin again, to measure what the load achieves. `wait_warm` calls this."""
        if self._parts:
            processes = parse_all(self._target.read([STAT_GLOB]))
            for part in self._parts:
                tree = descendants(processes, part.handle.pid)
                part.cpu_ticks_begin = total_ticks(tree)
                part.pids = [process.pid for process in tree]
                part.resident = []
        self._begin_ns = self._target.monotonic_ns()
        self._warm_ns = self._warm_ns or self._begin_ns
        self._read_memory()

    def check(self) -> list[str]:
        """Return a line with the reason for each part that died while it was needed; empty if all are alive.

        A call is cheap. Call this about once a second.
        """
        for part in self._parts:
            status = part.handle.poll() if part.ended_early is None else None
            if status is not None:
                part.ended_early = _why(part, status)
            bound_log(part.log)
        if time.monotonic() - self._memory_read_at >= MEMORY_EVERY_S:
            self._read_memory()
        return [
            f"{part.spec.program}: {part.ended_early}" for part in self._parts if part.ended_early is not None
        ]

    def stop(self) -> LoadReport:
        """End every part with all its children, and report what the load achieved.

        A second call returns the same report.
        """
        if self._report is not None:
            return self._report
        ended_ns: int | None = None
        share_base: float | None = None
        try:
            self.check()
            ended_ns = self._target.monotonic_ns()
            if self._begin_ns is not None:
                self._measure_end()
                self._read_memory()
                share_base = (ended_ns - self._begin_ns) / NS_PER_S
        finally:
            self._end_parts()
        parts = [self._describe(part, share_base) for part in self._parts]
        short = [
            note
            for part, described in zip(self._parts, parts, strict=True)
            if (note := part.spec.shortfall(described.reached)) is not None
        ]
        self._report = LoadReport(
            name=self._load.name,
            parts=parts,
            notes=[note for part in self._parts for note in part.spec.notes] + short,
            started_ns=self._started_ns,
            warm_ns=self._warm_ns,
            ended_ns=ended_ns,
        )
        for part in self._parts:
            part.log.close()
        return self._report

    def _runs(self, part: PartState, tree: list[ProcessStat]) -> bool:
        name, least_processes = part.spec.ready
        return count_alive(tree, name) >= least_processes and part.spec.settled(self._target, tree)

    def _raise_if_died(self) -> None:
        died = self.check()
        if died:
            raise MeasureError("; ".join(died))

    def _read_memory(self) -> None:
        """For a load on memory, read the resident memory of the processes alive when measuring began."""
        self._memory_read_at = time.monotonic()
        for part in self._parts:
            if part.spec.watch_memory and part.pids and part.ended_early is None:
                part.resident.append(
                    resident_bytes(self._target.read([f"/proc/{pid}/status" for pid in part.pids]))
                )

    def _measure_end(self) -> None:
        processes = parse_all(self._target.read([STAT_GLOB]))
        for part in self._parts:
            tree = descendants(processes, part.handle.pid)
            if part.ended_early is not None or not tree:
                continue
            part.cpu_ticks_end = total_ticks(tree)
            name, least_processes = part.spec.ready
            alive = count_alive(tree, name)
            if part.spec.lasting and alive < least_processes:
                part.ended_early = f"{least_processes - alive} of its {least_processes} processes did"

    def _end_parts(self) -> None:
        """End all parts in reverse order, even if some cannot be ended."""
        failed: BaseException | None = None
        for part in reversed(self._parts):
            try:
                part.handle.stop(GRACE_S)
            except BaseException as error:  # noqa: BLE001 - even on Ctrl-C the other parts must end; raised again below
                failed = error
        self._keep_log()
        if failed is not None:
            raise failed

    def _keep_log(self) -> None:
        if self._log_path is None or not self._parts:
            return
        with self._log_path.open("wb") as out:
            for part in self._parts:
                out.write(f"== {' '.join(part.spec.argv)!r}\n".encode())
                position = 0
                while block := os.pread(part.log.fileno(), 1 << 16, position):
                    position += len(block)
                    out.write(block)
                out.write(b"\n")

    def _describe(self, part: PartState, measured_s: float | None) -> LoadPart:
        reached: dict[str, Any] = {}
        if measured_s is not None and part.cpu_ticks_begin is not None and part.cpu_ticks_end is not None:
            cpu_s = max(part.cpu_ticks_end - part.cpu_ticks_begin, 0) / USER_HZ
            reached |= {"measured_s": measured_s, "cpu_s": cpu_s}
            reached["cpu_share"] = cpu_s / (measured_s * self._context.cpus) if measured_s > 0 else None
        if part.spec.watch_memory and part.resident:
            reached["resident_bytes_mean"] = sum(part.resident) // len(part.resident)
            reached["resident_bytes_max"] = max(part.resident)
            if self._context.memory_total:
                reached["memory_share_max"] = max(part.resident) / self._context.memory_total
        reached |= part.spec.reached(_tail(part.log, KEPT_LOG))
        return LoadPart(
            program=part.spec.program,
            version=self._version(part.spec),
            argv=part.spec.argv,
            wanted=part.spec.wanted,
            reached=reached,
            ended_early=part.ended_early,
        )

    def _version(self, spec: PartSpec) -> str | None:
        """Return the first version number that the program prints. hackbench prints it in its help."""
        for option in ("--version", "--help"):
            match = re.search(
                r"[0-9]+\.[0-9]+(?:\.[0-9]+)?",
                self._target.run([spec.program, option], timeout_s=5).stdout.partition("\n")[0],
            )
            if match is not None:
                return match[0]
        return None


def _new_log() -> BinaryIO:
    log = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - closed in stop()
    append_only(log)
    return log


def _tail(log: BinaryIO, limit: int) -> str:
    """Return the last `limit` bytes of a log as text.

    The file's position does not change, because the load's programs may share it.
    """
    size = os.fstat(log.fileno()).st_size
    return os.pread(log.fileno(), limit, max(size - limit, 0)).decode(errors="replace")


def _why(part: PartState, status: int) -> str:
    """Return in one line why a part ended: its status, and the last line with words in its output."""
    lines = [line.strip() for line in _tail(part.log, 4096).splitlines() if re.search(r"[A-Za-z]", line)]
    how = f"ended with status {status}" if status >= 0 else f"was ended by signal {-status}"
    return f"{how}: {lines[-1][:200]}" if lines else how
