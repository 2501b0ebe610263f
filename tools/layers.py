# SPDX-License-Identifier: MIT
"""Draws docs/layers.svg: the layers of src/rtgauge, from the contract in pyproject.toml and the packages'
docstrings.

With `--check` it writes nothing and fails where the picture is not up to date.
"""

from __future__ import annotations

import ast
import sys
import textwrap
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "layers.svg"
WIDTH, MARGIN, GAP, LINE = 960, 16, 12, 18
CHARACTER = 6.9
"""Mean width of a character at 13 px."""


def summary(module: str) -> str:
    """The first sentence of a module's docstring. Raises SystemExit where there is none."""
    base = ROOT / "src" / Path(*module.split("."))
    file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    if not text:
        raise SystemExit(
            f"{file.relative_to(ROOT)} has no docstring: docs/layers.svg shows its first sentence"
        )
    return " ".join(text.split("\n\n")[0].split()).split(". ")[0].rstrip(".")


def layers() -> list[list[str]]:
    """The rows of the contract, the highest first; modules of one row do not import each other."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    contract = contracts[0]  # the others are of layers inside of a package
    return [[f"rtgauge.{module.strip()}" for module in row.split("|")] for row in contract["layers"]]


def draw() -> str:
    """The picture as SVG."""
    parts: list[str] = []
    top = MARGIN
    for row in layers():
        width = (WIDTH - 2 * MARGIN - GAP * (len(row) - 1)) / len(row)
        texts = [textwrap.wrap(summary(module), int((width - 20) / CHARACTER)) for module in row]
        height = LINE * (1 + max(map(len, texts))) + 14
        for column, (module, lines) in enumerate(zip(row, texts, strict=True)):
            left = MARGIN + column * (width + GAP)
            parts.append(f'<rect x="{left:.0f}" y="{top}" width="{width:.0f}" height="{height}" rx="4"/>')
            parts.append(
                f'<text class="name" x="{left + 10:.0f}" '
                f'y="{top + LINE}">{escape(module.removeprefix("rtgauge."))}</text>'
            )
            parts += [
                f'<text x="{left + 10:.0f}" y="{top + LINE * (number + 2)}">{escape(line)}</text>'
                for number, line in enumerate(lines)
            ]
        top += height + GAP
    return "\n".join(
        [
            "<!-- SPDX-License-Identifier: MIT. Made by tools/layers.py -->",
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top - GAP + MARGIN}" '
                f'width="{WIDTH}" font-family="sans-serif" font-size="13">'
            ),
            "<style>svg{background:#fff}rect{fill:#eef3f8;stroke:#5b7690}text{fill:#1c2733}.name{font-weight:bold;font-family:monospace}</style>",
            *parts,
            "</svg>",
            "",
        ]
    )


def main() -> None:
    """Write the picture, or check it."""
    picture = draw()
    if "--check" not in sys.argv[1:]:
        PICTURE.write_text(picture, encoding="utf-8")
    elif not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != picture:
        raise SystemExit("docs/layers.svg is not up to date: python tools/layers.py")


if __name__ == "__main__":
    main()
