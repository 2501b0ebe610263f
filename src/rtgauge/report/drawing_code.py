# SPDX-License-Identifier: MIT
"""The JavaScript that draws the figures of a page: Vega, Vega-Lite and Vega-Embed, from the vl-convert package.

Bundling takes longer than all the rest of a page, so the bundle is kept in the user's cache, by the version of vl-convert. It ends up in pages, so
only a file is taken from there that no other user could have written.
"""

from __future__ import annotations

import functools
import os
import stat
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from rtgauge.record.files import write_whole
from rtgauge.report.figures.figure import VEGALITE

LARGEST = 8 * 2**20
"""Bytes; the bundle has 0.9 million."""
END = "\n//# complete\n"
"""Ends the file, so that one that was cut is not taken."""


def _cache_folder() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(folder) if folder.startswith("/") else Path.home() / ".cache") / "rtgauge"


def _is_private(entry: os.stat_result) -> bool:
    """Whether only this user could write it."""
    return entry.st_uid == os.geteuid() and not entry.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _kept(file: Path) -> str | None:
    """The bundle from the cache; None where there is none that can be trusted."""
    try:
        if not _is_private(file.parent.stat()):
            return None
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, encoding="utf-8") as opened:  # noqa: PTH123 - a descriptor
            entry = os.fstat(handle)
            if not stat.S_ISREG(entry.st_mode) or not _is_private(entry) or entry.st_size > LARGEST:
                return None
            code = opened.read()
    except (OSError, UnicodeDecodeError):
        return None
    return code.removesuffix(END) if code.endswith(END) else None


@functools.cache
def drawing_code() -> str:
    """The bundle, safe inside of a script element; it defines `vegaEmbed`."""
    file = _cache_folder() / f"drawing-{version('vl-convert-python')}-{VEGALITE}.js"
    code = _kept(file)
    if code is None:
        import vl_convert

        code = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGALITE)
        code = code.replace("</script", "<\\/script").replace("<!--", "<\\!--")
        with suppress(OSError):  # without a home, or on a full disk, it is bundled each time
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(file, (code + END).encode(), mode=0o600)
    return code
