# SPDX-License-Identifier: MIT
"""What is written so that a machine keeps a rule of the audit."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import Any, cast

import pytest

from rtgauge.errors import HungError, InputError
from rtgauge.system.deployment.apply import Refused, apply
from rtgauge.system.deployment.definition import parse_deployment
from rtgauge.system.deployment.machine_state import NO_SETAFFINITY, Machine
from rtgauge.system.deployment.stages import Note, Write, preview
from rtgauge.target.file_batch import Files
from rtgauge.target.target_protocol import Target
from rtgauge_ext.audit.rules import tried_rules
from rtgauge_ext.audit.trial_settings import apart, trial_paths, trial_settings

THP = "/sys/kernel/mm/transparent_hugepage/enabled"


def machine(**files: str) -> Machine:
    """Four CPUs; the names of files have `__` for a slash."""
    paths = {name.replace("__", "/"): text for name, text in files.items()}
    paths["/sys/devices/system/cpu/online"] = "0-3"
    return Machine(Files({path: {"text": f"{text}\n"} for path, text in paths.items()}))


def thread(tid: int, name: str, policy: int, cpus: str, flags: int = 0) -> dict[str, str]:
    fields = ["S", "1", "1", "1", "0", "-1", str(flags), *["0"] * 12, str(100 + tid), *["0"] * 17, "50"]
    folder = f"__proc__{tid}__task__{tid}"
    return {
        f"{folder}__stat": f"{tid} ({name}) {' '.join([*fields, str(policy)])}",
        f"{folder}__status": f"Cpus_allowed_list:\t{cpus}",
    }


def written(rules: list[str], on: Machine, cpus: str | None = None) -> dict[str, str]:
    return {setting.path: setting.value for setting in trial_settings(rules, on, cpus)}


def test_only_what_differs_is_written() -> None:
    now = machine(
        **{THP.replace("/", "__"): "always [madvise] never", "__proc__sys__vm__stat_interval": "10"}
    )
    assert written(["thp", "vmstat-interval", "nmi-watchdog"], now) == {THP: "never"}
    kept = machine(**{THP.replace("/", "__"): "always madvise [never]"})
    assert written(["thp"], kept) == {}


def test_interrupts_and_masks_leave_the_real_time_cpus() -> None:
    now = machine(
        __proc__irq__8__smp_affinity_list="0-3",
        __proc__irq__9__smp_affinity_list="2",
        __proc__irq__10__smp_affinity_list="0",
        __sys__devices__virtual__workqueue__cpumask="f",
    )
    assert written(["irqs-on-isolated", "workqueues"], now, "2-3") == {
        "/proc/irq/8/smp_affinity_list": "0-1",
        "/proc/irq/9/smp_affinity_list": "0-1",
        "/sys/devices/virtual/workqueue/cpumask": "3",
    }
    assert written(["irqs-on-isolated", "workqueues"], now) == {}
    assert written(["irqs-on-isolated"], now, "0-3") == {}


def test_other_real_time_threads_are_moved_if_they_can_be() -> None:
    now = machine(
        **thread(10, "hog", 1, "1"),
        **thread(11, "audio", 2, "0-3"),
        **thread(12, "normal", 0, "1"),
        **thread(13, "migration/1", 1, "1", NO_SETAFFINITY),
        **thread(14, "irq/24-eth0", 1, "1"),
        **thread(15, "elsewhere", 1, "0"),
    )
    assert written(["rt-tasks-elsewhere"], now, "1") == {
        "thread:10:110:affinity": "0,2-3",
        "thread:11:111:affinity": "0,2-3",
    }


def test_a_deployment_keeps_rules() -> None:
    deployment = parse_deployment("settings=workqueues,thp,rt-cpus=1")
    assert deployment.name == parse_deployment("rt-cpus=1,settings=thp,workqueues").name
    assert parse_deployment(deployment.name) == deployment
    assert {THP, "/sys/devices/virtual/workqueue/cpumask"} <= set(trial_paths(deployment.rules))
    now = machine(**{THP.replace("/", "__"): "[always] madvise never"})
    (write,) = preview(deployment, now)
    assert isinstance(write, Write)
    assert {setting.path: setting.value for setting in write.settings} == {THP: "never"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "settings=thpp",
            "cannot contain 'thpp'; see the names with: rtgauge tune --dry-run; did you mean 'thp'?",
        ),
        ("settings=c-states", "cannot contain 'c-states'"),
        ("settings=workqueues", "name them, for example with rt-cpus=1"),
        ("settings=thp,rt-cpus=x", "CPUs like 1 or 2-3"),
    ],
)
def test_a_wrong_setting_is_refused(text: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_deployment(text)
    assert why in str(caught.value)


def test_a_value_of_several_words_is_compared_without_its_tabs() -> None:
    printk = "/proc/sys/kernel/printk"
    assert written(["console-messages"], machine(**{printk: "4\t4\t1\t7\n"})) == {printk: "1 4 1 7"}
    assert written(["console-messages"], machine(**{printk: "1\t4\t1\t7\n"})) == {}


def test_no_trial_touches_the_console_or_thermal_limits() -> None:
    """By the folders that the kernel has them in."""
    forbidden = (
        "*/tty*",
        "/sys/class/thermal/*",
        "*/thermal_throttle/*",
        "*/hwmon/*",
    )
    for rule in tried_rules().values():
        for setting in rule.trial.set if rule.trial is not None else []:
            assert not any(fnmatch.fnmatch(setting.file or "", pattern) for pattern in forbidden), rule.id


NETWORK = {
    "/proc/net/route": "Iface\tDestination\neth0\t00000000\n",
    "/proc/net/ipv6_route": f"{'0' * 32} 00 {'0' * 32} 00 {'0' * 32} 00000400 00000003 0 0 wlan0",
    **{f"/sys/class/net/{name}/threaded": "0" for name in ("eth0", "eth1", "lo", "wlan0")},
    "/sys/class/net/eth0/queues/rx-0/rps_cpus": "f",
    "/sys/class/net/eth1/queues/rx-0/rps_cpus": "f",
}
COALESCED = {
    f"ethtool:{name}:{key}": value
    for name in ("eth0", "eth1", "eth2", "wlan0")
    for key, value in {"adaptive-rx": "on", "adaptive-tx": "off", "rx-usecs": "50", "tx-usecs": "0"}.items()
}


def test_the_network_to_a_machine_is_not_touched() -> None:
    assert set(written(["threaded-napi", "rps"], machine(**NETWORK), "1")) == {
        "/sys/class/net/eth1/threaded",
        "/sys/class/net/lo/threaded",
        "/sys/class/net/eth1/queues/rx-0/rps_cpus",
    }


def test_a_part_of_a_bridge_or_bond_is_not_touched() -> None:
    bridged = machine(**NETWORK, **COALESCED, **{"/sys/class/net/eth1/upper_br0/ifindex": "7"})
    rules = ["threaded-napi", "rps", "network-interrupts-rarely"]
    assert {path for path in written(rules, bridged, "1") if "eth1" in path} == set()


def test_only_timers_that_run_are_stopped() -> None:
    now = machine(**{"timer:fwupd-refresh.timer": "running", "timer:fstrim.timer": "stopped"})
    assert written(["firmware-updater", "maintenance-timers"], now) == {
        "timer:fwupd-refresh.timer": "stopped"
    }


def test_coalescing_is_only_tried_where_a_driver_has_it() -> None:
    now = machine(**NETWORK, **COALESCED, **{"ethtool:eth3:rx-usecs": "0", "ethtool:eth3:adaptive-rx": "off"})
    for name, usecs in (("network-interrupts-rarely", "500"), ("network-interrupts-at-once", "0")):
        assert written([name], now) == {
            f"ethtool:eth{interface}:{key}": value
            for interface in (1, 2)
            for key, value in {"adaptive-rx": "off", "rx-usecs": usecs}.items()
        }


def test_packets_do_not_follow_a_program_to_its_cpu() -> None:
    queues = {f"/sys/class/net/{name}/queues/rx-0/rps_flow_cnt": "2048" for name in ("eth0", "eth1")}
    queues["/sys/class/net/eth1/queues/rx-1/rps_flow_cnt"] = "0"
    assert written(["rfs"], machine(**NETWORK, **queues)) == {
        "/sys/class/net/eth1/queues/rx-0/rps_flow_cnt": "0"
    }


def xps(**masks: str) -> dict[str, str]:
    """Interface_QUEUE=mask -> the files."""
    named = ([*name.split("_"), mask] for name, mask in masks.items())
    return {f"/sys/class/net/{name}/queues/tx-{queue}/xps_cpus": mask for name, queue, mask in named}


def test_the_real_time_cpus_get_a_send_queue_of_their_own() -> None:
    shared = machine(**NETWORK, **xps(eth1_0="5", eth1_1="a", eth0_0="5", eth0_1="a"))
    assert written(["xps"], shared, "3") == xps(eth1_0="7", eth1_1="8")
    assert written(["xps"], shared) == {}
    for masks in (xps(eth1_0="f"), xps(eth1_0="7", eth1_1="8"), xps(eth1_0="0", eth1_1="0")):
        assert written(["xps"], machine(**NETWORK, **masks), "3") == {}


@pytest.mark.parametrize("mask", ["", "x", "-1", "fffffffff", "1,,2", "9" * 5000, "[8]"])
def test_a_mask_that_is_none_changes_no_send_queue(mask: str) -> None:
    assert written(["xps"], machine(**NETWORK, **xps(eth1_0=mask)), "3") == {}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (({0, 3}, {3}), {0: {0}}),
        (({0, 1, 2, 3},) * 4, {0: {0, 1, 2}, 1: {0, 1, 2}, 2: {0, 1, 2}, 3: {3}}),
        ((set[int](), {2, 3}), {0: {2}, 1: {3}}),
        (({0, 1}, {1, 3}), {1: {3}}),
    ],
)
def test_each_cpu_keeps_a_send_queue(before: tuple[set[int], ...], after: dict[int, set[int]]) -> None:
    queues = {str(number): cpus for number, cpus in enumerate(before)}
    actual = apart(queues, {3})
    assert actual == {str(number): cpus for number, cpus in after.items()}
    used = set[int]().union(*before)
    assert used <= set[int]().union(*(queues | actual).values())
    assert not any(3 in cpus and cpus != {3} for cpus in (queues | actual).values())


@pytest.mark.parametrize(
    ("mounts", "touched"),
    [
        ("/dev/sda1 / ext4 rw 0 0", {"nvme0n1"}),
        ("/dev/nvme0n1p2 / ext4 rw 0 0", {"sda"}),
        ("/dev/nvme0n1p2 / ext4 rw 0 0\n/dev/sda1 /data ext4 rw 0 0", set[str]()),
        ("/dev/mapper/root / ext4 rw 0 0", set[str]()),
        ("rootfs / rootfs rw 0 0\n/dev/sda1 / ext4 rw 0 0", {"nvme0n1"}),
        ("/dev/disk/by-uuid/1 / ext4 rw 0 0", set[str]()),
        ("/dev/sda1 / ext4 rw 0 0\n/dev/disk/by-label/data /data ext4 rw 0 0", set[str]()),
        ("/dev/sda1 / ext4 rw 0 0\npool /data zfs rw 0 0", set[str]()),
        ("/dev/sda1", set[str]()),
        ("/ / / /\n/dev/ / / /\n/dev/// / / /", set[str]()),
        ("overlay / overlay rw 0 0", set[str]()),
        ("/dev/root / ext4 rw 0 0", set[str]()),
        ("", set[str]()),
    ],
)
def test_the_disk_of_the_root_file_system_is_not_touched(mounts: str, touched: set[str]) -> None:
    queues = {f"/sys/block/{name}/queue/rq_affinity": "1" for name in ("sda", "nvme0n1")}
    actual = written(["block-completion"], machine(**queues, **{"/proc/mounts": mounts}))
    assert {path.split("/")[3] for path in actual} == touched


USED = {
    "/proc/mounts": "/dev/sda1 / ext4 rw 0 0",
    "/proc/swaps": "Filename Type Size Used Priority\n/dev/sdb2 partition 9 0 -2\n\n",
    "/sys/block/sdc/sdc1/holders/dm-0/dev": "253:0",
    "/sys/block/sdd/holders/md0/dev": "9:0",
    "/sys/fs/btrfs/0b1c/devices/sde1/dev": "8:65",
}


def test_disks_in_use_are_not_touched() -> None:
    names = ("sda", "sdb", "sdc", "sdd", "sde", "dm-0", "md0", "loop0", "sdf", "nvme0n1")
    depths = {f"/sys/block/{name}/queue/nr_requests": "256" for name in names}
    depths |= {f"/sys/block/{name}/size": "0" if name == "loop0" else "2048" for name in names}
    actual = written(["disk-queue-depth"], machine(**depths, **USED))
    assert actual == {f"/sys/block/{name}/queue/nr_requests": "4" for name in ("sdf", "nvme0n1")}


@pytest.mark.parametrize(
    ("source", "disk"),
    [("/dev/mmcblk0p2", "mmcblk0boot0"), ("/dev/nvme0n1p2", "nvme0c1n1"), ("/dev/nvme0n1p2", "nvme0n1")],
)
def test_a_disk_with_two_names_is_not_touched(source: str, disk: str) -> None:
    files = {f"/sys/block/{disk}/queue/nr_requests": "256", "/proc/mounts": f"{source} / ext4 rw 0 0"}
    assert written(["disk-queue-depth"], machine(**files)) == {}


def test_settings_a_disk_scheduler_resets_are_noted_first() -> None:
    queue = "/sys/block/sdf/queue"
    files = {
        f"{queue}/scheduler": "none [mq-deadline] bfq",
        f"{queue}/nr_requests": "512",
        f"{queue}/iosched/read_expire": "50",
        "/sys/block/sdg/queue/scheduler": "[none] mq-deadline",
        "/sys/block/sdg/queue/nr_requests": "64",
        "/sys/block/sdh/queue/scheduler": "mq-deadline",
    }
    deployment = parse_deployment("settings=disk-scheduler")
    assert {"/sys/block/*/queue/nr_requests", "/sys/block/*/queue/iosched/*"} <= set(
        trial_paths(deployment.rules)
    )
    note, write = preview(deployment, machine(**files, **USED))
    assert note == Note((f"{queue}/nr_requests", f"{queue}/iosched/read_expire"))
    assert isinstance(write, Write)
    assert [(setting.path, setting.value) for setting in write.settings] == [(f"{queue}/scheduler", "none")]


def test_pci_devices_of_disks_and_networks_are_not_touched() -> None:
    touched = {"display": "0x030000", "sound": "0x040300"}
    others = {
        "nvme": "0x010802",
        "ethernet": "0x020000",
        "bridge": "0x060400",
        "sd-host": "0x080501",
        "usb": "0x0c0330",
        "fibre-channel": "0x0c0400",
        "wireless": "0x0d2000",
        "virtio": "0x00ff00",
        "strange": "display",
    }
    files = {f"/sys/bus/pci/devices/{name}/class": text for name, text in {**touched, **others}.items()}
    power = {f"/sys/bus/pci/devices/{name}/power/control": "auto" for name in (*touched, *others, "none")}
    assert set(written(["pci-runtime-power"], machine(**files, **power))) == {
        f"/sys/bus/pci/devices/{name}/power/control" for name in touched
    }


def test_only_gpu_and_memory_get_a_fixed_frequency() -> None:
    events = {
        "ff9a0000.gpu": "DRIVER=panfrost\nOF_NAME=gpu\nOF_FULLNAME=/gpu@ff9a0000",
        "dmc": "OF_NAME=memory-controller",
        "1d84000.ufshc": "DRIVER=ufshcd-qcom\nOF_NAME=ufshc",
        "mmc": "OF_NAME=mmc\nOF_FULLNAME=OF_NAME=gpu",
        "hostile": "OF_NAME=gpu2\n OF_NAME=gpu\nXOF_NAME=gpu",
        "slow": "OF_NAME=gpu",
    }
    folder = "/sys/class/devfreq"
    files = {f"{folder}/{name}/device/uevent": text for name, text in events.items()}
    files |= {f"{folder}/{name}/governor": "simple_ondemand" for name in (*events, "unknown")}
    files |= {f"{folder}/{name}/available_governors": "performance simple_ondemand" for name in events}
    files[f"{folder}/slow/available_governors"] = "userspace simple_ondemand"
    assert written(["device-frequency"], machine(**files)) == {
        f"{folder}/{name}/governor": "performance" for name in ("ff9a0000.gpu", "dmc")
    }


def test_each_gpu_gets_its_own_highest_frequency() -> None:
    drm = "/sys/class/drm"
    files = {
        f"{drm}/card0/gt_min_freq_mhz": "300",
        f"{drm}/card0/gt_RP0_freq_mhz": "1150",
        f"{drm}/card1/gt_min_freq_mhz": "350",
        f"{drm}/card1/gt_RP0_freq_mhz": "2100",
        f"{drm}/card2/device/tile0/gt0/freq0/min_freq": "1200",
        f"{drm}/card2/device/tile0/gt0/freq0/rp0_freq": "2850",
        f"{drm}/card2/device/tile0/gt1/freq0/min_freq": "1300",
        f"{drm}/card2/device/tile0/gt1/freq0/rp0_freq": "1300",
        f"{drm}/card3/device/power_dpm_force_performance_level": "auto",
        f"{drm}/card4/gt_min_freq_mhz": "300",
    }
    assert written(["gpu-frequency"], machine(**files)) == {
        f"{drm}/card0/gt_min_freq_mhz": "1150",
        f"{drm}/card1/gt_min_freq_mhz": "2100",
        f"{drm}/card2/device/tile0/gt0/freq0/min_freq": "2850",
        f"{drm}/card3/device/power_dpm_force_performance_level": "high",
    }


def test_full_preemption_is_written_only_to_a_kernel_that_has_it() -> None:
    file = "/sys/kernel/debug/sched/preempt"
    for text, value in (("full (lazy) ", "full"), ("none (voluntary) full lazy ", "full")):
        assert written(["lazy-preemption"], machine(**{file: text})) == {file: value}
    for text in ("(full) lazy ", "(lazy) ", "none voluntary (full) "):
        assert written(["lazy-preemption"], machine(**{file: text})) == {}


def test_a_value_is_only_written_if_the_kernel_offers_it() -> None:
    folder = "/sys/devices/system/clocksource/clocksource0"
    for offered, expected in (("tsc kvm-clock", "tsc"), ("kvm-clock", None)):
        now = {f"{folder}/available_clocksource": offered, f"{folder}/current_clocksource": "kvm-clock"}
        assert written(["clock-source"], machine(**now)).get(f"{folder}/current_clocksource") == expected
    preempt = "/sys/kernel/debug/sched/preempt"
    assert written(["preemptible-kernel"], machine(**{preempt: "none (voluntary) full"})) == {preempt: "full"}
    assert written(["preemptible-kernel"], machine(**{preempt: "none voluntary (full)"})) == {}
    uncore = "/sys/devices/system/cpu/intel_uncore_frequency/package_00_die_00"
    now = {f"{uncore}/min_freq_khz": "800000", f"{uncore}/initial_max_freq_khz": "2400000"}
    assert written(["uncore-frequency"], machine(**now)) == {f"{uncore}/min_freq_khz": "2400000"}


def test_threads_are_chosen_by_name_and_get_a_policy() -> None:
    now = machine(
        **thread(20, "ktimers/1", 1, "1"),
        **thread(21, "ksoftirqd/1", 1, "1"),
        **thread(22, "ksoftirqd/2", 0, "2"),
        **thread(23, "rcuog/0", 0, "0-3"),
    )
    assert written(["softirq-threads"], now) == {
        "thread:20:120:policy": "fifo 1",
        "thread:21:121:policy": "other",
    }
    assert written(["rcu-threads"], now, "1") == {"thread:23:123:affinity": "0,2-3"}


def test_the_watched_program_stays_and_can_be_raised() -> None:
    now = machine(**thread(30, "control", 1, "1"), **thread(31, "other", 1, "1"))
    rules = ["rt-tasks-elsewhere", "program-priority", "timer-slack"]
    actual = {made.path: made.value for made in trial_settings(rules, now, "1", 30)}
    assert actual == {
        "thread:31:131:affinity": "0,2-3",
        "thread:30:130:policy": "fifo 80",
        "/proc/30/timerslack_ns": "1",
    }
    assert set(written(rules, now, "1")) == {"thread:30:130:affinity", "thread:31:131:affinity"}


def test_threads_of_interrupts_can_run_after_real_time_programs() -> None:
    now = machine(**thread(50, "irq/24-eth1", 1, "0"), **thread(51, "control", 1, "0"))
    assert written(["interrupt-thread-priority"], now) == {"thread:50:150:policy": "fifo 1"}


def test_rcus_callback_threads_are_lowered_and_never_raised() -> None:
    now = machine(
        **thread(60, "rcuc/0", 1, "0"), **thread(61, "rcuc/1", 0, "1"), **thread(62, "rcuc/2) R 1 (", 1, "2")
    )
    assert written(["rcu-callback-threads"], now) == {
        "thread:60:160:policy": "fifo 1",
        "thread:62:162:policy": "fifo 1",
    }
    assert written(["interrupt-thread-priority"], machine(**thread(50, "irq/24-eth1", 0, "0"))) == {}


def test_daemons_that_fight_back_are_stopped_first() -> None:
    now = machine(
        __proc__irq__8__smp_affinity_list="0-3",
        **thread(40, "irqbalance", 0, "0-3"),
        **thread(41, "power-profiles-", 0, "0-3"),
    )
    assert list(written(["irqs-on-isolated"], now, "2-3").items()) == [
        ("thread:40:140:state", "stopped"),
        ("/proc/irq/8/smp_affinity_list", "0-1"),
    ]
    assert written(["thp"], now) == {}
    first = preview(parse_deployment("governor=performance"), now)[0]
    assert isinstance(first, Write)
    assert [setting.path for setting in first.settings] == ["thread:41:141:state"]


def test_a_rule_only_conflicts_with_rules_that_are_tried() -> None:
    for rule in tried_rules().values():
        assert rule.trial is not None
        assert set(rule.trial.conflicts) <= set(tried_rules())


class Hanging:
    """A target on which a setting hangs."""

    def __init__(self, files: Files) -> None:
        self.files, self.verbs = files, list[str]()

    def read(self, paths: Iterable[str]) -> Files:
        return self.files if paths else Files()

    def agent(self, verb: str, *arguments: str) -> list[dict[str, Any]]:
        self.verbs.append(verb)
        if verb == "set":
            raise HungError(f"the engine's command {verb} did not end: {arguments}")
        return []


def test_a_setting_that_hangs_is_refused_and_put_back() -> None:
    target = Hanging(machine(**{THP.replace("/", "__"): "always [madvise] never"}).files)
    with pytest.raises(Refused, match="a setting hung"):
        apply(parse_deployment("settings=thp"), cast("Target", target))
    assert target.verbs == ["set", "restore"]
