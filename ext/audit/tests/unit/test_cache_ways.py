# SPDX-License-Identifier: MIT
"""How the cache and the memory's bandwidth are divided. The files are drawn after the kernel's documentation
(Documentation/filesystems/resctrl), because no machine here has resctrl.
"""

from __future__ import annotations

import pytest

from rtgauge.system.deployment.machine_state import Machine
from rtgauge.target.file_batch import Files
from rtgauge_ext.audit.trial_settings import trial_paths, trial_settings

RESCTRL = "/sys/fs/resctrl"
TWO_SOCKETS = {
    f"{RESCTRL}/schemata": "    MB:0=100;1=100\n    L3:0=7ff;1=7ff\n",
    f"{RESCTRL}/info/L3/min_cbm_bits": "1\n",
    f"{RESCTRL}/info/L3/shareable_bits": "600\n",
    f"{RESCTRL}/info/MB/bandwidth_gran": "10\n",
    f"{RESCTRL}/info/MB/min_bandwidth": "10\n",
}
CACHES = {f"/sys/devices/system/cpu/cpu{cpu}/cache/index3/id": f"{cpu // 2}\n" for cpu in range(4)}


def written(rule: str, files: dict[str, str], cpus: str | None = "2-3") -> dict[str, str]:
    online = {"/sys/devices/system/cpu/online": "0-255\n"}
    machine = Machine(Files({path: {"text": text} for path, text in (files | online).items()}))
    return {each.path: each.value for each in trial_settings([rule], machine, cpus)}


def test_real_time_cpus_get_the_low_ways_of_their_own_cache() -> None:
    assert written("cache-allocation", TWO_SOCKETS | CACHES) == {
        "resctrl:L3:rtgauge": "2-3 0=7ff;1=003",
        "resctrl:L3": "0=7ff;1=7fc",
    }


def test_every_cache_is_divided_without_cache_ids() -> None:
    assert written("cache-allocation", TWO_SOCKETS)["resctrl:L3"] == "0=7fc;1=7fc"


def test_others_get_half_of_the_bandwidth() -> None:
    assert written("memory-bandwidth", TWO_SOCKETS | CACHES) == {
        "resctrl:MB:rtgauge": "2-3 0=100;1=100",
        "resctrl:MB": "0=100;1=50",
    }
    padded = TWO_SOCKETS | CACHES | {f"{RESCTRL}/schemata": "    MB:0= 70;1= 70\n"}
    assert written("memory-bandwidth", padded)["resctrl:MB"] == "0=70;1=30"


@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        ("cache-allocation", {f"{RESCTRL}/schemata": "MB:0=100\n"}),
        ("cache-allocation", {f"{RESCTRL}/schemata": "L3:0=1;1=1\n"}),
        ("cache-allocation", {f"{RESCTRL}/schemata": "L3:0=0;1=0\n"}),
        ("cache-allocation", {f"{RESCTRL}/info/L3/shareable_bits": "7ff\n"}),
        ("cache-allocation", {f"{RESCTRL}/info/L3/min_cbm_bits": "8\n"}),
        ("cache-allocation", {f"{RESCTRL}/containers/schemata": "L3:0=00f;1=7ff\n"}),
        ("cache-allocation", {f"{RESCTRL}/mon_groups/database/cpus_list": "2\n"}),
        ("memory-bandwidth", {f"{RESCTRL}/mon_groups/database/cpus_list": "0-3\n"}),
        # mounted with cdp: code and data have ways of their own
        ("cache-allocation", {f"{RESCTRL}/schemata": "L3CODE:0=7ff;1=7ff\nL3DATA:0=7ff;1=7ff\n"}),
        # AMD: bandwidth of slow memory
        ("memory-bandwidth", {f"{RESCTRL}/schemata": "  SMBA:0=100;1=100\n    L3:0=ffff;1=ffff\n"}),
        ("memory-bandwidth", {f"{RESCTRL}/schemata": "MB:0=2048;1=2048\n"}),  # AMD: eighths of GB/s
        ("memory-bandwidth", {f"{RESCTRL}/schemata": "MB:0=10;1=10\n"}),
    ],
)
def test_what_cannot_be_divided_stays(rule: str, changed: dict[str, str]) -> None:
    assert written(rule, TWO_SOCKETS | changed) == {}


def test_monitoring_groups_of_tasks_do_not_matter() -> None:
    files = TWO_SOCKETS | {f"{RESCTRL}/mon_groups/database/cpus_list": "\n"}
    assert written("cache-allocation", files)["resctrl:L3"] == "0=7fc;1=7fc"


def test_an_epyc_with_a_cache_for_each_complex() -> None:
    """256 CPUs, 16 caches; only the one of the real-time CPUs is divided."""
    caches = {
        f"/sys/devices/system/cpu/cpu{cpu}/cache/index3/id": f"{cpu % 128 // 8}\n" for cpu in range(256)
    }
    files = {
        f"{RESCTRL}/schemata": "    MB:" + ";".join(f"{domain}=2048" for domain in range(16)) + "\n"
        "    L3:" + ";".join(f"{domain}=ffff" for domain in range(16)) + "\n",
        f"{RESCTRL}/info/L3/min_cbm_bits": "1\n",
        f"{RESCTRL}/info/L3/shareable_bits": "0\n",
    }
    actual = written("cache-allocation", files | caches, "8-9,136-137")
    assert actual["resctrl:L3:rtgauge"].startswith("8-9,136-137 0=ffff;1=000f;2=ffff;")
    assert actual["resctrl:L3"].startswith("0=ffff;1=fff0;2=ffff;")
    assert written("memory-bandwidth", files | caches, "8-9") == {}


def test_an_arm_board_with_mpam() -> None:
    """Its caches have large numbers, and its bandwidth is per cent of the whole."""
    caches = {f"/sys/devices/system/cpu/cpu{cpu}/cache/index3/id": "768\n" for cpu in range(4)}
    files = {
        f"{RESCTRL}/schemata": "    MB:768=100\n    L3:768=0000ffff\n",
        f"{RESCTRL}/info/MB/bandwidth_gran": "1\n",
        f"{RESCTRL}/info/MB/min_bandwidth": "1\n",
    }
    assert written("cache-allocation", files | caches) == {
        "resctrl:L3:rtgauge": "2-3 768=0000000f",
        "resctrl:L3": "768=0000fff0",
    }
    assert written("memory-bandwidth", files | caches)["resctrl:MB"] == "768=50"


def test_nothing_is_divided_without_resctrl_or_real_time_cpus() -> None:
    assert written("cache-allocation", CACHES) == {}
    assert written("cache-allocation", TWO_SOCKETS, None) == {}


def test_the_files_are_read() -> None:
    paths = trial_paths(["cache-allocation"])
    assert f"{RESCTRL}/schemata" in paths
    assert f"{RESCTRL}/*/schemata" in paths
