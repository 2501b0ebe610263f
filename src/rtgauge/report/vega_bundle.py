# SPDX-License-Identifier: MIT
"""Bundles the JavaScript that draws a page's figures: Vega, Vega-Lite and Vega-Embed, from vl-convert."""

from __future__ import annotations

VEGALITE = "6.4"
"""The Vega-Lite version of the figures; vl-convert supports several."""
FILE = "drawing.js"
"""The bundle in the installed package; the build makes it."""


def bundled() -> str:
    """Return the bundle, which defines `vegaEmbed`. It is safe inside a script element. It takes seconds."""
    import vl_convert

    code: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGALITE)
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")
