# SPDX-License-Identifier: MIT
"""A kernel with RT_GROUP_SCHED and cgroup v2 refuses real time in every group but the root, and nothing in the
group helps: the refusal says so. No Debian kernel is built so; the guest `rtgroup` is the user's own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.cli import error_line, good, rtgauge

from ext.cokernel.tests.guests.conftest import guest

# Dropbear's sessions start in its group, as a container's processes do in the container's.
JOIN = (
    "set -e; cd /sys/fs/cgroup; echo +cpu >cgroup.subtree_control; mkdir pod; "
    "for task in $(pidof dropbear); do echo $task >pod/cgroup.procs; done"
)


@pytest.fixture
def in_a_group() -> Iterator[str]:
    """The guest, whose sessions start in a group of cgroup v2 with the controller `cpu`."""
    target = guest("rtgroup")
    good(rtgauge("lab", "shell", "rtgroup", JOIN))
    yield target
    good(rtgauge("lab", "stop", "rtgroup"))


def test_a_group_of_v2_is_named_and_the_ordinary_policy_measures(in_a_group: str) -> None:
    words = ("probe", "wakeup", "--target", in_a_group, "--duration", "500ms")
    line = error_line(rtgauge(*words, timeout=600), 3)
    assert "in a cgroup v2 (/sys/fs/cgroup/pod)" in line
    assert "rt_group_sched=0" in line
    good(rtgauge(*words, "--policy", "other", timeout=600))
