# SPDX-License-Identifier: MIT
"""Finds phrases that read as translated: in pages, in texts of the engine, and in texts and
docstrings of the Python sources.

CONTRIBUTING.md, section English, has the rules. Run from the root of the tree.
`--all` also checks docstrings.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from texts import c_texts

# It quotes the phrases that it forbids.
UNCHECKED = {"CONTRIBUTING.md"}

PHRASES = {
    r"\bthose (?:of|in|on|for|at|with|by) ": "name the things: 'the tasks of', not 'those of'",
    r"(?<![-\w])told\b": "reported, known, distinguished, said",
    r"\bbesides?\b": "next to, with, compared with, except",
    r"\bin place of\b": "instead of",
    r"\bwhat is (?!new\b)(?![^.?\n]*\?)": "name it, or 'that which' becomes a noun",
    r"\b(?:what|who|that) is none\b|\bis none of\b": "is not one of",
    r"(?<!here )\bis no (?!longer\b|more\b|less\b|different\b|better\b|worse\b|\w+er\b)": "is not a",
    r"\bof which\b(?! you\b)": "two sentences, or 'whose'",
    r"\bthat which\b": "what, or a noun",
    r"\bbut for\b|\bnothing but\b": "except, only",
    r"\bnor (?:does|do|is|are|can|has|did)\b": "a sentence with 'not ... either'",
    r"\bto be had\b|\bcan be had\b": "available",
    r"\bfor want of\b": "because there is no",
    r"\bfor ever\b": "forever",
    r"\b(?:is|are) said\b(?! to\b)": "say who says it",
    r"\ball that\b|\ball which\b": "everything that",
    r"\bof (?!(?:its|their|your) own[ .,;:])\w+'s(?=[.,;:)])": "no double genitive: 'Cobalt's queue'",
    r"\bof a (?:step|run|record|task|series) the (?:first|last|largest|smallest)\b": "the first ... of",
    r"\b(?:only|or|and|except|but|even|also) where (?:it|they|there|the|a|no|none|one)\b": "if",
    r"[,;:] where (?:it|they|there|none|nothing|no|one|nobody|neither|both) ": "if",
    r"(?:^|(?<=[.:] ))Where (?!things\b|is\b|are\b|to\b|do\b|does\b|it says\b)": "If",
    r"\bwhere (?:there (?:is|are|was)|none|nothing|nobody|no |neither)\b": "if",
    r"\bmay not be had\b|\bis not to be\b": "say who does what",
    r"\bso far as\b|\bin so far\b": "if, to the extent that",
}


def prose_of_page(text: str) -> str:
    """The page without code, the rest on the same lines."""
    text = re.sub(
        r"^( *)```.*?^\1```", lambda m: "\n" * m[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL
    )
    text = re.sub(r"^(?: {4}|\t)(?! *[-*0-9]).*$", "", text, flags=re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "`X`", text)


def texts_of_source(source: str, *, docstrings: bool) -> Iterator[tuple[int, str]]:
    """(line, text) of each text that people read: messages, help, notes; docstrings if asked for."""
    tree = ast.parse(source)
    expressions = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value):
            continue
        if docstrings or id(node) not in expressions:
            yield node.lineno, node.value


def faults(text: str) -> Iterator[tuple[int, str, str]]:
    """(line from 0, phrase, what to write) of each phrase in a text."""
    for pattern, instead in PHRASES.items():
        for match in re.finditer(pattern, text, re.MULTILINE):
            line = text.count("\n", 0, match.start())
            yield (
                line,
                text.splitlines()[line].strip()[:100] if text.splitlines() else match[0],
                f"{match[0]!r}: {instead}",
            )


def main(arguments: list[str]) -> list[str]:
    """A line for each phrase."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "src/*.py", "engine/*.c", "ext/*.py", "ext/*.c"],
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[str] = []
    for name in listed.stdout.split():
        path = Path(name)
        if name in UNCHECKED or "/tests/" in name or "/bench/" in name or not path.is_file():
            continue
        content = path.read_text(encoding="utf-8")
        if name.endswith(".md"):
            places = [(1, prose_of_page(content))]
        elif name.endswith(".c"):
            places = list(c_texts(path))
        else:
            places = list(texts_of_source(content, docstrings="--all" in arguments))
        found += [
            f"{name}:{first + line}: {why}   | {shown}"
            for first, text in places
            for line, shown, why in faults(text)
        ]
    return found


if __name__ == "__main__":
    sys.exit("\n".join(main(sys.argv[1:])) or None)
