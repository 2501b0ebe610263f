# SPDX-License-Identifier: MIT
"""Stands in for `rtgauge` on a board: `python -m tests.unit.fleet.stand_in run PLAN --target=T --out=DIR ...`.

It writes a generated record, and the line of its words to the file CALLS. The target says what else happens:
`broken` fails, `fails` has a requirement that fails, `slow` waits for the file GO first,
`unasked` has no requirement.
"""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

from rtgauge.record.model import VerdictWord
from tests.support.records import Shape, write_record


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
    seed = int.from_bytes(os.urandom(3), "big")
    word = VerdictWord.FAILS if "fails" in target else None if "unasked" in target else VerdictWord.HOLDS
    shape = Shape(seed=seed, seconds=2, loads=("idle",), cpus=(0,), host=target, verdict=word)
    shape.left_out = "unasked" in target
    write_record(out, shape)
    return 1 if word is VerdictWord.FAILS else 0


if __name__ == "__main__":
    sys.exit(main())
