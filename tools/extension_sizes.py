# SPDX-License-Identifier: MIT
"""Writes the sizes of all extensions, in lines rounded to hundreds, into the table of ext/README.md.

`--check`: writes nothing, and fails if an extension is missing, or if a size is wrong by more than a tenth
and by more than a hundred lines.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXTENSIONS = Path(__file__).parents[1] / "ext"
PAGE = EXTENSIONS / "README.md"
TITLES = ("Python", "C", "tests")
ROW = re.compile(r"^\| \[(\w+)\]\(\w+/README\.md\) \|(.+)\|$")


def sizes(name: str) -> list[int]:
    """Return the lines of an extension's Python, of its C, and of the tests of both."""
    counts = dict.fromkeys(TITLES, 0)
    files = subprocess.check_output(["git", "ls-files", "-z", name], cwd=EXTENSIONS, text=True)
    for path in map(Path, files.rstrip("\0").split("\0")):
        kind = {".py": "Python", ".c": "C", ".h": "C"}.get(path.suffix)
        if kind is not None and (EXTENSIONS / path).exists():
            counts["tests" if "tests" in path.parts else kind] += (
                (EXTENSIONS / path).read_bytes().count(b"\n")
            )
    return list(counts.values())


def cells(row: str) -> list[str]:
    """Return the texts of a row's cells."""
    return [cell.strip() for cell in row.strip("|").split("|")]


def shown(lines: int) -> str:
    """Return a size as the table shows it."""
    return f"{round(lines, -2) or lines:,}"


def is_near(text: str, lines: int) -> bool:
    """Return whether a size in the table is near enough to the real one."""
    digits = text.replace(",", "")
    return digits.isdigit() and abs(int(digits) - lines) <= max(100, lines / 10)


def main() -> int:
    """Write or check the table, and return the exit status."""
    page = PAGE.read_text(encoding="utf-8").splitlines()
    names = {path.parent.name for path in EXTENSIONS.glob("*/extension.py")}
    wrong: list[str] = []
    for number, line in enumerate(page):
        if (row := ROW.match(line)) is None or row[1] not in names:
            continue
        names.remove(row[1])
        known, texts = sizes(row[1]), cells(line)
        if not all(map(is_near, texts[-len(TITLES) :], known)):
            wrong.append(f"{row[1]} has {known} lines of {', '.join(TITLES)}")
        page[number] = f"| {' | '.join([*texts[: -len(TITLES)], *map(shown, known)])} |"
    wrong += [f"{name} has no row" for name in sorted(names)]
    if "--check" not in sys.argv:
        PAGE.write_text("\n".join(page) + "\n", encoding="utf-8")
    elif wrong:
        print(f"ext/README.md: {'; '.join(wrong)}; run python tools/extension_sizes.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
