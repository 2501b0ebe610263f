# SPDX-License-Identifier: MIT
"""Checks what pyright cannot: each probe of src/rtgauge/probe has its engine source and its page, and its presenter exists. Run from the root of the tree."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, "src")

from rtgauge.probe.registry import PROBES
from rtgauge.report.presenter import Presenter, load_presenter


def problems() -> list[str]:
    """A line for each thing that is wrong."""
    found: list[str] = []
    for name, probe in PROBES.items():
        if probe.name != name:
            found.append(f"src/rtgauge/probe/{name}.py: its probe is called {probe.name}; the two names must be the same")
        page = Path("docs/probes") / f"{name}.md"
        if not page.is_file() or not page.read_text(encoding="utf-8").startswith(f"# {name}\n"):
            found.append(f"{page}: the probe {name} needs this page, which begins with '# {name}'")
        if not any(Path(place).is_file() for place in (f"engine/probes/{name}.c", f"engine/probes/{name}/{name}.c")):
            found.append(f"engine/probes/{name}.c: the probe {name} needs its engine source, here or in a folder of its name")
        texts = {"help": probe.help, "about": probe.about, "method": probe.method}
        found += [f"src/rtgauge/probe/{name}.py: {field} is empty" for field, text in texts.items() if not text.strip()]
        if probe.presenter is not None:
            try:
                presenter = load_presenter(probe.presenter)
            except (ImportError, AttributeError) as error:
                found.append(f"src/rtgauge/probe/{name}.py: the presenter {probe.presenter} cannot be loaded: {error}")
            else:
                if not isinstance(presenter, Presenter):
                    found.append(f"src/rtgauge/probe/{name}.py: {probe.presenter} is no Presenter")
    return found


if __name__ == "__main__":
    sys.exit("\n".join(problems()) or None)
