# SPDX-License-Identifier: MIT
"""At an interval of 20 us on all CPUs: is every activation that the duration holds either measured or counted
as missed, and is none lost?

cyclictest stands beside it for the same duration: what it skips, it skips without a word, so that only the
sum tells.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from figures import CannotMeasure, Figure, Findings
from programs import engine, program, run, say

INTERVAL_US = 20
SECONDS = 3


def measure() -> Findings:
    findings = Findings()
    due = SECONDS * 1_000_000 // INTERVAL_US
    say(f"  {SECONDS} s of rtgauge at {INTERVAL_US} us on all CPUs")
    command = [
        engine(),
        "wakeup",
        "--go",
        "--interval-ns",
        str(INTERVAL_US * 1000),
        "--duration-ns",
        str(SECONDS * 10**9),
    ]
    documents: list[dict[str, Any]] = [json.loads(line) for line in run(command).splitlines()]
    summaries = [document for document in documents if document["type"] == "summary"]
    reason = next((document["reason"] for document in documents if document["type"] == "end"), "no end")
    if reason != "duration":
        raise CannotMeasure(
            f"the engine ended early at {INTERVAL_US} us ({reason}): this machine is too slow or "
            "too busy for it"
        )
    in_windows: dict[int, int] = defaultdict(int)
    for document in documents:
        if document["type"] == "window" and document["phase"] == "measure":
            in_windows[document["series"]] += document["count"] + document["missed"]
    astray = sum(abs(summary["count"] + summary["missed"] - due) for summary in summaries)
    astray_windows = sum(abs(in_windows[summary["series"]] - due) for summary in summaries)
    head = f"{INTERVAL_US} us: "
    findings.figures += [
        Figure(
            head + "activations not accounted for, summaries",
            [astray],
            "activations",
            at_most=0,
            note=f"of {due} on each of {len(summaries)} CPUs",
        ),
        Figure(head + "activations not accounted for, windows", [astray_windows], "activations", at_most=0),
        Figure(
            head + "samples lost by the engine",
            [sum(summary["lost"] for summary in summaries)],
            "samples",
            at_most=0,
        ),
        Figure(
            head + "missed, counted as such",
            [100 * sum(summary["missed"] for summary in summaries) / due / len(summaries)],
            "%",
        ),
    ]
    try:
        findings.figures.append(
            Figure(
                head + "skipped by cyclictest, not reported", [skipped_by_cyclictest(due)], "%", note="about"
            )
        )
    except CannotMeasure as error:
        findings.missing.append(f"cyclictest at {INTERVAL_US} us: {error}")
    return findings


def skipped_by_cyclictest(due: int) -> float:
    """Per cent of the activations that its duration holds and its cycles do not.

    The duration is its own, exact to some ms.
    """
    with tempfile.TemporaryDirectory(prefix="rtgauge-bench-") as folder:
        path = Path(folder) / "cyclictest.json"
        say(f"  {SECONDS} s of cyclictest at {INTERVAL_US} us on all CPUs")
        run(
            [
                program("cyclictest"),
                "-q",
                "-m",
                "-S",
                "-d",
                "0",
                "-p",
                "98",
                "-i",
                str(INTERVAL_US),
                "-D",
                str(SECONDS),
                f"--json={path}",
            ]
        )
        threads = json.loads(path.read_text())["thread"].values()
        return 100 * sum(due - thread["cycles"] for thread in threads) / due / len(threads)
