# SPDX-License-Identifier: MIT
"""The record of a last boot: show --why explains what held the threads up at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.cli import invoke

from ext.last_boot.tests.unit.test_last_boot_output import output
from rtgauge.explain.analysis.culprits import explained_steps
from rtgauge.record.reader import Record
from rtgauge_ext.last_boot.boot_record import make_boot_record, pages_of_window, threads_at_end
from rtgauge_ext.last_boot.ending import WINDOW_NS, BootEnd, boot_end
from rtgauge_ext.last_boot.kept_boot import KeptBoot, parse

if TYPE_CHECKING:
    from pathlib import Path


def kept_and_end(name: str) -> tuple[KeptBoot, BootEnd]:
    _, kept = parse(output(name))
    assert kept is not None
    end = boot_end(kept, kept.reading.read_boot_id)
    assert end is not None
    return kept, end


@pytest.mark.parametrize(("name", "task"), [("crash", "sh"), ("hang", "taskset")])
def test_show_explains_the_last_100_ms(tmp_path: Path, name: str, task: str) -> None:
    kept, end = kept_and_end(name)
    path = make_boot_record(kept, end, None, tmp_path, ["rtgauge"])
    record = Record.open(path)
    (explained,) = explained_steps(record)
    assert not explained.explanations
    threads = threads_at_end(end)
    assert task in {thread.name for thread in threads}
    assert [known.moment.thread for known in explained.triggered] == [thread.pid for thread in threads]
    for known in explained.triggered:
        assert known.moment.end_ns == end.end_ns
        assert sum(part.ns for part in known.parts) == WINDOW_NS
    shown = invoke("show", str(path), "--why")
    assert shown.returncode == 0, shown.stderr
    assert "before the trigger end of the boot (the " in " ".join(shown.stdout.split())
    assert "only the time before triggers is explained" in shown.stdout
    assert task in shown.stdout
    plain = invoke("show", str(path))
    assert plain.returncode in {0, 4}, plain.stderr


def test_a_page_from_before_the_window_is_there() -> None:
    """It says what each CPU ran when the window began."""
    kept, end = kept_and_end("crash")
    chosen = pages_of_window(kept.pages, end.end_ns - WINDOW_NS, end.last_ns)
    whole = {str(cpu): len(raws) for cpu, raws in kept.pages.items()}
    assert chosen.keys() == whole.keys()
    assert all(0 < len(raws) <= whole[cpu] for cpu, raws in chosen.items())
    assert sum(map(len, chosen.values())) < sum(whole.values())
