# SPDX-License-Identifier: MIT
"""Names of modules in strings are imports too: in src/rtgauge a string may name a module of its own package
or of a lower layer, as import-linter demands of imports.

What is registered above is named in core_extension.py. Prints what is wrong, and ends with 1.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from layers import layers

SOURCES = Path("src/rtgauge")
NAME = re.compile(r"rtgauge\.(\w+)(?:[.:/][\w.:/]*)?")
"""A module, with what is in it (`:PROBE`, `/chapter.html.j2`), and nothing else."""
DOOR = {SOURCES / "core_extension.py", SOURCES / "extension.py"}
"""The list of what the core adds, and what imports it."""
IMPORTERS = {"import_module", "__import__", "find_spec", "run_module"}


def text_of(node: ast.AST) -> tuple[int, str] | None:
    """The line and the content of a string; of an f-string, what stands before its first variable."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.lineno, node.value
    return None


def problems(file: Path) -> list[str]:
    """A line for each name that a file may not have."""
    floor = {name.removeprefix("rtgauge."): row for row, names in enumerate(layers()) for name in names}
    own = file.relative_to(SOURCES).parts[0].removesuffix(".py")
    found: set[tuple[int, str]] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        text = text_of(node)
        match = NAME.fullmatch(text[1]) if text is not None else None
        if text is not None and match is not None and match[1] in floor:
            package = match[1]
            if own in floor and package != own and floor[package] <= floor[own]:
                found.add((text[0], f"{own} may not name a module of {package}"))
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            name = text_of(node.args[0]) if called in IMPORTERS and node.args else None
            if called in IMPORTERS and (name is None or not NAME.fullmatch(name[1])):
                found.add((node.lineno, f"{called} does not say which package it imports from"))
    return [f"{file}:{line}: {what}" for line, what in sorted(found)]


def main() -> int:
    """Exit status: 1 if a string names a module above."""
    files = sorted(set(SOURCES.rglob("*.py")) - DOOR)
    wrong = [line for file in files for line in problems(file)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
