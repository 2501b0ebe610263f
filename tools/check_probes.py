# SPDX-License-Identifier: MIT
"""Checks what pyright cannot: each probe has its engine source and its page, and each registered presenter
exists.

Run from the root of the tree.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, "src")

from rtgauge.errors import InputError
from rtgauge.extension import registered
from rtgauge.probe.probe_registry import PROBES
from rtgauge.report.presenter import presenters_of


def problems() -> list[str]:
    """A line for each thing that is wrong."""
    found: list[str] = []
    for name, probe in PROBES.items():
        if probe.name != name:
            found.append(
                f"probe {name}: its descriptor is called {probe.name}; the two names must be the same"
            )
        folders = [Path("engine/probes"), *Path("ext").glob("*/engine")]
        page = Path("docs/probes") / f"{name}.md"
        pages = [page] if page.is_file() else Path("ext").glob("*/README.md")
        if not any(
            re.search(rf"^##? {name}(:|$)", text.read_text(encoding="utf-8"), re.MULTILINE) for text in pages
        ):
            found.append(
                f"{page}: the probe {name} needs this page, which begins with '# {name}', or a section of "
                f"its name in the README.md of its extension"
            )
        if not any(
            (folder / place).is_file() for folder in folders for place in (f"{name}.c", f"{name}/{name}.c")
        ):
            found.append(
                f"engine/probes/{name}.c: the probe {name} needs its engine source, here or in a "
                "folder of its name"
            )
        texts = {"help": probe.help, "method": probe.method}
        found += [f"probe {name}: {field} is empty" for field, text in texts.items() if not text.strip()]
    for name in registered("presenters"):
        try:
            presenters_of(name)
        except InputError as error:
            found.append(str(error))
    return found


if __name__ == "__main__":
    sys.exit("\n".join(problems()) or None)
