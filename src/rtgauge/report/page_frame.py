# SPDX-License-Identifier: MIT
"""Provides what all pages share: templates, and the JavaScript that draws figures.

The JavaScript is Vega, Vega-Lite and Vega-Embed, from the vl-convert package. Bundling takes longer than the
rest of a page, so the user's cache keeps the bundle, by the version of vl-convert. Pages contain the bundle,
so a cached file is used only if no other user could have written it.
"""

from __future__ import annotations

import functools
import os
import stat
from contextlib import suppress
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from rtgauge import __version__
from rtgauge.errors import MeasureError
from rtgauge.escape import escaped
from rtgauge.record.files import clear_errors, write_whole
from rtgauge.report.figures.vega import VEGALITE
from rtgauge.user_cache import cache_folder, open_to_others, private_folder

if TYPE_CHECKING:
    import jinja2

LARGEST = 8 * 2**20
"""The maximum size of a bundle in bytes. It has 0.9 million at present."""
END = "\n//# complete\n"
"""The text that ends the file; a truncated file lacks it and is not used."""


def _kept(file: Path) -> str | None:
    """Return the cached bundle; None if there is none, or if it cannot be trusted."""
    try:
        if open_to_others(file) is not None:
            return None
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, encoding="utf-8") as opened:  # noqa: PTH123 - a descriptor
            entry = os.fstat(handle)
            if not stat.S_ISREG(entry.st_mode) or entry.st_size > LARGEST:
                return None
            code = opened.read()
    except (OSError, UnicodeDecodeError):
        return None
    return code.removesuffix(END) if code.endswith(END) else None


@functools.cache
def drawing_code() -> str:
    """Return the bundle, which defines `vegaEmbed`. It is safe inside a script element."""
    file = cache_folder(f"drawing-{version('vl-convert-python')}-{VEGALITE}.js")
    code = _kept(file)
    if code is None:
        import vl_convert

        code = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGALITE)
        code = code.replace("</script", "<\\/script").replace("<!--", "<\\!--")
        with suppress(
            OSError, MeasureError
        ):  # without a home folder, or on a full disk, it is bundled each time
            private_folder(file.parent)
            write_whole(file, (code + END).encode(), mode=0o600)
    return code


def template_text(name: str) -> str:
    """Return a template's text: from this package, or from another one by `package/file`."""
    package, _, file = name.rpartition("/")
    return (resources.files(package or "rtgauge.report") / "templates" / file).read_text(encoding="utf-8")


def _shown(value: object) -> object:
    """Escape a value for a template. Our own text (markup) stays unchanged."""
    return escaped(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


@functools.cache
def templates() -> jinja2.Environment:
    """Return the templates: this package's by file, other packages' by `package/file`. They escape all
    values.
    """
    import jinja2

    loader = jinja2.FunctionLoader(template_text)
    return jinja2.Environment(
        loader=loader,
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page_text(template: str, *, draws: bool = True, **content: object) -> str:
    """Return a page's text with our style. `draws`: whether to include the script that draws figures."""
    code = {"script": template_text("page.js"), "engine": drawing_code()} if draws else {}
    style = template_text("style.css")
    return templates().get_template(template).render(version=__version__, style=style, **code, **content)


def write_page(text: str, out: Path) -> None:
    """Write a page, whole or not at all. Raises InputError, or MeasureError if the disk is full."""
    with clear_errors(out, option="-o", kind="file"):
        write_whole(out, text.encode(errors="replace"))
