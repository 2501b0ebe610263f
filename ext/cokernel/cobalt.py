# SPDX-License-Identifier: MIT
"""Cobalt, the co-kernel of Xenomai 3."""

from __future__ import annotations

from rtgauge.record.facts import RealTimeCore
from rtgauge.system.runtime import Need, Runtime
from rtgauge.target.file_batch import Files
from rtgauge_ext.cokernel import cobalt_facts
from rtgauge_ext.cokernel.needs import COBALT_PATHS, cobalt_needs


class Cobalt(Runtime):
    """Cobalt. Its kernel starts it."""

    def facts(self, files: Files) -> RealTimeCore | None:
        """Return the facts of Cobalt, or of EVL, which is Xenomai 4; None if neither runs."""
        return cobalt_facts.xenomai(files)

    def needs(self, files: Files) -> list[Need]:
        """Return the engine's needs, from the engine's `read` of `need_paths`."""
        return cobalt_needs(files)


COBALT = Cobalt(
    name="cobalt",
    core="Xenomai Cobalt",
    config="xeno-config",
    kernel_file=cobalt_facts.VERSION,
    no_core="this kernel has no Xenomai 3 (Cobalt) core",
    missing_library=(
        "install Xenomai's libraries on the target, at the path that they had when rtgauge was installed "
        "(ext/cokernel/README.md)"
    ),
    early="autotune (rtgauge probe calibrate --rt cobalt)",
    method=(
        "On Cobalt the measured threads are threads of Xenomai's co-kernel, which takes the timer "
        "before Linux does: they wait, lock and read the clock with Cobalt's calls. The table of threads "
        "shows how often a thread was handed to Linux while it measured; this should be 0. The engine's "
        "control and output run on Linux."
    ),
    page="ext/cokernel/README.md",
    fact_paths=cobalt_facts.PATHS,
    need_paths=COBALT_PATHS,
)
