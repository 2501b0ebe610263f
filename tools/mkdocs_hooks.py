# SPDX-License-Identifier: MIT
"""Hooks of mkdocs: the section "Probes" has every page of docs/probes; some pages are made from the code
(tools/reference.py); pages load nothing from a network, also where they are opened from disk.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import reference
from mkdocs.structure.files import File

SHIM = "https://unpkg.com/iframe-worker/shim"
"""What the theme's offline plugin would load to search from disk."""
OWN_SHIM = "worker_from_disk.js"


def on_config(config: Any) -> Any:
    """Fills the section, so that a new probe needs no line in mkdocs.yml."""
    pages = sorted((Path(config["docs_dir"]) / "probes").glob("*.md"))
    reference = next(section["Reference"] for section in config["nav"] if "Reference" in section)
    for section in reference:
        if "Probes" in section:
            section["Probes"] = [{page.stem: f"probes/{page.name}"} for page in pages]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that are made from the code."""
    for name, content in (
        ("marks.md", reference.marks_page()),
        ("commands.md", reference.commands_page()),
        ("engine.md", reference.engine_page()),
        ("files.md", reference.files_page()),
    ):
        files.append(File.generated(config, name, content=content))
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
