# SPDX-License-Identifier: MIT
"""What `deploy apply` holds on a target, from the engine's journal (docs/formats/agent.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rtgauge.system.deployment.ability import ISOLATED
from rtgauge.system.file_batch import Files

if TYPE_CHECKING:
    from collections.abc import Mapping

JOURNAL = "/var/lib/rtgauge/journal.ndjson"
"""Where root's is: without root nothing can be applied."""
BOOT_ID = "/proc/sys/kernel/random/boot_id"
PREFIX = "deploy-"


@dataclass(frozen=True)
class Held:
    """A deployment that is held on purpose: its name, how many settings, and the group of the isolated CPUs."""

    name: str
    settings: int
    group: str | None


def find_held(files: Mapping[str, Any], boot_id: str | None) -> Held | None:
    """From a `read` of JOURNAL. What an earlier boot held is held no longer."""
    text = Files(files).text(JOURNAL) or ""
    paths: list[str] = []
    run = ""
    for line in text.split("\n"):
        try:
            entry: Any = json.loads(line)
        except ValueError:
            continue  # damaged lines are the engine's to report
        if not isinstance(entry, dict) or entry.get("owner") != "held" or entry.get("state") == "o":
            continue
        if boot_id is not None and entry.get("boot") != boot_id:
            continue
        run = str(entry.get("run"))
        paths.append(str(entry.get("path")))
    if not paths:
        return None
    groups = [path.removeprefix("group:") for path in paths if path.startswith("group:") and path.endswith(f"/{ISOLATED}")]
    return Held(name_of(run), len(paths), groups[0] if groups else None)


def run_id(name: str) -> str:
    """The run that holds the deployment NAME, in the characters that the engine takes."""
    return PREFIX + "".join(c if c.isalnum() or c in "._-:@+" else {"=": ":", ",": "+"}.get(c, "_") for c in name)[:100]


def name_of(run: str) -> str:
    """The inverse of `run_id`."""
    return run.removeprefix(PREFIX).replace(":", "=").replace("+", ",")
