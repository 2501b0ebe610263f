# SPDX-License-Identifier: MIT
"""How real searches of `rtgauge bisect` end: `bisect_real.py FILE [--searches N]`, with a guest that runs:

    rtgauge lab boot debian --icount
    bisect_real.py searches.jsonl --searches 20

Each search has a repository of 64 commits with settings of the guest. All change the swappiness. From a drawn
commit on, the kernel also filters the events of two tracepoints, which adds a fifth to p50 of `wakeup`. The
command for `bisect` makes the settings in the guest. Searches are added to FILE, a line each, until it has N.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

COMMITS = 64
EVENTS = "/sys/kernel/tracing/events/sched"
SETTINGS = """mount -t tracefs none /sys/kernel/tracing 2>/dev/null
echo {swappiness} > /proc/sys/vm/swappiness
echo 'prev_prio == 7777' > {events}/sched_switch/filter
echo 'prio == 7777' > {events}/sched_wakeup/filter
echo {traced} | tee {events}/sched_switch/enable {events}/sched_wakeup/enable
"""
RTGAUGE = [sys.executable, "-m", "rtgauge"]
MEASURED = [
    "--load", "idle", "--duration", "250ms", "--set", "warm-up=50ms", "--set", "interval=500us",
    "--quantile", "p50",
]  # fmt: skip


def repository(folder: Path, first_bad: int) -> None:
    """A repository whose commits, from `first_bad` on, turn the events on. The first commit is 0."""
    stream: list[str] = []
    for number in range(COMMITS):
        text = SETTINGS.format(swappiness=1 + number, traced=int(number >= first_bad), events=EVENTS)
        stream.append(
            f"commit refs/heads/main\ncommitter A <a@b> {1_700_000_000 + number} +0000\n"
            f"data {len(str(number))}\n{number}\nM 100644 inline settings\ndata {len(text)}\n{text}\n"
        )
    subprocess.run(["git", "init", "--quiet", "-b", "main", folder], check=True)
    subprocess.run(
        ["git", "fast-import", "--quiet"], cwd=folder, input="".join(stream), text=True, check=True
    )
    subprocess.run(["git", "reset", "--quiet", "--hard", "main"], cwd=folder, check=True)


def search(guest: str, seed: int) -> dict[str, Any] | None:
    """One search; None if it was interrupted, which is then on standard error."""
    first_bad = random.Random(seed).randrange(1, COMMITS)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "settings"
        repository(clone, first_bad)
        ends = ["--good", f"HEAD~{COMMITS - 1}", "--bad", "HEAD", "--repository", str(clone)]
        options = [
            "--target",
            f"lab:{guest}",
            *MEASURED,
            "--seed",
            str(seed),
            "--out",
            f"{folder}/out",
            "--json",
        ]
        shell = f'{sys.executable} -m rtgauge lab shell {guest} "$(cat settings)"'
        command = [*RTGAUGE, "bisect", *ends, *options, "--", "sh", "-c", shell]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
    document: dict[str, Any] = json.loads(completed.stdout) if completed.returncode == 0 else {}
    if completed.returncode not in (0, 4):
        sys.stderr.write(completed.stderr)
        return None
    return {
        "seed": seed,
        "first_bad": first_bad,
        "found": [int(each["subject"]) for each in document.get("first_bad", [])],
        "status": completed.returncode,
        "runs": document.get("runs"),
        "change": document.get("change_of_ends"),
        "seconds": round(time.monotonic() - began),
        "said": completed.stderr.splitlines()[-1:],
    }


def main() -> None:
    """Search what is missing, and print how the searches ended."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--searches", type=int, default=0)
    parser.add_argument("--guest", default="debian")
    parser.add_argument("--first", type=int, default=1, help="seed of the first search in FILE")
    options = parser.parse_args()
    options.file.touch()
    while (number := len(options.file.read_text().splitlines())) < options.searches:
        result = search(options.guest, options.first + number)
        if result is None:
            break
        with options.file.open("a") as file:
            file.write(json.dumps(result) + "\n")
        print(result, file=sys.stderr, flush=True)
    results = [json.loads(line) for line in options.file.read_text().splitlines()]
    right = sum(each["found"] == [each["first_bad"]] for each in results)
    wrong = sum(bool(each["found"]) and each["first_bad"] not in each["found"] for each in results)
    runs = [each["runs"] for each in results if each["runs"] is not None]
    mean = sum(runs) / len(runs) if runs else 0
    print(f"{len(results)} searches: {right} right, {wrong} wrong, {mean:.0f} runs each")


if __name__ == "__main__":
    main()
