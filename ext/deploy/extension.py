# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.core_extension import DECIDE
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="deploy",
    line="Shows and applies deployments of the cores, until they are restored.",
    commands={
        "deploy": Command(
            DECIDE, "Show or change which CPUs do what.", "rtgauge_ext.deploy.deploy_command:app"
        ),
    },
    words={
        "rtgauge deploy": (
            "isolate isolcpus partition shield affinity pin cpuset taskset cores cset irq irqs "
            "irqbalance smp_affinity nohz nohz-full nohz_full rcu rcu-nocbs rcu_nocbs"
        ),
        "rtgauge deploy cmdline": "cmdline bootparams boot-parameters",
    },
)
