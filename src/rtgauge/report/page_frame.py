# SPDX-License-Identifier: MIT
"""Provides what all pages share: templates, and the JavaScript that draws figures.

Pages contain the JavaScript. Bundling it takes longer than the rest of a page, so the build does it.
"""

from __future__ import annotations

import functools
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from rtgauge import __version__
from rtgauge.escape import escaped
from rtgauge.record.files import clear_errors, write_whole
from rtgauge.report.vega_bundle import FILE, bundled

if TYPE_CHECKING:
    import jinja2


@functools.cache
def drawing_code() -> str:
    """Return the JavaScript that defines `vegaEmbed`. It is safe inside a script element.

    A checkout that is not installed has no file of it, and bundles it once per process.
    """
    try:
        return (resources.files("rtgauge.report") / FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return bundled()


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
