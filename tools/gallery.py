# SPDX-License-Identifier: MIT
"""Makes the gallery in a folder: python tools/gallery.py [build-gallery] [NAME...].

Runs each entry of gallery/gallery.toml, or only the named ones, and writes a page that links their pages.
Records stay next to them. The tops of some pages are the pictures of the docs.
"""

from __future__ import annotations

import html
import os
import shutil
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
GALLERY, DOCS = ROOT / "gallery", ROOT / "docs"
WIDTH, HEIGHT = 1100, 1980
"""The size of a picture in px."""
ANSWERS = {0, 1, 4}
"""Statuses of a command that measured: any verdict will do."""
HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>rtgauge: real runs</title>
<style>body { font: 16px/1.5 sans-serif; max-width: 50em; margin: 2em auto; padding: 0 1em }</style>
<h1>Real runs</h1>
"""


class Entry(NamedTuple):
    """A run of the gallery: its folder's name, what it shows, the commands that end in `page.html`, the
    picture of that page in the docs, if it has one, and the only sections in the picture; none: all.
    """

    name: str
    sentence: str
    commands: tuple[str, ...]
    picture: str | None = None
    sections: tuple[str, ...] = ()


def entries() -> list[Entry]:
    """All of gallery.toml, in order."""
    written = tomllib.loads((GALLERY / "gallery.toml").read_text(encoding="utf-8"))["entry"]
    return [
        Entry(
            entry["name"],
            entry["sentence"],
            tuple(entry["commands"]),
            entry.get("picture"),
            tuple(entry.get("sections", ())),
        )
        for entry in written
    ]


def make(entry: Entry, place: Path) -> None:
    """Run an entry's commands in an empty `place`; ends the program if one fails."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for file in GALLERY.iterdir():
        if file.name != "gallery.toml":
            shutil.copy(file, place)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in entry.commands:
        done = subprocess.run(
            ["sh", "-c", f"{command} >>output.txt"], cwd=place, env={**os.environ, "PATH": path}, check=False
        )
        if done.returncode not in ANSWERS:
            sys.exit(f"{entry.name}: {command} ended with status {done.returncode}")


def take_picture(page: Path, picture: Path, sections: tuple[str, ...]) -> None:
    """Write the top of a page as PNG, with Chromium; ends the program if it cannot. `sections`: show only
    the sections with these ids.
    """
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("pictures need Chromium: apt-get install chromium")
    flags = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
    # The page draws its figures by script; virtual time ends when the script does.
    once = ("--virtual-time-budget=20000", f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={picture}")
    if sections:
        kept = ", ".join(f"#{name}" for name in sections)
        hidden = f"<style>main > :not({kept}), footer {{ display: none }}</style></head>"
        text = page.read_text(encoding="utf-8")
        page = page.with_name("picture.html")
        page.write_text(text.replace("</head>", hidden, 1), encoding="utf-8")
    subprocess.run([browser, *flags, *once, page.as_uri()], check=True, capture_output=True)


def index(shown: list[Entry], out: Path) -> str:
    """The page of the gallery: a sentence and a link for each entry that is there."""
    parts = [HEAD]
    for entry in shown:
        page = out / entry.name / "page.html"
        if page.is_file():
            made = datetime.fromtimestamp(page.stat().st_mtime, UTC).date()
            commands = html.escape("\n".join(entry.commands))
            parts.append(
                f'<h2><a href="{entry.name}/page.html">{entry.name}</a></h2>\n'
                f"<p>{html.escape(entry.sentence)} ({made})</p>\n<pre>{commands}</pre>\n"
            )
    return "".join(parts)


def main() -> None:
    """Make the entries, then the page."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "build-gallery").absolute()
    known = entries()
    wanted = sys.argv[2:] or [entry.name for entry in known]
    if unknown := set(wanted) - {entry.name for entry in known}:
        sys.exit(f"the gallery has no {', '.join(sorted(unknown))}")
    for entry in known:
        if entry.name in wanted:
            print(f"--- {entry.name}", flush=True)
            make(entry, out / entry.name)
            if entry.picture is not None:
                take_picture(out / entry.name / "page.html", DOCS / entry.picture, entry.sections)
    (out / "index.html").write_text(index(known, out), encoding="utf-8")
    print(out / "index.html")


if __name__ == "__main__":
    main()
