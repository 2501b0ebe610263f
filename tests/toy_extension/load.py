# SPDX-License-Identifier: MIT
"""The load `toy`, which does nothing."""

from rtgauge.load.idle import IdleLoad


class Toy(IdleLoad):
    """Starts nothing."""

    name = "toy"
