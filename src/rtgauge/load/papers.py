# SPDX-License-Identifier: MIT
"""The load `papers`: cpu, memory and network together (Delgado et al. 2020, section V and table 8)."""

from __future__ import annotations

from typing import ClassVar

from rtgauge.load.cpu import Cpu
from rtgauge.load.load import Load, LoadContext, PartSpec
from rtgauge.load.memory import MemoryLoad
from rtgauge.load.network import Network


class Papers(Load):
    """Runs all three loads at once."""

    name = "papers"
    programs: ClassVar[tuple[str, ...]] = ("stress-ng", "iperf3")
    packages: ClassVar[dict[str, str]] = Cpu.packages | MemoryLoad.packages | Network.packages

    def parts(self, context: LoadContext) -> list[PartSpec]:
        """Return the parts of all loads. The network comes first, because its set-up is slow while the other
        loads run.
        """
        return [part for load in (Network(), Cpu(), MemoryLoad()) for part in load.parts(context)]
