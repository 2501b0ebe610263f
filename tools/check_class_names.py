# SPDX-License-Identifier: MIT
"""Prints public classes and modules of ext whose name is used twice, and ends with 1 if there are any."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path

NOT_SHIPPED = {"tests", "bench", "firmware"}
IN_EACH = {"__init__", "extension"}
"""The modules that each extension may have."""


def main() -> int:
    """Exit status: 1 if a name is defined twice."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    files = [*Path("src/rtgauge").rglob("*.py"), *Path("ext").rglob("*.py")]
    for file in sorted(file for file in files if not NOT_SHIPPED & set(file.parts)):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{file}:{node.lineno}")
    modules: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted(file for file in files if "ext" in file.parts and "tests" not in file.parts):
        if file.stem not in IN_EACH:
            modules[file.stem].append(str(file))
    shared = [where for where in modules.values() if len(where) > 1]
    for where in shared:
        print(f"{' and '.join(where)} have the same name; rename one")
    twice = {name: where for name, where in places.items() if len(where) > 1}
    for name, where in twice.items():
        print(f"the class {name} is defined in {' and '.join(where)}; rename one")
    return 1 if twice or shared or not places else 0


if __name__ == "__main__":
    sys.exit(main())
