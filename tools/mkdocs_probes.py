# SPDX-License-Identifier: MIT
"""A hook of mkdocs: the section "Probes" has every page of docs/probes, so that a new probe needs no line in mkdocs.yml."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Fills the section."""
    pages = sorted((Path(config["docs_dir"]) / "probes").glob("*.md"))
    for section in config["nav"]:
        if "Probes" in section:
            section["Probes"] = [{page.stem: f"probes/{page.name}"} for page in pages]
    return config
