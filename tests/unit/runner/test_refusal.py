# SPDX-License-Identifier: MIT
"""What the kernel refuses the engine, explained from the facts of its error line."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.record.stream import ErrorLine
from rtgauge.runner.context import LoadFailed, NotHere, NotOnCokernel
from rtgauge.runner.engine import as_exception
from rtgauge.system.refusal import explain
from rtgauge.target.file_batch import Files

V1_BOX = "4:memory:/\n3:cpu,cpuacct:/box/job\n0::/\n"
PRIORITY = {
    "errno": "EPERM",
    "priority": 98,
    "other_allowed": True,
    "euid": 1000,
    "cap_sys_nice": False,
    "rtprio_limit": 0,
    "cgroup": "0::/user\n",
}
DEADLINE = {"errno": "EPERM", "runtime_ns": 200_000, "period_ns": 1_000_000, "cpu": 3, "cap_sys_nice": True}
MEMORY = {"errno": "ENOMEM", "memlock_limit_bytes": 65536}


def refusal_text(code: str, detail: dict[str, Any], files: dict[str, str] | None = None) -> str:
    def read(paths: Iterable[str]) -> Files:
        return Files(
            {
                path: {"text": files[path]} if files and path in files else {"error": "ENOENT"}
                for path in paths
            }
        )

    return explain(
        ErrorLine(type="error", code=code, message="it was refused", detail=detail, status=3), read
    )


@pytest.mark.parametrize(
    ("facts", "expected_text"),
    [
        ({}, ["is not root and has no CAP_SYS_NICE", "RLIMIT_RTPRIO is 0", "--policy other"]),
        ({"euid": 0}, ["lacks some of root's rights and has no CAP_SYS_NICE"]),
        ({"rtprio_limit": 10}, ["priority 98 is refused", "(RLIMIT_RTPRIO) is 10", "--priority 10"]),
        ({"cap_sys_nice": True, "euid": 0}, ["although this process has CAP_SYS_NICE", "container"]),
        ({"errno": "EINVAL"}, ["it was refused"]),
    ],
)
def test_a_refused_priority(facts: dict[str, Any], expected_text: list[str]) -> None:
    text = refusal_text("permission-rt", PRIORITY | facts)
    assert all(words in text for words in expected_text)
    assert "\n" not in text


def test_other_is_named_only_where_the_probe_takes_it() -> None:
    assert "--policy other" not in refusal_text("permission-rt", PRIORITY | {"other_allowed": False})


def test_a_group_without_runtime_is_named_even_for_root() -> None:
    facts = PRIORITY | {"euid": 0, "cap_sys_nice": True, "cgroup": V1_BOX}
    path = "/sys/fs/cgroup/cpu/box/job/cpu.rt_runtime_us"
    text = refusal_text("permission-rt", facts, {path: "0\n"})
    assert f"cgroup without real-time runtime ({path} is 0)" in text
    assert "cgroup" not in refusal_text("permission-rt", facts, {path: "950000\n"})


RELEASE = {"/proc/sys/kernel/osrelease": "6.18.1\n"}
CONFIG = "/boot/config-6.18.1"


@pytest.mark.parametrize(
    ("group", "files", "named"),
    [
        ("0::/kubepods/pod1\n", {CONFIG: "CONFIG_RT_GROUP_SCHED=y\n"}, True),
        ("0::/kubepods/pod1\n", {CONFIG: "# CONFIG_RT_GROUP_SCHED is not set\n"}, False),
        ("0::/kubepods/pod1\n", {}, False),
        # a namespace of cgroups shows the container's own group as `/`; the host's root has no type
        ("0::/\n", {CONFIG: "CONFIG_RT_GROUP_SCHED=y\n", "/sys/fs/cgroup/cgroup.type": "domain\n"}, True),
        ("0::/\n", {CONFIG: "CONFIG_RT_GROUP_SCHED=y\n"}, False),
    ],
)
def test_a_group_of_v2_under_rt_group_sched(group: str, files: dict[str, str], *, named: bool) -> None:
    facts = PRIORITY | {"euid": 0, "cap_sys_nice": True, "cgroup": group}
    text = refusal_text("permission-rt", facts, RELEASE | files)
    assert ("this kernel has RT_GROUP_SCHED" in text) == named
    assert ("A setting of a container cannot change this" in text) == named
    assert ("rt_group_sched=0" in text) == named
    # who lacks the right is told that first
    assert "RT_GROUP_SCHED" not in refusal_text(
        "permission-rt", PRIORITY | {"cgroup": group}, RELEASE | files
    )


@pytest.mark.parametrize("code", ["permission-rt", "deadline"])
def test_what_a_container_takes(code: str) -> None:
    facts = (PRIORITY if code == "permission-rt" else DEADLINE) | {"cap_sys_nice": True}
    assert "in a user namespace" in refusal_text(code, facts | {"user_namespace": True})
    for error in ("EPERM", "ENOSYS"):
        both = facts | {"errno": error, "user_namespace": True, "seccomp": True}
        assert "refused by the seccomp profile" in refusal_text(code, both)


def test_a_limit_grants_in_a_user_namespace_too() -> None:
    facts = PRIORITY | {"user_namespace": True, "cap_sys_nice": True}
    assert "(RLIMIT_RTPRIO) is 10" in refusal_text("permission-rt", facts | {"rtprio_limit": 10})
    for limit in (98, None):
        text = refusal_text("permission-rt", facts | {"cap_sys_nice": False, "rtprio_limit": limit})
        assert "(RLIMIT_RTPRIO)" in text


@pytest.mark.parametrize(
    ("facts", "files", "expected_text"),
    [
        ({}, {}, "pinned to CPU 3 (EPERM)"),
        ({"cpu": None}, {}, "may not use every CPU of its cpuset"),
        ({"cap_sys_nice": False}, {}, "this process lacks CAP_SYS_NICE"),
        ({"errno": "EBUSY"}, {}, "more than the kernel grants"),
        (
            {"errno": "EINVAL", "period_ns": 50_000},
            {},
            "a period of 50 us (EINVAL): the kernel accepts at least 100 us",
        ),
        (
            {"errno": "EINVAL", "period_ns": 150_000},
            {"/proc/sys/kernel/sched_deadline_period_min_us": "200\n"},
            "at least 200 us",
        ),
        (
            {"errno": "EINVAL", "period_ns": 150_000},
            {"/proc/sys/kernel/sched_deadline_period_min_us": "many\n"},
            "it was refused",
        ),
    ],
)
def test_a_refused_deadline_task(facts: dict[str, Any], files: dict[str, str], expected_text: str) -> None:
    assert expected_text in refusal_text("deadline", DEADLINE | facts, files)


def test_a_refused_memory_lock() -> None:
    assert "(RLIMIT_MEMLOCK) is 64 KiB" in refusal_text("memory-lock", MEMORY)
    assert refusal_text("memory-lock", MEMORY | {"memlock_limit_bytes": None}) == "it was refused"


@given(
    st.sampled_from(["permission-rt", "deadline", "memory-lock", "usage"]),
    st.dictionaries(st.sampled_from([*PRIORITY, *DEADLINE]), st.none() | st.text() | st.integers()),
)
def test_facts_that_are_none_leave_the_message(code: str, detail: dict[str, Any]) -> None:
    assert refusal_text(code, detail)


def lacks(status: int, reason: str) -> ErrorLine:
    return ErrorLine(
        type="error",
        code="method",
        message=reason,
        detail={"what": "mqueue", "remedy": "choose another --path"},
        status=status,
    )


def test_what_the_engine_lacks_comes_in_fields() -> None:
    """Whatever separators a reason has: nothing is read back from a message."""
    reason = "there is no mqueue here: it says; well, no"
    error = as_exception(lacks(3, reason), cast("Any", SimpleNamespace(read=dict)))
    assert isinstance(error, NotHere)
    assert (error.what, error.reason, error.remedy) == ("mqueue", reason, "choose another --path")
    assert str(error) == f"{reason}; choose another --path"
    assert error.status == 3
    refused = as_exception(lacks(2, reason), cast("Any", SimpleNamespace(read=dict)))
    assert isinstance(refused, NotOnCokernel)
    assert refused.status == 2


def test_a_reworded_error_keeps_its_fields() -> None:
    error = LoadFailed("cpu", "stress-ng: not found").reword("board: no load")
    assert (str(error), error.load, error.reason) == ("board: no load", "cpu", "stress-ng: not found")
