# SPDX-License-Identifier: MIT
"""Writes the file of the extensions in this tree: python tools/known_extensions.py"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import cast, get_args

if __name__ == "__main__":
    sys.path.insert(0, "src")

from rtgauge.cli.extension_options import AddedOptions
from rtgauge.cli.shared_options import option_names
from rtgauge.extension import Extension, extensions, imported
from rtgauge.known_extensions import FILE, AddedKind
from rtgauge.record.marks import MarkKindBase

ROOT = Path(__file__).parents[1]
HEAD = """# SPDX-License-Identifier: MIT
# What each extension of rtgauge's tree adds, so that an rtgauge without it can say what is missing.
# Made by: python tools/known_extensions.py
"""
WITH_PROBES = ("probe", "watch")
"""The commands that have the options of `probe`."""


def _options(extension: Extension) -> list[str]:
    """Each option that it adds to commands, as `COMMAND --NAME`."""
    found: list[str] = []
    for command, reference in extension.options.items():
        group = cast("type[AddedOptions]", imported(reference))
        for name in WITH_PROBES if command == "probe" else (command,):
            found += [f"{name} {option}" for option in option_names(group)]
    return found


def _plans(extension: Extension) -> list[str]:
    """The presets and studies that it adds."""
    folder = [] if extension.presets is None else (resources.files(extension.presets) / "presets").iterdir()
    presets = [entry.name.removesuffix(".toml") for entry in folder if entry.name.endswith(".toml")]
    return [*sorted(presets), *extension.studies]


def _marks(extension: Extension) -> list[str]:
    """The names of its marks."""
    kinds = [cast("type[MarkKindBase]", imported(reference)) for reference in extension.marks.values()]
    return [mark.label for kind in kinds for mark in kind]


def added(extension: Extension) -> Mapping[str, Sequence[str]]:
    """What it adds, by kind, without the kinds of which it adds nothing."""
    special = {"options": _options(extension), "plans": _plans(extension), "marks": _marks(extension)}
    every = {kind: special.get(kind) or list(getattr(extension, kind, ())) for kind in get_args(AddedKind)}
    return {kind: names for kind, names in every.items() if names}


def of_this_tree() -> list[Extension]:
    """The extensions whose folders are in ext/."""
    return [each for each in extensions() if (ROOT / "ext" / each.name / "extension.py").is_file()]


def text() -> str:
    """The content of the file."""
    lines = [HEAD.rstrip()]
    for extension in of_this_tree():
        lines += ["", f"[{extension.name}]"]
        for kind, names in added(extension).items():
            quoted = ", ".join(f'"{name}"' for name in names)
            lines.append(f"{kind} = [{quoted}]")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (ROOT / "src" / "rtgauge" / FILE).write_text(text(), encoding="utf-8")
