# SPDX-License-Identifier: MIT
"""Stands in for `rtgauge` on a board: `python -m ext.fleet.tests.stand_in run PLAN --target=T --out=DIR ...`.

It writes a generated record, and the line of its words to the file CALLS. The target says what else happens:
`broken` fails, `fails` has a requirement that fails, `slow` waits for the file GO first,
`unasked` has no requirement, `doubtful` measures nothing. A gate cannot measure.
"""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

from tests.support.records import Shape, write_record

from rtgauge.analysis.gate_options import GateOptions
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import VerdictWord
from rtgauge.record.reader import Record, read_run
from rtgauge.record.writer import RecordWriter


def new_seed() -> int:
    """A seed, which also makes the record's name."""
    return int.from_bytes(os.urandom(3), "big")


def write_gate(out: Path) -> None:
    """Write the record of a complete gate."""
    shape = Shape(
        seed=new_seed(), seconds=2, cpus=(0,), loads=("idle",), repeats=2, alternate=("M", "MI"), verdict=None
    )
    path = write_record(out, shape)
    run = read_run(path)
    run.plan["gate"] = GateOptions(series="wakeup/latency/idle", max_pairs=6).model_dump(mode="json")
    RecordWriter(path, run.id).write_run(run)


def write_doubtful(out: Path) -> None:
    """Write the record of a complete run whose only step is invalid."""
    record = Record.open(
        write_record(out, Shape(seed=new_seed(), seconds=2, loads=("idle",), cpus=(0,), verdict=None))
    )
    step = record.steps[0]
    step.marks = [MarkKind.NOTHING_MEASURED.mark("no value was measured")]
    record.folder.write(f"steps/{step.id}/step.json", step.model_dump_json().encode())
    RecordWriter(record.path, record.run.id).write_run(record.run)


def main() -> int:
    options = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:] if "=" in word)
    target, out = options["target"], Path(options["out"])
    with Path(os.environ["CALLS"]).open("a") as calls:
        calls.write(f"{target} {sys.argv[2]}\n")
    if "broken" in target:
        print("rtgauge: the board does not answer", file=sys.stderr)
        return 3
    if "slow" in target:
        print("waiting", flush=True)
        go = os.open(os.environ["GO"], os.O_RDONLY)  # a pipe: opens when the test opens its other end
        select.select([go], [], [])
    if sys.argv[1] == "gate":
        write_gate(out)
        print("could not measure: the pairs are doubtful\npage    /somewhere")
        return 3
    if "doubtful" in target:
        write_doubtful(out)
        print("record  /somewhere\npage    /somewhere/report.html")
        return 3
    word = VerdictWord.FAILS if "fails" in target else None if "unasked" in target else VerdictWord.HOLDS
    shape = Shape(seed=new_seed(), seconds=2, loads=("idle",), cpus=(0,), host=target, verdict=word)
    shape.left_out = "unasked" in target
    write_record(out, shape)
    return 1 if word is VerdictWord.FAILS else 0


if __name__ == "__main__":
    sys.exit(main())
