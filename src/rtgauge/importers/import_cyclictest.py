# SPDX-License-Identifier: MIT
"""Imports a cyclictest file as a record."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import rtgauge
from rtgauge.errors import InputError
from rtgauge.importers.cyclictest import looks_like_json, parse_json, parse_text
from rtgauge.importers.imported_step import imported_step
from rtgauge.record.model import LoadReport, Run, StepKey
from rtgauge.record.writer import RecordWriter

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge.importers.measurement import Measurement

MAX_BYTES = 256 << 20


def read_cyclictest(source: Path, *, unit_ns: int | None = None) -> Measurement:
    """The measurement in the file `source`, text or JSON. Raises InputError for a foreign or damaged one."""
    try:
        if source.stat().st_size > MAX_BYTES:
            raise InputError(f"{source} is larger than {MAX_BYTES >> 20} MiB: not an output of cyclictest")
        data = source.read_bytes()
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror}") from None
    if not data.strip():
        raise InputError(f"{source} is empty")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InputError(f"{source} is not an output of cyclictest: it is not text") from None
    return parse_json(text, str(source)) if looks_like_json(text) else parse_text(text, str(source), unit_ns=unit_ns)


def _preemption(system: dict[str, str | int]) -> dict[str, Any]:
    realtime = system.get("realtime") == 1 or "PREEMPT_RT" in str(system.get("version", ""))
    return {
        "model": "PREEMPT_RT" if realtime else "unknown",
        "sources": {"cyclictest's sysinfo": {name: system[name] for name in ("version", "realtime") if name in system}},
    }


def _facts(measurement: Measurement) -> dict[str, Any]:
    """The facts of the machine as far as the file contains them; "unknown" for the rest."""
    system = measurement.system
    return {
        "host": system.get("nodename", "unknown"),
        "kernel": {
            "release": system.get("release", "unknown"),
            "version": system.get("version", "unknown"),
            "architecture": system.get("machine", "unknown"),
            "preemption": _preemption(system),
        },
        "machine": {"virtual": "unknown", "emulated": "unknown"},
    }


def import_cyclictest(source: Path, out: Path, *, interval_ns: int | None = None, unit_ns: int | None = None) -> Path:
    """Make a record in the folder `out` from the file `source` (text of -h, -H, --histfile or the screen; --json); gives its folder.

    `interval_ns` and `unit_ns` (1 with -N) are for text, which may not contain them. Load and deployment are `unknown`.
    Raises InputError for a foreign or damaged file, and the errors of RecordWriter.
    """
    measurement = read_cyclictest(source, unit_ns=unit_ns)
    file_time = f"{datetime.fromtimestamp(source.stat().st_mtime, UTC):%Y-%m-%dT%H:%M:%SZ}"
    now = datetime.now(UTC)
    host = str(measurement.system.get("nodename", "unknown"))
    first = measurement.threads[0]
    interval = interval_ns if interval_ns is not None else None if not first.interval_us else first.interval_us * 1000
    key = StepKey(
        probe="wakeup",
        parameters={"interval_ns": interval, "priority": first.priority},
        load="unknown",
        deployment="unknown",
        targets={"self": host},
        repeat=0,
        tool="cyclictest",
    )
    started, ended = measurement.started or file_time, measurement.ended or file_time
    step, windows = imported_step(
        measurement, step_id="01-wakeup-cyclictest", key=key, load=LoadReport(name="unknown"), started=started, ended=ended, interval_ns=interval_ns
    )
    writer = RecordWriter.create(out, host=host, name="cyclictest", now=now)
    writer.write_run(
        Run(
            id=writer.id,
            created=f"{now:%Y-%m-%dT%H:%M:%SZ}",
            state="partial",
            rtgauge=rtgauge.__version__,
            command=["rtgauge", "import", "cyclictest", str(source)],
            plan={"name": "cyclictest", "imported_from": source.name},
            targets=[host],
            planned=[key],
        )
    )
    writer.write_system(host, _facts(measurement))
    writer.commit_step(step, windows)
    return writer.finish("complete")
