# SPDX-License-Identifier: MIT
"""The load `idle`, which does nothing."""

from __future__ import annotations

from typing import ClassVar

from rtgauge.load.load import Load, LoadContext, PartSpec


class IdleLoad(Load):
    """Starts nothing."""

    name = "idle"
    programs: ClassVar[tuple[str, ...]] = ()

    def parts(self, context: LoadContext) -> list[PartSpec]:
        """Return no part."""
        del context
        return []
