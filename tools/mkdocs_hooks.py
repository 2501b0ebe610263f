# SPDX-License-Identifier: MIT
"""Hooks of mkdocs: the section "Probes" has the pages of docs/probes that no other section has; each
extension's README.md is a page of the section "Extensions"; some pages are made from the code
(tools/reference.py); pages load nothing from a network, also where they are opened
from disk.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import reference
from mkdocs.structure.files import File

SHIM = "https://unpkg.com/iframe-worker/shim"
"""What the theme's offline plugin would load to search from disk."""
OWN_SHIM = "worker_from_disk.js"
EXTENSIONS = Path(__file__).parent.parent / "ext"
PAGES = {
    str(page.relative_to(EXTENSIONS.parent)): page
    for page in (EXTENSIONS / "README.md", *sorted(EXTENSIONS.glob("*/README.md")))
}
"""Where an extension's page is in the tree."""
LINK = re.compile(r"\[([^][]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
"""A link to a file: its text, the file and the anchor."""


def on_config(config: Any) -> Any:
    """Fills the section, so that a new probe needs no line in mkdocs.yml."""
    named = set(_pages(config["nav"]))
    names = sorted(f"probes/{page.name}" for page in (Path(config["docs_dir"]) / "probes").glob("*.md"))
    sections = {
        name: pages
        for section in config["nav"]
        if isinstance(section, dict)
        for name, pages in section.items()
    }
    for section in sections["Reference"]:
        if "Probes" in section:
            section["Probes"] = [name for name in names if name not in named]
    config["nav"].insert(-1, {"Extensions": [_made(page) for page in PAGES]})
    return config


def _made(page: str) -> str:
    """The name among the pages of an extension's page: ext/tire/README.md -> extensions/tire.md."""
    folder = page.removeprefix("ext").removesuffix("README.md").strip("/")
    return f"extensions/{folder or 'index'}.md"


def _linked(text: str, source: str, place: str) -> str:
    """The text with links that fit `place` among the pages; `source` is the page's file in the tree.

    A link to an extension that is not there becomes plain text.
    """

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[2]))
        if re.fullmatch(r"ext/([\w-]+/)?README\.md", target):
            if target not in PAGES:
                return match[1]
            target = f"docs/{_made(target)}"
        page = posixpath.relpath(target, posixpath.dirname(f"docs/{place}"))
        return f"[{match[1]}]({page}{match[3] or ''})"

    return LINK.sub(link, text)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001 - as mkdocs calls it
    """Links of other pages to those of extensions."""
    place = page.file.src_uri
    return markdown if place.startswith("extensions/") else _linked(markdown, f"docs/{place}", place)


def _pages(entries: list[Any]) -> Iterator[str]:
    """The pages of the menu, in its order."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for section in entry.values():
                yield from _pages(section if isinstance(section, list) else [])


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that are made from the code."""
    for name, content in (
        ("marks.md", reference.marks_page()),
        ("commands.md", reference.commands_page()),
        ("engine.md", reference.engine_page()),
        ("files.md", reference.files_page()),
    ):
        files.append(File.generated(config, name, content=content))
    for name, page in PAGES.items():
        content = _linked(page.read_text(encoding="utf-8"), name, _made(name))
        files.append(File.generated(config, _made(name), content=content))
    return files


def on_post_page(output: str, page: Any, config: Any) -> str:  # noqa: ARG001 - as mkdocs calls it
    """Names our own script in place of the one from a network."""
    return output.replace(SHIM, f"{'../' * page.url.count('/')}{OWN_SHIM}")


def on_post_template(output_content: str, template_name: str, config: Any) -> str:  # noqa: ARG001 - as mkdocs calls it
    """The same for pages that are no Markdown, such as 404.html."""
    return output_content.replace(SHIM, OWN_SHIM)


def on_post_build(config: Any) -> None:
    """Puts that script beside the pages."""
    shutil.copyfile(Path(__file__).with_name(OWN_SHIM), Path(config["site_dir"]) / OWN_SHIM)
