# SPDX-License-Identifier: MIT
"""What can be tried on machines that do not exist."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.messages import missing
from tests.unit.system import machines

from rtgauge.errors import InputError
from rtgauge.system.collect_facts import facts
from rtgauge.system.deployment.definition import parse_deployment
from rtgauge.system.deployment.machine_state import Machine
from rtgauge.target.file_batch import Files
from rtgauge.units import format_cpu_list
from rtgauge_ext.tune.candidates import AllowedSettings, Offer, offer
from rtgauge_ext.tune.tuning_page import offer_tables
from rtgauge_ext.tune.tuning_study import deployment_name


def offered(files: Files, cpus: str | None = None, **options: Any) -> Offer:
    return offer(facts(files), files, Machine(files), AllowedSettings(cpus, **options))


def names(actual: Offer) -> set[str]:
    return {each.id for each in actual.candidates}


def test_a_well_set_machine_has_nothing_to_try() -> None:
    assert names(offered(machines.well_set_rt())) == set()


def test_what_differs_is_tried_and_the_rest_is_explained() -> None:
    files = machines.badly_set_rt()
    offer_made = offered(files)
    assert {"thp", "governor"} <= names(offer_made)
    why = {each.rule.id: each.why for each in offer_made.not_tried}
    assert not set(why) & names(offer_made)
    assert "--cpu" in why["isolated-cpus"]
    assert all(each.part == "settings=thp" for each in offer_made.candidates if each.id == "thp")


def test_only_and_without() -> None:
    files = machines.badly_set_rt()
    assert names(offered(files, only=["thp"])) == {"thp"}
    assert names(offered(files, without=["thp"])) == names(offered(files)) - {"thp"}
    with pytest.raises(InputError, match="'thq' is not a setting; did you mean 'thp'"):
        offered(files, only=["thq"])
    with pytest.raises(InputError, match="--cpu 0,76-77: CPUs 76-77 are not online; choose from 0-3"):
        offered(files, cpus="0,76-77")


def test_a_number_of_cpus_means_the_last_cores() -> None:
    files = machines.badly_set_rt() | {
        "/proc/mounts": {"text": "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"}
    }
    offer_made = offered(files, isolate=2)
    online = Machine(files).online
    assert offer_made.cpus == format_cpu_list(online[-2:])
    assert offer_made.fewer == [str(online[-1])]
    (isolation,) = (each for each in offer_made.candidates if each.takes_cpus)
    assert isolation.part == f"isolate={offer_made.cpus}"
    assert isolation.fewer(offer_made.fewer) == {f"isolated-cpus={online[-1]}": f"isolate={online[-1]}"}
    with pytest.raises(InputError, match="everything else; give at most 3"):
        offered(files, isolate=len(online))


IDLE_DISK, CARD = "/sys/block/sdb/queue", "/sys/class/net/eth1/queues"
BOARD = {
    "/proc/mounts": "/dev/nvme0n1p2 / ext4 rw 0 0\n",
    f"{IDLE_DISK}/scheduler": "none [mq-deadline] kyber bfq\n",
    f"{IDLE_DISK}/nr_requests": "256\n",
    "/sys/block/nvme0n1/queue/nr_requests": "1023\n",
    "/proc/sys/net/core/rps_sock_flow_entries": "32768\n",
    f"{CARD}/rx-0/rps_flow_cnt": "32768\n",
    f"{CARD}/tx-0/xps_cpus": "5\n",
    f"{CARD}/tx-1/xps_cpus": "a\n",
    "/sys/class/devfreq/3d00000.gpu/governor": "simple_ondemand\n",
    "/sys/class/devfreq/3d00000.gpu/available_governors": "performance simple_ondemand\n",
    "/sys/class/devfreq/3d00000.gpu/device/uevent": "DRIVER=adreno\nOF_NAME=gpu\n",
}
DEVICES = {"disk-scheduler", "disk-queue-depth", "rfs", "device-frequency"}


def test_devices_that_nobody_needs_meanwhile_can_be_tried() -> None:
    files = machines.bare_metal_rt() | machines.texts(BOARD)
    assert names(offered(files, cpus="3")) >= DEVICES | {"xps"}
    without = offered(files)
    assert names(without) >= DEVICES
    assert {"--cpu" in each.why for each in without.not_tried if each.rule.id == "xps"} == {True}
    for empty in (machines.bare_metal_rt(), machines.arm_board(), machines.busybox()):
        assert not names(offered(empty)) & (DEVICES | {"xps", "rcu-callback-threads"})


@pytest.mark.parametrize(("entries", "tried"), [("0", False), ("1", True), ("x", True), (None, False)])
def test_receive_flow_steering_that_is_off_is_not_tried(entries: str | None, *, tried: bool) -> None:
    files = machines.bare_metal_rt() | machines.texts(BOARD)
    flows = "/proc/sys/net/core/rps_sock_flow_entries"
    files |= {flows: {"error": "ENOENT"} if entries is None else {"text": f"{entries}\n"}}
    assert ("rfs" in names(offered(files))) == tried


def test_callback_threads_above_the_lowest_priority_can_be_tried() -> None:
    for priority, tried in ((4, True), (1, False)):
        threads = machines.threads((30, "rcuc/0", True, priority, 1), (31, "rcuc/1", True, 0, 0))
        offer_made = offered(machines.bare_metal_rt() | threads)
        assert ("rcu-callback-threads" in names(offer_made)) == tried


def test_candidates_make_one_deployment() -> None:
    parts = {each.id: each.part for each in offered(machines.badly_set_rt()).candidates}
    name = deployment_name([parts["thp"], parts["governor"]], None)
    deployment = parse_deployment(name)
    assert (deployment.governor, deployment.rules) == ("performance", ["thp"])
    assert deployment_name([], None) == "as-is"


def test_a_setting_about_the_real_time_cpus_names_them() -> None:
    deployment = parse_deployment(deployment_name(["settings=workqueues", "isolate=1"], "1"))
    assert (deployment.rt_cpus, deployment.isolate, deployment.rules) == ("1", "1", ["workqueues"])


def test_only_a_named_interface_that_reaches_nobody_changes() -> None:
    routes = (
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n"
        "eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\n"
        "eth1\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n"
    )
    paths = {f"/sys/class/net/eth{number}/threaded": {"text": "0\n"} for number in range(3)}
    files = machines.badly_set_rt() | {"/proc/net/route": {"text": routes}} | paths
    for name, why in (("eth1", None), ("eth0", "eth0 has the default route")):
        actual = offer(
            facts(files, interface=name), files, Machine(files), AllowedSettings(only=["threaded-napi"])
        )
        assert (names(actual) == {"threaded-napi"}) == (why is None)
        assert {each.rule.id: each.why for each in actual.not_tried}.get("threaded-napi") == why
        assert actual.interface == name
    assert (
        deployment_name(["settings=threaded-napi"], None, None, "eth1")
        == "interface=eth1,settings=threaded-napi"
    )


def test_rules_about_isolated_cpus_are_about_the_real_time_ones() -> None:
    files = machines.badly_set_rt() | {
        "/sys/devices/virtual/workqueue/cpumask": {"text": "f\n"},
        "/proc/sys/vm/stat_interval": {"text": "1\n"},
    }
    about = {"workqueues", "default-irq-affinity"}
    assert about | {"vmstat-interval"} <= names(offered(files, cpus="1"))
    without = offered(files)
    assert {"--cpu" in each.why for each in without.not_tried if each.rule.id in about} == {True}
    assert "vmstat-interval" not in names(without)


def test_an_unknown_setting_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        InputError, match=r"'NOTHING' is not a setting; the nearest are [a-z-]+, [a-z-]+, [a-z-]+;"
    ):
        offered(machines.badly_set_rt(), only=["NOTHING"])


def test_boot_settings_are_tried_if_each_set_is_booted() -> None:
    files = machines.badly_set_rt()
    live, booted = offered(files, cpus="1"), offered(files, cpus="1", by_boot=True)
    assert any(not missing(each.why, "after a boot", "skew_tick=1") for each in live.not_tried)
    assert {each.id: each.part for each in booted.candidates}["skew-tick"] == "boot=skew-tick"
    parts = ["boot=skew-tick", "settings=thp", "isolate=1"]
    assert deployment_name(parts, "1") == "isolate=1,settings=thp,boot=skew-tick"


PREEMPT = "/sys/kernel/debug/sched/preempt"


@pytest.mark.parametrize(
    ("preempt", "tried"),
    [({"text": "full (lazy)"}, True), ({"text": "(full) lazy"}, False), ({"error": "EACCES"}, False)],
)
def test_full_preemption_is_tried_against_lazy(preempt: dict[str, str], *, tried: bool) -> None:
    files = machines.badly_set_rt() | machines.texts({"/proc/sys/kernel/osrelease": "7.3.4-rt"})
    files |= {PREEMPT: preempt}
    for by_boot in (False, True):
        parts = {each.id: each.part for each in offered(files, by_boot=by_boot).candidates}
        assert parts.get("lazy-preemption") == ("settings=lazy-preemption" if tried else None)


def test_lazy_preemption_of_a_stock_kernel_is_changed_by_boot_if_not_otherwise() -> None:
    stock = {"/sys/kernel/realtime": "0", "/proc/sys/kernel/version": "#1 SMP PREEMPT_LAZY"}
    files = machines.badly_set_rt() | machines.texts(stock | {"/proc/sys/kernel/osrelease": "7.3.4"})
    files |= {PREEMPT: {"error": "EACCES"}}
    by_boot = offered(files, by_boot=True)
    assert {each.id: each.part for each in by_boot.candidates}["preemptible-kernel"] == (
        "boot=preemptible-kernel"
    )
    assert {each.rule.id: each.why for each in offered(files).not_tried}["preemptible-kernel"] == (
        "the setting takes effect only after a boot with preempt=full"
    )


def test_the_firmware_is_called_on_other_cpus() -> None:
    mask = "/sys/devices/virtual/workqueue/efi_runtime/cpumask"
    files = machines.badly_set_rt() | machines.texts({mask: "f"})
    assert "efi-calls-elsewhere" in names(offered(files, cpus="1"))
    assert "efi-calls-elsewhere" not in names(offered(files | machines.texts({mask: "d"}), cpus="1"))
    assert "efi-calls-elsewhere" not in names(offered(machines.badly_set_rt(), cpus="1"))


def test_daemons_that_would_reset_a_value_are_named() -> None:
    files = machines.badly_set_rt() | machines.threads((40, "tuned", False, 0, 0), (41, "sshd", False, 0, 0))
    assert offered(files).daemons == ["tuned"]
    assert offered(files, only=["ksm"]).daemons == []
    notes = [note for table in offer_tables(offered(files), details=False) for note in table.notes]
    assert [note for note in notes if not missing(note, "daemons", "stop", "tuned")]


def test_a_cache_is_divided_once_resctrl_is_mounted() -> None:
    cpuinfo = {"/proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu cat_l3 mba\n"}
    files = machines.badly_set_rt() | {path: {"text": text} for path, text in cpuinfo.items()}
    files |= {"/sys/fs/resctrl/*/schemata": {"error": "ENOENT"}}
    why = {each.rule.id: each.why for each in offered(files, cpus="2-3").not_tried}
    assert why["cache-allocation"].startswith("mount resctrl first")
    mounted = {
        "/sys/fs/resctrl/info/L3/cbm_mask": "fff\n",
        "/sys/fs/resctrl/info/L3/min_cbm_bits": "1\n",
        "/sys/fs/resctrl/schemata": "    L3:0=fff\n",
    }
    offer_made = offered(files | {path: {"text": text} for path, text in mounted.items()}, cpus="2-3")
    assert "cache-allocation" in names(offer_made)
    assert "memory-bandwidth" not in names(offer_made)
