# SPDX-License-Identifier: MIT
"""The frozen trace of the one explained step of a record, for programs that show traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.explain.trace.events import raw_pages
from rtgauge.explain.trace.formats import TraceFormats
from rtgauge.explain.trace.moment import read_moment
from rtgauge.exporters import perfetto_json, trace_dat_file

if TYPE_CHECKING:
    from rtgauge.record.moments import MomentFile
    from rtgauge.record.reader import Record


def trace_dat(record: Record) -> bytes:
    """trace.dat of trace-cmd.

    Raises InputError if not exactly one step has a trace, RecordError for a damaged record.
    """
    file = _one(record)
    return trace_dat_file.trace_dat(
        TraceFormats.read(file.formats), (raw_pages(document.get("pages")) for document in file.moments())
    )


def perfetto(record: Record) -> bytes:
    """The trace event format of Perfetto.

    Raises InputError if not exactly one step has a trace, RecordError for a damaged record.
    """
    file = _one(record)
    formats = TraceFormats.read(file.formats)
    return perfetto_json.perfetto(formats, (read_moment(formats, document) for document in file.moments()))


def _one(record: Record) -> MomentFile:
    files = {step.id: file for step in record.steps if (file := record.moments(step)) is not None}
    if not files:
        raise InputError("no step here has a trace: measure with --explain")
    if len(files) > 1:
        raise InputError(f"a trace covers one step: choose one with --step: {', '.join(files)}")
    return next(iter(files.values()))
