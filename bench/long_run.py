# SPDX-License-Identifier: MIT
"""A week on 64 CPUs: what the host needs for a stream of 38.7 million windows, generated as fast as it is
read, and then for its page and a comparison.

    bench/long_run.py --out /var/tmp/week            a week: half an hour, 6 GB
    bench/long_run.py --seconds 6048 --out /var/tmp  a hundredth of it

The second record of the comparison is a copy of the first, under another load's name. Times are CPU time of
this process, which shares the machine with
the generator.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.generated_engine import write_engine

from rtgauge.record.facts import Facts
from rtgauge.record.model import LoadReport, Run, Step, StepKey
from rtgauge.record.reader import Record
from rtgauge.record.stream import Armed, Window
from rtgauge.record.summary import summarise_step
from rtgauge.record.writer import RecordWriter
from rtgauge.runner.engine import EngineStream

if TYPE_CHECKING:
    from collections.abc import Iterator

WEEK_S = 7 * 86_400
NS = 10**9
MOMENT = "2026-11-21T10:00:00+00:00"


class Generator:
    """The generated engine, as the runner sees a guarded program."""

    def __init__(self, folder: Path, seconds: int) -> None:
        engine = write_engine(folder / "engine")
        self._process = subprocess.Popen(
            [engine, "wakeup", f"--duration-ns={seconds * NS}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def lines(self, silence_s: float | None = None) -> Iterator[bytes]:  # noqa: ARG002 - as of a target
        assert self._process.stdout is not None
        yield from self._process.stdout

    def send(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(word.encode() + b"\n")
        self._process.stdin.flush()


def memory_mib(of: int = resource.RUSAGE_SELF) -> float:
    return resource.getrusage(of).ru_maxrss / 1024


def measure(out: Path, seconds: int) -> tuple[Path, int]:
    """The record, and how many windows it has."""
    writer = RecordWriter.create(out, host="generated", name="week")
    key = StepKey(
        probe="wakeup",
        parameters={"interval_ns": 1_000_000, "duration_ns": seconds * NS},
        load="idle",
        deployment="as-is",
        targets={"self": "local"},
        repeat=1,
    )
    writer.write_run(
        Run(
            id=writer.id,
            created=MOMENT,
            state="partial",
            rtgauge="0",
            command=["bench"],
            plan={"name": "week"},
            targets=["local"],
            planned=[key],
        )
    )
    writer.write_system("local", Facts(host="generated"))
    folder = writer.step_folder("01-wakeup-idle")
    program: Any = Generator(out, seconds)
    stream, windows = EngineStream(folder / "stream.ndjson"), 0
    began, began_cpu = time.monotonic(), time.process_time()
    for line in stream.lines(program):
        if isinstance(line, Armed):
            program.send("go")
        elif isinstance(line, Window):
            windows += 1
            if windows % 1_000_000 == 0:
                print(f"{windows:,} windows, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    parsed = time.process_time() - began_cpu
    print(f"windows                    {windows:,}")
    print(
        f"read and written           {parsed / windows * 1e6:.1f} us CPU a window, "
        f"{time.monotonic() - began:.0f} s in all"
    )
    print(f"memory                     {memory_mib():.0f} MiB", flush=True)
    began_cpu = time.process_time()
    blocks = stream.table.windows()
    print(f"merged in time             {len(blocks):,} blocks, {time.process_time() - began_cpu:.0f} s CPU")
    summary = summarise_step(blocks, stream.result.series, stream.result.summaries)
    assert stream.result.hello is not None
    step = Step(
        id="01-wakeup-idle", key=key, tool="generated", started=MOMENT, ended=MOMENT, start_ns=0,
        end_ns=seconds * NS, end_reason="duration",
        parameters=stream.result.hello.parameters, cpus=stream.result.hello.cpus,
        load=LoadReport(name="idle"), series=summary.series, total=summary.total,
        outliers=[], marks=summary.marks,
    )  # fmt: skip
    writer.commit_step(step, blocks)
    path = writer.finish("complete")
    print(
        f"memory, with the step      {memory_mib():.0f} MiB; marks: {[mark.name for mark in summary.marks]}"
    )
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    print(f"record                     {size / windows:.1f} bytes a window, {size / 1e9:.2f} GB", flush=True)
    return path, windows


def copy_under(record: Path, load: str) -> Path:
    """The same record, measured under another load. Its part files are links to the same data."""
    copy = record.with_name(f"{record.name}-{load}")
    shutil.copytree(record, copy, copy_function=os.link)
    step = Record.open(record).steps[0]
    changed = step.model_copy(update={"key": step.key.model_copy(update={"load": load})})
    file = copy / "steps" / step.id / "step.json"
    file.unlink()
    file.write_text(changed.model_dump_json())
    return copy


def timed(label: str, *words: object) -> None:
    """One command of rtgauge, in a process of its own."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    code = "from rtgauge.cli.main import main; main()"
    completed = subprocess.run(
        ["/usr/bin/env", "time", "-f", "%M", sys.executable, "-c", code, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    memory = completed.stderr.strip().splitlines()[-1]
    print(
        f"{label:26} {time.monotonic() - began:.1f} s, {cpu:.1f} s CPU, {int(memory) / 1024:.0f} "
        f"MiB, status {completed.returncode}",
        flush=True,
    )
    if completed.returncode not in {0, 1}:
        print(completed.stderr, file=sys.stderr)


def main() -> None:
    """Measure, and print what it took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=int, default=WEEK_S, help="length of the measurement on 64 CPUs (a week)"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the records")
    parser.add_argument("--record", type=Path, help="one that is there already: only its page and comparison")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    record = (
        arguments.record if arguments.record is not None else measure(arguments.out, arguments.seconds)[0]
    )
    page = arguments.out / "page.html"
    timed("page", "show", record, "--page", page)
    print(f"size of the page           {page.stat().st_size / 1e6:.2f} MB" if page.exists() else "no page")
    timed("comparison", "compare", record, copy_under(record, "cpu"))


if __name__ == "__main__":
    main()
