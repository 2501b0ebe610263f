# SPDX-License-Identifier: MIT
"""rtgauge: does this Linux machine keep its deadlines?"""


def __getattr__(name: str) -> str:
    """`__version__`: the project's, from meson.build, which the engine has it from too. Read when it is first used: that costs 30 ms."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version(__name__)
