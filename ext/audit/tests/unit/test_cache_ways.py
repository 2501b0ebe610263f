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
    online = {"/sys/devices/system/cpu/online": "0-3\n"}
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
        ("memory-bandwidth", {f"{RESCTRL}/schemata": "MB:0=2048;1=2048\n"}),  # AMD: eighths of GB/s
        ("memory-bandwidth", {f"{RESCTRL}/schemata": "MB:0=10;1=10\n"}),
    ],
)
def test_what_cannot_be_divided_stays(rule: str, changed: dict[str, str]) -> None:
    assert written(rule, TWO_SOCKETS | changed) == {}


def test_nothing_is_divided_without_resctrl_or_real_time_cpus() -> None:
    assert written("cache-allocation", CACHES) == {}
    assert written("cache-allocation", TWO_SOCKETS, None) == {}


def test_the_files_are_read() -> None:
    paths = trial_paths(["cache-allocation"])
    assert f"{RESCTRL}/schemata" in paths
    assert f"{RESCTRL}/*/schemata" in paths
