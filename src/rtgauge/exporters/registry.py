# SPDX-License-Identifier: MIT
"""The formats that a record can be exported to, besides CSV, Parquet and JSON (record_export.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.exporters.cyclictest_lines import cyclictest, lava
from rtgauge.exporters.document_tables import latex, markdown
from rtgauge.exporters.hdr_log import hdr_log
from rtgauge.exporters.junit_xml import junit
from rtgauge.exporters.kcidb_report import kcidb
from rtgauge.exporters.moment_traces import perfetto, trace_dat
from rtgauge.exporters.openmetrics import openmetrics
from rtgauge.exporters.tap_lines import tap

if TYPE_CHECKING:
    from collections.abc import Callable

    from rtgauge.record.reader import Record

TEXTS: dict[str, Callable[[Record], bytes]] = {
    "cyclictest": cyclictest,
    "hdr": hdr_log,
    "junit": junit,
    "kcidb": kcidb,
    "latex": latex,
    "lava": lava,
    "markdown": markdown,
    "openmetrics": openmetrics,
    "tap": tap,
}
"""Name -> what makes the file, UTF-8.

Raise InputError where a record has nothing for the format, RecordError for a damaged record.
"""

TRACES: dict[str, Callable[[Record], bytes]] = {"perfetto": perfetto, "trace.dat": trace_dat}
"""The same, of the one step of a record that was explained: the kernel's events around its largest latencies.
"""
BINARY = frozenset({"parquet", "trace.dat"})
"""Formats that are no text."""
