# SPDX-License-Identifier: MIT
"""Prints public classes whose name two modules of src and ext define, and ends with 1 if there are any."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path

NOT_SHIPPED = {"tests", "bench", "firmware"}


def main() -> int:
    """Exit status: 1 if a name is defined twice."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    files = [*Path("src/rtgauge").rglob("*.py"), *Path("ext").rglob("*.py")]
    for file in sorted(file for file in files if not NOT_SHIPPED & set(file.parts)):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{file}:{node.lineno}")
    twice = {name: where for name, where in places.items() if len(where) > 1}
    for name, where in twice.items():
        print(f"the class {name} is defined in {' and '.join(where)}; rename one")
    return 1 if twice or not places else 0


if __name__ == "__main__":
    sys.exit(main())
