# SPDX-License-Identifier: MIT
"""Finds the deployment of a machine: recognised from its facts, or applied by `rtgauge deploy apply`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

from rtgauge.record.facts import PresentDeployment, Processors
from rtgauge.system.deployment.definition import ISOLATED, NAMED
from rtgauge.target.file_batch import Files, Read
from rtgauge.target.target_protocol import BOOT_ID

JOURNAL = "/var/lib/rtgauge/journal.ndjson"
"""Root's journal, because applying a deployment needs root."""
PREFIX = "deploy-"


@dataclass(frozen=True)
class Held:
    """A deployment that `rtgauge deploy apply` applied.

    `settings`: the number of its settings. `group`: the folder of the control group with the isolated CPUs;
    None if it isolates none.
    """

    name: str
    settings: int
    group: str | None


def read_held(read: Read) -> Held | None:
    """Return the deployment that `deploy apply` holds on a target; None if there is no such deployment."""
    files = read([JOURNAL, BOOT_ID])
    return find_held(files, files.text(BOOT_ID))


def find_held(files: Files, boot_id: str | None) -> Held | None:
    """Return the applied deployment from a `read` of JOURNAL; None if there is no such deployment.

    Only entries of the boot `boot_id` count; None: all entries.
    """
    text = files.text(JOURNAL) or ""
    paths: list[str] = []
    run = ""
    for line in text.split("\n"):
        try:
            parsed: Any = json.loads(line)
        except ValueError:
            continue  # the engine reports damaged lines
        entry = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
        if entry.get("owner") != "held" or entry.get("state") == "o":
            continue
        if boot_id is not None and entry.get("boot") != boot_id:
            continue
        run = str(entry.get("run"))
        paths.append(str(entry.get("path")))
    if not paths:
        return None
    made = [path.removeprefix("group:") for path in paths if path.startswith("group:")]
    group = next((path for path in made if path.endswith(f"/{ISOLATED}")), None)
    return Held(name_of(run), len(paths), group)


def run_id(name: str) -> str:
    """Return an applied deployment's run id, in characters that the engine accepts."""
    signs = {"=": ":", ",": "+"}
    return PREFIX + "".join(c if c.isalnum() or c in "._-:@+" else signs.get(c, "_") for c in name)[:100]


def name_of(run: str) -> str:
    """Return the deployment's name in a `run_id`."""
    return run.removeprefix(PREFIX).replace(":", "=").replace("+", ",")


LETTERS = {"c_states": "C", "smt": "H", "multicore": "M", "isolated": "I"}
"""The letter of each enabled feature in a deployment's name, in this order (Delgado & Choi 2020, III-B)."""


def recognise(cpu: Processors, held: Held | None) -> PresentDeployment:
    """Return the deployment that the processors' state shows, and the deployment that was applied."""
    deepest, isolated = cpu.idle.deepest_latency_us, held is not None and held.group is not None
    threads, cores, active = cpu.topology.threads_per_core, cpu.topology.cores, cpu.smt_active
    features: dict[str, bool | None] = {
        # Without an idle driver, no CPU enters a C-state.
        "c_states": False if deepest == "none" else None if deepest is None else deepest > 0,
        "smt": active if active is not None else threads > 1 if threads is not None else None,
        "multicore": cores > 1 if cores is not None else None,
        "isolated": True if isolated else None if cpu.isolated is None else cpu.isolated != "",
    }
    letters = "".join(letter for key, letter in LETTERS.items() if features[key])
    name = None if None in features.values() else letters or "Single"
    return PresentDeployment(
        name=name,
        of_the_six=None if name is None else name in NAMED,
        **features,
        held="none" if held is None else held.name,
    )
