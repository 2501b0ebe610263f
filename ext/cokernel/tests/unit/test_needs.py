# SPDX-License-Identifier: MIT
"""What a guest lacks for measuring on a co-kernel."""

from __future__ import annotations

from typing import Any

import pytest

from rtgauge.system.runtime import Need
from rtgauge.target.file_batch import Files
from rtgauge_ext.cokernel.needs import cobalt_needs, rtai_needs

RTAI: dict[str, Any] = {
    "/proc/locks": {"text": ""},
    "/proc/ipipe/version": {"text": "14"},
    "/proc/sys/kernel/modules_disabled": {"text": "0\n"},
    "/proc/self/status": {"text": "Name:\trtgauge-engine\nUid:\t0\t0\t0\t0\n"},
    "/opt/rtai/modules": {"directory": ["rtai_hal.ko", "rtai_sched.ko"]},
    "/opt/rtai/testsuite": {"directory": ["display", "latency", "run"]},
}
COBALT: dict[str, Any] = {
    "/proc/locks": {"text": ""},
    "/proc/self/status": {"text": "Name:\trtgauge-engine\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t\n"},
    "/proc/sys/kernel/modules_disabled": {"text": "0\n"},
    "/proc/xenomai/version": {"text": "3.2.7"},
    "/dev/rtdm": {"directory": ["autotune", "memdev-private", "memdev-shared", "switchtest", "timerbench"]},
    "/usr/xenomai/lib": {"directory": ["libcobalt.so.2"]},
    "/usr/xenomai/sbin": {"directory": ["autotune", "corectl"]},
}


def needs(files: dict[str, Any]) -> list[Need]:
    return [*cobalt_needs(Files(files)), *rtai_needs(Files(files))]


@pytest.mark.parametrize(("cokernel", "files"), [("rtai", RTAI), ("cobalt", COBALT)])
def test_all_is_there_or_what_is_missing_is_named(cokernel: str, files: dict[str, Any]) -> None:
    assert all(need.met for need in needs(files) if need.cokernel == cokernel)
    for path in files:
        lacking = [
            need
            for need in needs({name: file for name, file in files.items() if name != path})
            if need.cokernel == cokernel and not need.met
        ]
        assert lacking
        assert all(need.remedy for need in lacking)


def test_rtai_that_is_loaded_has_its_device() -> None:
    loaded = {
        **RTAI,
        "/proc/modules": {"text": "rtai_sched 237568 0 - Live 0x0\nrtai_hal 434176 1 rtai_sched, Live 0x0\n"},
        "/proc/rtai/scheduler": {"text": "RTAI"},
        "/dev": {"directory": ["null", "rtai_shm", "rtf0"]},
    }
    del loaded["/opt/rtai/modules"], loaded["/proc/sys/kernel/modules_disabled"]
    assert all(need.met for need in needs(loaded) if need.cokernel == "rtai")
    loaded["/dev"] = {"directory": ["null"]}
    assert [need.remedy for need in needs(loaded) if need.cokernel == "rtai" and not need.met] == [
        "mount devtmpfs on /dev"
    ]


@pytest.mark.parametrize(("group", "may"), [("1001", True), ("-1", False), ("100", False), (None, False)])
def test_who_is_not_root_needs_xenomais_group(group: str | None, may: bool) -> None:
    files: dict[str, Any] = {
        **COBALT,
        "/proc/self/status": {
            "text": "Uid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nGroups:\t27 1001 \n"
        },
    }
    if group is not None:
        files["/sys/module/xenomai/parameters/allowed_group"] = {"text": f"{group}\n"}
    lacking = [need for need in needs(files) if need.cokernel == "cobalt" and not need.met]
    assert ["xenomai.allowed_group" in need.what for need in lacking] == ([] if may else [True])


def test_what_only_some_commands_need_is_split() -> None:
    lacking = [
        need
        for need in needs({**COBALT, "/dev/rtdm": {"directory": ["memdev-private"]}})
        if need.cokernel == "cobalt" and not need.met
    ]
    assert [need.only_for for need in lacking] == [
        "probe calibrate",
        "--cross-check xenomai-latency in kernel space",
        "--cross-check xenomai-switchtest",
    ]
    assert all("CONFIG_XENO_DRIVERS_" in need.remedy for need in lacking)


def test_xenomais_autotune_is_for_calibrate_only() -> None:
    (lacking,) = [
        need
        for need in needs({**COBALT, "/usr/xenomai/sbin": {"directory": ["corectl"]}})
        if need.cokernel == "cobalt" and not need.met
    ]
    assert lacking.only_for == "probe calibrate"
    assert "sbin" in lacking.remedy


def test_rtais_own_programs_are_for_a_cross_check_only() -> None:
    (lacking,) = [
        need
        for need in needs({**RTAI, "/opt/rtai/testsuite": {"directory": ["run"]}})
        if need.cokernel == "rtai" and not need.met
    ]
    assert lacking.only_for == "--cross-check rtai-latency"


@pytest.mark.parametrize("prefix", ["/opt/xenomai", "/usr/local"])
def test_xenomai_may_be_elsewhere(prefix: str) -> None:
    moved = {name.replace("/usr/xenomai", prefix): file for name, file in COBALT.items()}
    assert all(need.met for need in needs(moved) if need.cokernel == "cobalt")


@pytest.mark.parametrize(
    "entry", [None, 5, [], {"directory": 5}, {"directory": [5, None]}, {"error": "ENOENT"}], ids=repr
)
def test_what_a_target_sends_is_never_trusted(entry: object) -> None:
    listed = [
        need
        for need in needs(dict.fromkeys(COBALT, entry))
        if "RTDM" in need.what or "libcobalt" in need.what
    ]
    assert [need.met for need in listed] == [False, False]
