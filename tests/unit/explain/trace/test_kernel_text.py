# SPDX-License-Identifier: MIT
"""What is read from this machine's ring is what the kernel itself says of it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from rtgauge.explain.trace.formats import TraceFormats
from rtgauge.explain.trace.moment import read_pages
from tests.support.trace_instance import trace_instance

LINE = re.compile(r"^\s*.+-(\d+)\s+\[(\d+)\] \S{5} +(\d+)\.(\d{6}): (\w+): (.*)$")
GROUPS = ("sched", "irq", "irq_vectors", "timer", "power", "exceptions")


@pytest.mark.root
@pytest.mark.root
@pytest.mark.tracefs
def test_events_are_those_of_the_kernels_own_text(tmp_path: Path) -> None:
    with trace_instance(tmp_path) as instance:
        instance.start(*GROUPS)
        for _ in range(20):
            reader, writer = os.pipe()
            if (child := os.fork()) == 0:
                os.read(reader, 1)
                os._exit(0)
            os.write(writer, b"x")
            os.waitpid(child, 0)
            os.close(reader)
            os.close(writer)
        instance.write("tracing_on", "0")
        text = (instance.folder / "trace").read_text()
        formats = TraceFormats.read(
            instance.formats(*(group for group in GROUPS if (instance.folder / "events" / group).is_dir()))
        )
        table = read_pages(formats, instance.pages())
    lines = [match for line in text.splitlines() if (match := LINE.match(line)) is not None]
    reported = sorted(
        (int(line[2]), int(line[3]) * 1_000_000 + int(line[4]), line[5], int(line[1])) for line in lines
    )
    # the kernel rounds to us
    assert (
        sorted((event.cpu, (event.time_ns + 500) // 1000, event.name, event.pid) for event in table.events)
        == reported
    )
    assert len(reported) > 100
    switches = sorted(
        (int(line[2]), int(number[1]))
        for line in lines
        if line[5] == "sched_switch" and (number := re.search(r"next_pid=(\d+)", line[6]))
    )
    assert (
        sorted(
            (event.cpu, event.number("next_pid")) for event in table.events if event.name == "sched_switch"
        )
        == switches
    )
