# SPDX-License-Identifier: MIT
"""rtgauge side by side with cyclictest and jitterdebugger: `python bench/run.py [--rounds N] [--only PART]
[--json]`.

Prints each figure with the target that the project set itself and `ok` or `short of it`. Nothing is asserted:
the exit status is 0 unless
something could not be measured (1), which is then said with what to install. How to read the figures:
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import compare_records
import footprint
import instructions
import latency_by_turns
import latency_together
import short_interval
import startup
import summarise_samples
from figures import CannotMeasure, Findings, line
from programs import last_cpu, say

if TYPE_CHECKING:
    from collections.abc import Callable


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=21,
        help="rounds of the latency comparison, at least 7 (default: %(default)s)",
    )
    parser.add_argument(
        "--slice",
        type=float,
        default=0.6,
        metavar="SECONDS",
        help="length of one program's turn in a round (default: %(default)s)",
    )
    parser.add_argument(
        "--cpu", type=int, default=last_cpu(), help="the CPU that is measured (default: %(default)s)"
    )
    parser.add_argument(
        "--only", action="append", choices=list(PARTS), help="this part only; may be given more than once"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    chosen = parser.parse_args()
    if chosen.rounds < 7:
        parser.error("--rounds must be 7 or more: fewer say nothing about the noise")
    if chosen.slice <= 0:
        parser.error("--slice must be longer than 0")
    if chosen.cpu not in os.sched_getaffinity(0):
        parser.error(f"CPU {chosen.cpu} is not allowed here; allowed are {sorted(os.sched_getaffinity(0))}")
    return chosen


PARTS: dict[str, Callable[[argparse.Namespace], Findings]] = {
    "latency": lambda chosen: latency_together.measure(chosen.cpu, chosen.rounds, chosen.slice),
    "latency-by-turns": lambda chosen: latency_by_turns.measure(chosen.cpu, chosen.rounds, chosen.slice),
    "instructions": lambda chosen: instructions.measure(chosen.cpu),
    "interval": lambda _: short_interval.measure(),
    "summarise": lambda chosen: summarise_samples.measure(chosen.cpu),
    "compare": lambda chosen: compare_records.measure(chosen.cpu),
    "startup": lambda _: startup.measure(),
    "footprint": lambda _: footprint.measure(),
}


def of_extension(path: Path) -> Callable[[argparse.Namespace], Findings]:
    """Measures the part in ext/NAME/bench/NAME.py, which has `measure()`, with what was chosen."""

    def measure(chosen: argparse.Namespace) -> Findings:
        spec = importlib.util.spec_from_file_location(f"bench_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.measure(chosen)

    return measure


PARTS |= {
    folder.parent.name: of_extension(folder / f"{folder.parent.name}.py")
    for folder in sorted(Path(__file__).parent.parent.glob("ext/*/bench"))
    if (folder / f"{folder.parent.name}.py").is_file()
}


def load() -> float:
    return os.getloadavg()[0]


def machine() -> dict[str, Any]:
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpus_allowed": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
    }


def main() -> int:
    chosen = arguments()
    if importlib.util.find_spec("rtgauge") is None:
        say("rtgauge is not installed for this Python: make bench installs it, or pip install .")
        return 1
    about, before = machine(), load()
    if not chosen.json:
        print(
            f"Linux {about['kernel']}, {about['machine']}, {about['cpus_allowed']} CPUs; measured "
            f"on CPU {chosen.cpu}; load {before:.2f} before"
        )
        print(
            "Each figure: the median over the rounds (smallest .. largest; 95 %: confidence "
            "interval of the median). How to read them: docs/benchmarks.md"
        )
    parts: dict[str, Findings] = {}
    for name in chosen.only or PARTS:
        say(f"{name} ...")
        try:
            found = PARTS[name](chosen)
        except CannotMeasure as error:
            found = Findings(missing=[f"{name}: {error}"])
        parts[name] = found
        if not chosen.json:
            print(name)
            for figure in found.figures:
                print(line(figure))
            for text in found.notes:
                print(f"  note: {text}")
            for text in found.missing:
                print(f"  not measured: {text}")
            sys.stdout.flush()
    missing = [text for part in parts.values() for text in part.missing]
    if chosen.json:
        notes = [text for part in parts.values() for text in part.notes]
        figures = {name: [figure.as_dict() for figure in found.figures] for name, found in parts.items()}
        print(
            json.dumps(
                {
                    "machine": about,
                    "cpu": chosen.cpu,
                    "load_before": before,
                    "load_after": load(),
                    "figures": figures,
                    "notes": notes,
                    "missing": missing,
                },
                indent=1,
            )
        )
    elif missing:
        print(f"{len(missing)} not measured, see above")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
