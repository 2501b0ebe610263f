# SPDX-License-Identifier: MIT
"""Prints `file:line<TAB>text` for each text that people read; a value reads as {}.

Run from the root of the tree, for example to read a sample:
`python tools/texts.py | shuf -n 100 --random-source=<(git rev-parse HEAD)`.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import cast

WORDS = re.compile(r"(?:\b[A-Za-z]+['a-z-]*\b.*?){5}")
"""A text has at least five words. Shorter ones are labels, and parts of longer ones."""

CODE = re.compile(
    r"^\s*<|\b(?:SELECT|INSERT|CREATE|PRAGMA|UPDATE|DELETE|ALTER|BEGIN) |\\[a-z.(\[]|\(\?[:P]|\[0-9|:Q\b"
    r"|^(?:bold|dim)\b"
    r"|\b(?:dict|list|tuple|Mapping|float|str|int)(?:\[| \|)"
    r"|\b(?:umask|set -eu|exec|mkdir|mktemp|kill)\b.*\$|\bdone\b.*;"
    r"|datum\.|^import |:/bin/|(?:^| )(?:script|default)-src "
)
"""Queries, patterns, types, styles, shell and the page's program."""

NOT_FOR_PEOPLE = {
    "source",
    "fact",
    "file",
    "boot-parameter",
    "kernel-option",
    "command",
    "commands",
    "figure",
}
"""Keys of TOML files whose texts are names and citations."""


def template(node: ast.AST) -> str | None:
    """The text of a constant, an f-string or a sum of both; None if it is something else."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(template(part) or "{}" for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            both = template(left), template(right)
            return None if both == (None, None) else "".join(text or "{}" for text in both)
        case _:
            return None


def texts(node: ast.AST, *, commands: bool) -> Iterator[tuple[int, str]]:
    """(line, text) of each text below a node, except docstrings; a command's docstring is its help."""
    for child in ast.iter_child_nodes(node):
        if child in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            continue
        text = template(child)
        if text is not None:
            yield getattr(child, "lineno", 0), text
        elif isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            if (
                commands
                and isinstance(node, ast.FunctionDef)
                and node.args.args
                and "Annotated" in ast.dump(node.args)
            ):
                yield child.lineno, str(child.value.value)
        else:
            yield from texts(child, commands=commands)


def toml_texts(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of each text of a TOML file."""
    content = path.read_text("utf-8")

    def walk(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            for key, inner in cast("dict[str, object]", value).items():
                yield from () if key in NOT_FOR_PEOPLE else walk(inner)
        elif isinstance(value, list):
            for inner in cast("list[object]", value):
                yield from walk(inner)

    for text in walk(tomllib.loads(content)):
        at = content.find(text.splitlines()[0]) if text else 0
        yield content.count("\n", 0, max(at, 0)) + 1, text


def c_texts(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of each string of a C file, with adjacent strings joined."""
    content = re.sub(
        r"/\*.*?\*/|//[^\n]*", lambda m: re.sub(r"[^\n]", " ", m[0]), path.read_text("utf-8"), flags=re.DOTALL
    )
    for match in re.finditer(r'"(?:[^"\\\n]|\\.)*"(?:\s*(?:PRI\w+\s*)?"(?:[^"\\\n]|\\.)*")*', content):
        parts = re.findall(r'"((?:[^"\\\n]|\\.)*)"', match[0])
        yield content.count("\n", 0, match.start()) + 1, "".join(parts)


def template_texts(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of each text between the tags of a page's template."""
    content = re.sub(
        r"(?s)\{#.*?#\}|<(script|style).*?</\1>", lambda m: "\n" * m[0].count("\n"), path.read_text("utf-8")
    )
    content = re.sub(r"(?s)\{\{.*?\}\}|\{%.*?%\}", lambda m: "{}" + "\n" * m[0].count("\n"), content)
    for match in re.finditer(r">([^<>]+)<", content):
        yield content.count("\n", 0, match.start(1)) + 1, match[1]


def main() -> None:
    """Print them all."""
    found: list[tuple[Path, int, str]] = []
    roots = [Path("src/rtgauge"), *sorted(Path("ext").glob("*/"))]

    def files(pattern: str) -> list[Path]:
        """The files of the core and of the extensions."""
        found = [path for root in roots for path in sorted(root.rglob(pattern))]
        return [path for path in found if not {"tests", "bench"} & set(path.parts)]

    for path in files("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        found += [
            (path, *text) for text in texts(tree, commands="cli" in path.parts) if path.name != "hints.py"
        ]
    for path in files("*.toml"):
        found += [(path, *text) for text in toml_texts(path)]
    for path in files("*.j2"):
        found += [(path, *text) for text in template_texts(path)]
    engine = [path for path in sorted(Path("engine").rglob("*.c")) if "tests" not in path.parts]
    for path in [*engine, *files("*.c")]:
        found += [(path, *text) for text in c_texts(path)]
    for path, line, text in found:
        shown = " ".join(text.split())
        if WORDS.search(shown) and not CODE.search(shown):
            print(f"{path}:{line}\t{shown}")


if __name__ == "__main__":
    main()
