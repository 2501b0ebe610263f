# SPDX-License-Identifier: MIT
"""The files that the contributors' pages name are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PLACES = (
    "",
    "src/rtgauge",
    *(f"src/rtgauge/{package}" for package in ("exporters", "load", "runner", "study")),
    *(f"tests/{folder}" for folder in ("", "unit", "unit/load")),
    "engine/probes",
)
"""Folders that a page leaves out of a name where the sentence has named one already."""
NAMED = re.compile(r"`([\w./-]+(?:\.(?:py|c|h|md|toml|sh|yml|build|svg)|/))`")


def is_of_a_missing_extension(name: str) -> bool:
    parts = Path(name).parts
    return len(parts) > 2 and parts[0] == "ext" and not (ROOT / "ext" / parts[1] / "extension.py").is_file()


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_every_named_file_is_there(page: str) -> None:
    names = set(NAMED.findall((ROOT / page).read_text(encoding="utf-8")))
    assert len(names) > 10
    assert {
        name
        for name in names
        if not any(word in name for word in ("NAME", "TOOL", "FORMAT"))
        and not any((ROOT / place / name).exists() for place in PLACES)
        and not is_of_a_missing_extension(name)
    } <= {"dist/", "site/"}


def test_the_pages_and_their_search_work_from_disk():
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "use_directory_urls: false" in settings
    assert re.search(r"^plugins: \[.*\boffline\b", settings, re.MULTILINE)


def menu(entries: list[Any]) -> Iterator[str]:
    """The entries of a menu of mkdocs: pages, and titles that the menu gives to pages."""
    for entry in entries:
        if isinstance(entry, dict):
            for title, section in entry.items():
                yield from menu(section) if isinstance(section, list) else (title, section)
        else:
            yield entry


def test_the_menu_has_every_page_once_by_its_heading() -> None:
    """A page that the menu does not name cannot be found; a title in the menu would differ from the heading."""
    docs = ROOT / "docs"
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    entries = list(menu(settings["nav"]))
    made = {"commands.md", "marks.md", "files.md", "engine.md"}
    probes = {str(page.relative_to(docs)) for page in docs.glob("probes/*.md")}
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")}
    assert len(entries) == len(set(entries))
    assert set(entries) - {"Probes", "probes"} <= pages | made
    assert (pages | made) - probes <= set(entries)
    headings = [(docs / page).read_text(encoding="utf-8").partition("\n")[0] for page in sorted(pages)]
    assert [heading for heading in headings if not heading.startswith("# ")] == []
    assert [heading for heading in headings if headings.count(heading) > 1] == []


def test_the_index_links_every_page():
    docs = ROOT / "docs"
    linked = set(re.findall(r"\]\(([a-z0-9/-]+\.md)", (docs / "index.md").read_text()))
    pages = {str(path.relative_to(docs)) for path in docs.rglob("*.md")} - {"index.md"}
    assert pages <= linked


IN_FILE = re.compile(r"`((?:engine|src|kmod)/[\w./-]+\.(?:py|c|h))`(?:, | \()`(\w+)\(\)`")
FUNCTION = re.compile(r"`(\w+)\(\)`")
CONTRIBUTORS = ["CONTRIBUTING.md", "docs/architecture.md", "docs/debugging.md", "docs/design.md"]


def defines(text: str, name: str) -> bool:
    """Whether a source in Python or C has a function of this name."""
    return re.search(rf"^\s*(?:async )?def {name}\(|^[a-z].*\b{name}\([^;]*$", text, re.MULTILINE) is not None


@pytest.mark.parametrize("page", CONTRIBUTORS)
def test_every_named_function_is_where_the_page_says(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    elsewhere = [
        (path, name)
        for path, name in IN_FILE.findall(text)
        if not defines((ROOT / path).read_text("utf-8"), name)
    ]
    assert elsewhere == []
    folders = ("src", "engine", "kmod", "tests")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.[pch]*") if path.is_file()]
    code = "\n".join(
        path.read_text(encoding="utf-8") for path in sources if path.suffix in {".py", ".c", ".h"}
    )
    assert [name for name in set(FUNCTION.findall(text)) if not defines(code, name)] == []


def test_a_function_that_moved_is_noticed() -> None:
    named = IN_FILE.findall("1. `engine/base/series.c`: x. `engine/base/series.c`, `series_feed()`: counts")
    assert named == [("engine/base/series.c", "series_feed")]
    source = (ROOT / "engine/base/series.c").read_text(encoding="utf-8")
    assert defines(source, "series_feed")
    assert not defines(source, "harness_drain")


SOURCE = {".py", ".c", ".h", ".sh", ".toml", ".yml", ".js", ".mjs", ".css", ".j2", ".build", ".options"}


def test_every_source_file_says_its_licence() -> None:
    folders = ("src", "engine", "kmod", "ext", "tests", "tools", "bench", ".github")
    files = [
        path for folder in folders for path in (ROOT / folder).rglob("*") if "node_modules" not in path.parts
    ]
    sources = [
        path
        for path in [*files, *ROOT.glob("*.*")]
        if path.suffix in SOURCE and path.is_file() and path.name != "drawing.js"  # the build makes it
    ]
    assert len(sources) > 500
    assert [
        str(path.relative_to(ROOT))
        for path in sources
        if "SPDX-License-Identifier" not in path.read_text(encoding="utf-8")[:300]
    ] == []
