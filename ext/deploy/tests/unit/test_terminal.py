# SPDX-License-Identifier: MIT
"""What `rtgauge deploy show` prints of a deployment's settings."""

from __future__ import annotations

from rich.console import Console

from rtgauge.record.model import DeploymentReport
from rtgauge.system.deployment.apply import Applied
from rtgauge.system.deployment.definition import Deployment
from rtgauge.system.deployment.stages import Gather
from rtgauge_ext.deploy.deployment_terminal import print_applied, print_settings


def test_a_preview_names_the_group_of_all_tasks():
    console = Console(width=120)
    with console.capture() as printed:
        print_settings(
            Deployment("MI", isolate="all"), None, [Gather("/sys/fs/cgroup/rtgauge-others")], console
        )
    assert "/sys/fs/cgroup/rtgauge-others" in printed.get()


def test_isolation_names_what_only_boot_parameters_can_move():
    console = Console(width=120)
    report = DeploymentReport(name="isolate=1", words="CPU 1 is isolated", isolated="1")
    with console.capture() as printed:
        print_applied(
            Applied(Deployment("isolate=1"), report, "/sys/fs/cgroup/rtgauge-isolated", [1]), console
        )
    assert "rtgauge deploy cmdline isolate=1" in printed.get()
