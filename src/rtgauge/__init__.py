# SPDX-License-Identifier: MIT
"""rtgauge answers: does this Linux machine meet its deadlines?"""

from __future__ import annotations

__version__: str
"""The version of the installed package, from meson.build."""


def __getattr__(name: str) -> str:
    """Look up `__version__` when it is first read, because importing importlib.metadata takes as long as a
    short command.
    """
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    globals()[name] = version("rtgauge")
    return str(globals()[name])
