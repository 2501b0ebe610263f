# SPDX-License-Identifier: MIT
"""How often `rtgauge compare` calls an emulated guest different from itself when the load of the host differs
from run to run.

    rtgauge lab boot debian
    python bench/compare_emulated.py --out FOLDER [--trials 15] [--runs 5] [--seed 1]

The sides are measured alternately. Each run has a random number of busy programs on the host (none to one for
each CPU), of one distribution for both sides. A folder that has records is continued.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

RTGAUGE = str(Path(sys.executable).with_name("rtgauge"))
BUSY = (sys.executable, "-c", "while True: pass")
SIDES = ("left", "right")


@contextlib.contextmanager
def host_load(programs: int) -> Generator[None]:
    """So many busy programs run on the host."""
    running = [subprocess.Popen(BUSY) for _ in range(programs)]
    try:
        yield
    finally:
        for program in running:
            program.kill()
            program.wait()


def measure(folder: Path, guest: str, programs: int) -> None:
    """One run of the guest, kept in this folder."""
    words = ("probe", "wakeup", "--target", f"lab:{guest}", "--duration", "1s", "--wait", "5min", "--save")
    with host_load(programs):
        subprocess.run(
            [RTGAUGE, *words, "--out", str(folder)], check=True, stdout=subprocess.DEVNULL, timeout=600
        )


def conclusion(records: list[tuple[str, Path]]) -> str:
    """What the comparison of these records says first."""
    labels = [word for name, record in records for word in ("--side", f"{name}={record}")]
    completed = subprocess.run(
        [RTGAUGE, "compare", "--json", *labels], capture_output=True, text=True, check=True
    )
    return str(json.loads(completed.stdout)["conclusion"])


def main() -> None:
    """Measure, and print what each comparison says."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--guest", default="debian")
    options.add_argument("--trials", type=int, default=15)
    options.add_argument("--runs", type=int, default=5, help="of each side")
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    rng = random.Random(chosen.seed)
    for trial in range(chosen.trials):
        loads: dict[str, list[int]] = collections.defaultdict(list)
        for number, side in itertools.product(range(chosen.runs), SIDES):
            programs = rng.randint(0, os.cpu_count() or 1)
            loads[side].append(programs)
            folder = chosen.out / f"{trial:02}" / f"{side}-{number}"
            if not folder.exists():
                measure(folder, chosen.guest, programs)
        runs = [
            (side, next((chosen.out / f"{trial:02}" / f"{side}-{number}").iterdir()))
            for number, side in itertools.product(range(chosen.runs), SIDES)
        ]
        print(f"{trial + 1}, busy programs {dict(loads)}:", flush=True)
        print(f"  one run a side: {conclusion(runs[:2])}")
        print(f"  {chosen.runs} runs a side: {conclusion(runs)}", flush=True)


if __name__ == "__main__":
    main()
