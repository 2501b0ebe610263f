# SPDX-License-Identifier: MIT
"""How real gates decide: `gate_real.py FILE [--gates N] [WORD...]`, the words of one `rtgauge gate`.

    gate_real.py gates.jsonl --gates 300 --baseline local --candidate local --load idle --duration 250ms
    gate_real.py gates.jsonl --gates 20 --baseline lab:debian --candidate lab:changed --load idle
    gate_real.py gates.jsonl

Gates with these words are added to FILE, each with a seed of its own, until it has N of them: it goes on
after it was stopped, and may be called in pieces (`--minutes`). Then it prints how every kind of gate in FILE
decided.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

WORDS = "words"
COMMAND = [sys.executable, "-m", "rtgauge", "gate"]


def read(file: Path) -> list[dict[str, Any]]:
    """The gates so far. A line that was cut off is left out."""
    gates: list[dict[str, Any]] = []
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            gates.append(json.loads(line))
        except ValueError:
            continue
    return gates


def measure(words: list[str], seed: int) -> dict[str, Any] | None:
    """One gate; None if it was interrupted or refused, which is then on standard error."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        command = [*COMMAND, *words, "--seed", str(seed), "--out", folder, "--json", "--wait", "10min"]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        result = json.loads(completed.stdout)
    except ValueError:
        sys.stderr.write(
            f"{completed.stderr}the gate with seed {seed} ended with status {completed.returncode}\n"
        )
        return None
    primary: dict[str, Any] = result["primary"] or {}
    return {
        WORDS: words,
        "seed": seed,
        "ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(time.monotonic() - began, 1),
        "load": round(os.getloadavg()[0], 1),
        "pairs": primary.get("pairs"),
        **{name: result[name] for name in ("outcome", "conclusion", "series", "found")},
        **{name: primary.get(name) for name in ("change", "spread")},
    }


def table(gates: list[dict[str, Any]]) -> None:
    """A row for each kind of gate."""
    print("| gate | gates | worse | not worse | cannot tell | not measured | spread | finds | pairs | load |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for words in dict.fromkeys(" ".join(gate[WORDS]) for gate in gates):
        of = [gate for gate in gates if " ".join(gate[WORDS]) == words]
        count = Counter(gate["outcome"] for gate in of)

        def median(name: str, of: list[dict[str, Any]] = of) -> float | None:
            values = [gate[name] for gate in of if gate[name] is not None]
            return statistics.median(values) if values else None

        spread, found, pairs = median("spread"), median("found"), median("pairs")
        print(
            f"| `{words}` | {len(of)} | {count['worse']} | {count['not worse']} | {count['cannot tell']} "
            f"| {count['could not measure']} "
            f"| {'' if spread is None else f'{spread:.1%}'} | {'' if found is None else f'{found:+.1%}'} "
            f"| {'' if pairs is None else f'{pairs:g}'} "
            f"| {min(gate['load'] for gate in of):g} to {max(gate['load'] for gate in of):g} |"
        )


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--gates", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no further gate after so long")
    own, words = parser.parse_known_args()
    end = time.monotonic() + 60 * own.minutes
    while time.monotonic() < end:
        seeds = [gate["seed"] for gate in read(own.file) if gate[WORDS] == words]
        if not words or len(seeds) >= own.gates:
            break
        gate = measure(words, max(seeds, default=0) + 1)
        if gate is None:
            break
        with own.file.open("a") as file:
            file.write(json.dumps(gate) + "\n")
        print(f"{len(seeds) + 1}: {gate['outcome']}, {gate['conclusion']}", file=sys.stderr, flush=True)
    table(read(own.file))


if __name__ == "__main__":
    main()
