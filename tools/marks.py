# SPDX-License-Identifier: MIT
"""The page of all marks, made from their registry: `python tools/marks.py docs`."""

from __future__ import annotations

import sys
from pathlib import Path

from rtgauge.record.marks import MarkKind

HEAD = """# Marks

A mark is a doubt about a measurement. The terminal, the record and the page show it with what was seen.

- `note`: worth knowing; the measurement stands
- `doubtful`: the verdict "holds" becomes "marginal"
- `invalid`: the step cannot decide anything

The first severity is the usual one.

| mark | severity | meaning | what to do |
|---|---|---|---|
"""


def page() -> str:
    """docs/marks.md, as committed."""
    rows = (
        f"| `{kind.label}` | {' or '.join(kind.value.severities)} | {kind.value.meaning} "
        f"| {kind.value.remedy or '-'} |\n"
        for kind in sorted(MarkKind, key=lambda kind: kind.label)
    )
    return HEAD + "".join(rows)


def main() -> None:
    """Write marks.md to the folder given on the command line."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python tools/marks.py DIR")
    (Path(sys.argv[1]) / "marks.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
