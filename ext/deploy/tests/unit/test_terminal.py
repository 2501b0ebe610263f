# SPDX-License-Identifier: MIT
"""What `rtgauge deploy show` prints of a deployment's settings."""

from __future__ import annotations

from rich.console import Console

from rtgauge.system.deployment.definition import Deployment
from rtgauge.system.deployment.stages import Gather
from rtgauge_ext.deploy.terminal import print_settings


def test_a_preview_names_the_group_of_all_tasks():
    console = Console(width=120)
    with console.capture() as printed:
        print_settings(
            Deployment("MI", isolate="all"), None, [Gather("/sys/fs/cgroup/rtgauge-others")], console
        )
    assert "/sys/fs/cgroup/rtgauge-others" in printed.get()
