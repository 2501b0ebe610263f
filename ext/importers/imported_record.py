# SPDX-License-Identifier: MIT
"""Makes a record from a file of another tool."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rtgauge.errors import InputError
from rtgauge.record.facts import Facts, Kernel, Preemption, Virtualization
from rtgauge.record.files import clean_name
from rtgauge.record.model import LoadReport, StepKey
from rtgauge.record.probe_parameters import OpenParameters
from rtgauge.record.writer import RecordWriter, wall_time
from rtgauge.units import NS_PER_S, format_duration
from rtgauge_ext.importers.import_marks import ImportMarkKind
from rtgauge_ext.importers.imported_step import StepAndWindows, imported_step
from rtgauge_ext.importers.importer import Hints
from rtgauge_ext.importers.measurement import Measurement
from rtgauge_ext.importers.registry import importer_of

MOST_INTERVAL_NS = 24 * 3600 * NS_PER_S
SYSTEM_TEXTS = ("nodename", "release", "version", "machine")
"""The names of host, kernel and architecture in uname(2)."""
KEY_PARAMETERS = ("priority", "policy", "dma_latency_us", "context", "space", "c_states")
"""Parameters that two measurements must share to be comparable."""


def _facts(measurement: Measurement) -> Facts:
    """Return the facts about the machine that the file contains."""
    system = measurement.system
    texts = {name: None if (value := system.get(name)) is None else str(value) for name in SYSTEM_TEXTS}
    realtime = system.get("realtime") == 1 or "PREEMPT_RT" in (texts["version"] or "")
    sources = {name: system[name] for name in ("version", "realtime") if name in system}
    return Facts(
        host=texts["nodename"],
        kernel=Kernel(
            release=texts["release"],
            version=texts["version"],
            architecture=texts["machine"],
            preemption=Preemption(
                model="PREEMPT_RT" if realtime else None, sources={f"{measurement.tool}'s sysinfo": sources}
            ),
        ),
        machine=Virtualization(virtual=None, emulated=None),
    )


def _key(measurement: Measurement, host: str, interval_ns: int | None, repeat: int) -> StepKey:
    known = {name: measurement.parameters.get(name) for name in KEY_PARAMETERS}
    parameters = {name: value for name, value in known.items() if value is not None}
    first = measurement.series[0].interval_ns if measurement.series else None
    interval = first if interval_ns is None else interval_ns
    return StepKey(
        probe=measurement.probe,
        parameters=OpenParameters(**{"interval_ns": interval, **parameters}),
        load="unknown",
        deployment="unknown",
        targets={"self": host},
        repeat=repeat,
        tool=measurement.tool,
    )


def modification_time(source: Path) -> str:
    """Return the time at which the file was last changed (UTC, ISO 8601)."""
    return wall_time(source.stat().st_mtime_ns)


def import_file(
    source: Path,
    out: Path,
    *,
    form: str | None = None,
    interval_ns: int | None = None,
    unit_ns: int | None = None,
) -> Path:
    """Make a record in the folder `out` with a step for each measurement in the file `source`. Return the
    folder.

    `form`: the format's name, by default found from the file's beginning. `interval_ns`: the interval of all
    series, by default from the file. `unit_ns`: the unit of cyclictest's text (1 with -N), by default found
    in the text. Load and deployment are `unknown`. Raises InputError for a foreign or damaged file or an
    impossible interval, and the errors of RecordWriter.
    """
    if interval_ns is not None and not 0 < interval_ns <= MOST_INTERVAL_NS:
        allowed = f"give one above 0 and at most {format_duration(MOST_INTERVAL_NS)}, e.g. 1ms"
        raise InputError(f"--interval {format_duration(interval_ns)}: {allowed}")
    importer = importer_of(source, form)
    measurements = importer.read(source, Hints(unit_ns, interval_ns))
    file_time = modification_time(source)
    systems = {tuple(measurement.system.get(name) for name in SYSTEM_TEXTS) for measurement in measurements}
    if len(systems) > 1:
        raise InputError(
            f"{source} has measurements on different machines or kernels; import each from its own file"
        )
    host = str(measurements[0].system.get("nodename", "unknown"))[:100]
    keys: list[StepKey] = []
    for measurement in measurements:
        key = _key(measurement, host, interval_ns, 0)
        keys.append(key.model_copy(update={"repeat": sum(earlier == key for earlier in keys)}))
    steps = [
        imported_step(
            measurement,
            step_id=f"{number:02d}-{clean_name(measurement.probe)}-{clean_name(measurement.tool)}",
            key=key,
            load=LoadReport(name="unknown"),
            started=measurement.started or file_time,
            ended=measurement.ended or measurement.started or file_time,
            interval_ns=interval_ns,
            marks=[] if measurement.started else [ImportMarkKind.TIME_UNKNOWN.mark()],
        )
        for number, (measurement, key) in enumerate(zip(measurements, keys, strict=True), start=1)
    ]
    command = ["rtgauge", "import", str(source), "--as", importer.name]
    return write_imported(source, out, importer.name, command, {host: _facts(measurements[0])}, steps)


def write_imported(
    source: Path,
    out: Path,
    name: str,
    command: list[str],
    systems: dict[str, Facts],
    steps: Sequence[StepAndWindows],
) -> Path:
    """Write the record of these steps into the folder `out`; return its folder. `name`: the file's format.

    Raises the errors of RecordWriter.
    """
    ((host, facts),) = systems.items()
    imported_from = source.name.encode(errors="surrogateescape").decode(errors="replace")
    planned = [step.key for step, _ in steps]
    plan = {"name": name, "imported_from": imported_from}
    with RecordWriter.at_once(out, host, facts, planned, command=command, plan=plan) as writer:
        for step, windows in steps:
            writer.commit_step(step, windows)
    return writer.path
