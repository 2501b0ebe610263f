# SPDX-License-Identifier: MIT
"""The folders of engine/ use each other one way: a file includes headers of its own folder and of the
folders named here.

Tests and main.c may include all. Prints what is wrong, and ends with 1.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ENGINE = Path("engine")
MAY_INCLUDE = {
    "base": set[str](),
    "rt": {"base"},
    "trace": {"base"},
    "agent": {"base", "trace"},
    "kmod": {"base", "rt"},
    "harness": {"base", "rt", "trace"},
    "probes": {"base", "rt", "trace", "agent", "kmod", "harness"},
}
"""Folder -> the folders whose headers its files include: each is named before."""
SHARED = "../kmod/rtgauge_kmod.h"
"""What the engine and the kernel modules say to each other."""
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def wrong_order() -> list[str]:
    """Folders that are named before what they may include."""
    folders = list(MAY_INCLUDE)
    return [
        f"{folder} is named before {other}"
        for number, folder in enumerate(folders)
        for other in sorted(MAY_INCLUDE[folder] - set(folders[:number]))
    ]


def wrong_includes(file: Path) -> list[str]:
    """What a file of a folder includes that it may not. An extension's own headers begin with ext/NAME/."""
    extension = file.parts[0] == "ext"
    folder = "/".join(file.parts[:3]) if extension else file.relative_to(ENGINE).parts[0]
    allowed = MAY_INCLUDE["probes"] if extension else MAY_INCLUDE.get(folder)
    if allowed is None:
        return [f"{file}: the folder {folder} is not in {Path(__file__).name}"]
    included: list[tuple[str, str]] = INCLUDE.findall(file.read_text())
    # <...> finds the engine's own headers too
    names = [name for quote, name in included if quote == '"' or (ENGINE / name).is_file()]
    return [
        f"{file}: {folder}/ may not include {name}"
        for name in names
        if name != SHARED
        and name.partition("/")[0] not in {folder, *allowed}
        and not (extension and name.startswith(f"{folder}/"))
    ] + [
        f"{file}: there is no {name}"
        for name in names
        if not (ENGINE / name).is_file() and not (extension and Path(name).is_file())
    ]


def main() -> int:
    """Exit status: 1 if an include goes the wrong way."""
    found = [*ENGINE.glob("*/**/*.[ch]"), *Path("ext").glob("*/engine/**/*.[ch]")]
    files = [file for file in sorted(found) if "tests" not in file.parts]
    wrong = [*wrong_order(), *(line for file in files for line in wrong_includes(file))]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
