# SPDX-License-Identifier: MIT
"""Records in which somebody changed something and computed the checksums again: every command that reads
records has to refuse them in one line, or show them.

    python bench/hostile_records.py --number 100000 [--first N] [--seed N] [--faults FILE]

One process. Nothing may end in a traceback, take more than 20 s or 1 GiB, or be written elsewhere. A fault is
found again with --first N --number 1.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support.hostile import Hostile, Outcome

SAY_EVERY = 1_000


def _kind(fault: str) -> str:
    """What tells a fault from others: where it came from."""
    frames = re.findall(r'File "[^"]*/(rtgauge/[^"]+)", line ([0-9]+)', fault)
    last = fault.strip().splitlines()[-1][:120]
    return f"{frames[-1][0]}:{frames[-1][1]} {last}" if frames else re.sub(r"[0-9]+", "N", last)


def _say(number: int, outcome: Outcome) -> str:
    return json.dumps(
        {
            "number": number,
            "words": outcome.words,
            "changed": outcome.changed,
            "seconds": round(outcome.seconds, 2),
            "fault": outcome.fault,
        }
    )


def main() -> int:
    """Run the campaign; 1 where it found a fault."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--number", type=int, default=100_000)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--faults", type=Path)
    given = options.parse_args()
    kinds: Counter[str] = Counter()
    readers: Counter[str] = Counter()
    statuses: Counter[int] = Counter()
    slowest, largest, began, tried = 0.0, 0, time.monotonic(), 0
    with (
        tempfile.TemporaryDirectory() as folder,
        suppress(KeyboardInterrupt),
    ):  # what was tried until then is said
        hostile = Hostile(Path(folder), given.seed)
        for number in range(given.first, given.first + given.number):
            outcome = hostile.try_change(number)
            tried += 1
            readers[outcome.words[0]] += 1
            statuses[outcome.status] += 1
            slowest, largest = max(slowest, outcome.seconds), max(largest, outcome.grown)
            if outcome.fault is not None:
                kind = _kind(outcome.fault)
                if not kinds[kind]:
                    print(number, kind, flush=True)
                kinds[kind] += 1
                if given.faults is not None:
                    with given.faults.open("a") as file:
                        file.write(_say(number, outcome) + "\n")
            if (number + 1) % SAY_EVERY == 0:
                said = f"slowest {slowest:.1f} s, largest {largest >> 20} MiB"
                print(
                    f"{number + 1}: {sum(kinds.values())} faults, {said}, {time.monotonic() - began:.0f} s",
                    file=sys.stderr,
                    flush=True,
                )
        hostile.check_around()
    print(
        f"{tried} changed records, seed {given.seed}, in {time.monotonic() - began:.0f} s; slowest "
        f"{slowest:.1f} s, largest {largest >> 20} MiB"
    )
    print(f"read by: {dict(readers.most_common())}")
    print(f"exit status: {dict(sorted(statuses.items()))}")
    print(f"faults: {sum(kinds.values())} of {len(kinds)} kinds")
    for kind, count in kinds.most_common():
        print(f"  {count} {kind}")
    return bool(kinds)


if __name__ == "__main__":
    sys.exit(main())
