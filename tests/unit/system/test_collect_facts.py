# SPDX-License-Identifier: MIT
from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.system.collect_facts import fact_paths, more_fact_paths
from rtgauge.system.collect_facts import facts as facts_of
from rtgauge.target.file_batch import Files
from rtgauge.target.local import read_local
from tests.unit.system import machines

PREEMPT = "/sys/kernel/debug/sched/preempt"
REALTIME = "/sys/kernel/realtime"
VERSION = "/proc/sys/kernel/version"
RELEASE = "/proc/sys/kernel/osrelease"


def facts(files: Mapping[str, Any], machine: str | None = None) -> dict[str, Any]:
    """As system.json has them."""
    return facts_of(Files(files), machine).as_json()


def test_bare_metal_with_preempt_rt() -> None:
    machine_facts = facts(machines.bare_metal_rt())
    assert machine_facts["host"] == "shopfloor"
    assert machine_facts["os"] == "Debian GNU/Linux 12 (bookworm)"
    assert machine_facts["kernel"]["preemption"]["model"] == "PREEMPT_RT"
    assert machine_facts["kernel"]["architecture"] == "x86_64"
    assert machine_facts["kernel"]["lockdown"] == "none"
    assert machine_facts["kernel"]["xenomai"] == "none"
    assert machine_facts["kernel"]["rt_group_sched"] == "unknown"
    assert machine_facts["machine"] == {
        "virtual": False,
        "hypervisor": "none",
        "emulated": False,
        "evidence": [],
        "instruction_ns": 0,
    }
    cpu = machine_facts["cpu"]
    assert cpu["model"] == "Intel(R) Core(TM) i5-6500 CPU @ 3.20GHz"
    assert (
        cpu["online"],
        cpu["online_count"],
        cpu["isolated"],
        cpu["isolated_count"],
        cpu["nohz_full"],
        cpu["smt_active"],
    ) == ("0-3", 4, "3", 1, "3", False)
    assert cpu["frequency"] == {
        "governors": {"powersave": "0-2", "performance": "3"},
        "drivers": {"intel_pstate": "0-3"},
        "min_khz": 800000,
        "max_khz": 3600000,
        "turbo": True,
    }
    assert cpu["idle"]["states"][2] == {"name": "C6", "latency_us": 85, "disabled": "3"}
    assert machine_facts["memory"]["total_bytes"] == 16262516 * 1024
    assert machine_facts["memory"]["swaps"] == ["/dev/nvme0n1p3"]
    assert machine_facts["scheduling"]["fair_server"] == "none"
    assert machine_facts["scheduling"]["cgroup"] == {
        "version": "v2",
        "path": "/user.slice/user-0.slice/session-3.scope",
        "rt_runtime_us": "none",
        "rt_period_us": "none",
    }
    assert machine_facts["steal_ns_since_boot"] == 0


def test_virtual_machine() -> None:
    machine_facts = facts(machines.virtual_machine())
    assert machine_facts["machine"]["virtual"] is True
    assert machine_facts["machine"]["hypervisor"] == "kvm"
    assert machine_facts["machine"]["emulated"] is False
    assert len(machine_facts["machine"]["evidence"]) == 3
    assert machine_facts["kernel"]["preemption"]["model"] == "full"
    assert machine_facts["kernel"]["preemption"]["sources"]["config"] == "voluntary"
    assert machine_facts["kernel"]["rt_group_sched"] is False
    assert machine_facts["kernel"]["hz"] == 250
    assert machine_facts["scheduling"]["fair_server"] == "unknown"
    assert machine_facts["cpu"]["isolated"] == ""
    assert machine_facts["cpu"]["frequency"]["governors"] == "none"
    assert machine_facts["memory"]["swaps"] == []
    assert machine_facts["memory"]["total_bytes"] == "unknown"
    assert machine_facts["steal_ns_since_boot"] == 120_000_000


@pytest.mark.parametrize(
    ("command_line", "instruction_ns"),
    [
        ("console=ttyS0 rtgauge.icount=2 quiet", 4),
        ("rtgauge.icount=0", 1),
        ("console=ttyS0", "unknown"),
        ("xrtgauge.icount=2", "unknown"),
        ("rtgauge.icount=99", "unknown"),
        ("rtgauge.icount=-1", "unknown"),
    ],
)
def test_a_clock_that_counts_instructions(command_line: str, instruction_ns: int | str) -> None:
    cpuinfo = "processor : 0\nmodel name : QEMU TCG CPU version 2.5+\nflags : fpu hypervisor\n"
    machine_facts = facts(machines.texts({"/proc/cpuinfo": cpuinfo, "/proc/cmdline": command_line}))
    assert (machine_facts["machine"]["emulated"], machine_facts["machine"]["instruction_ns"]) == (
        True,
        instruction_ns,
    )


def test_arm_board() -> None:
    machine_facts = facts(machines.arm_board(), machine="aarch64")
    assert machine_facts["cpu"]["model"] == "Raspberry Pi 4 Model B Rev 1.4 (Arm implementer 0x41 part 0xd08)"
    assert machine_facts["kernel"]["architecture"] == "aarch64"
    assert machine_facts["kernel"]["preemption"]["model"] == "full"
    assert machine_facts["machine"]["virtual"] is False
    assert machine_facts["cpu"]["frequency"]["governors"] == {"ondemand": "0"}


def test_a_riscv_guest() -> None:
    machine_facts = facts(machines.riscv_guest())
    assert machine_facts["cpu"]["model"] == "riscv-virtio,qemu (RISC-V vendor 0x0 architecture 0x70216)"
    assert machine_facts["cpu"]["features"] == ["sstc", "zihintpause"]
    assert machine_facts["kernel"]["architecture"] == "riscv64"
    machine = machine_facts["machine"]
    assert (machine["virtual"], machine["hypervisor"], machine["emulated"]) == (True, "qemu", True)


@pytest.mark.parametrize(
    ("numbers", "emulated"),
    [
        (("0x0", "0x2a", "0x0"), True),
        (("0x0", "0x70216", "0x70216"), True),
        (("0x0", "0x70216", "0x1"), "unknown"),
        (("0x489", "0x8000000000000007", "0x4210427"), "unknown"),
        (("0x5b7", "0x0", "0x0"), "unknown"),
    ],
)
def test_only_the_ids_of_the_riscv_cpu_of_qemu_show_emulation(
    numbers: tuple[str, str, str], emulated: bool | str
) -> None:
    names = ("mvendorid", "marchid", "mimpid")
    cpuinfo = "".join(f"{name}\t: {value}\n" for name, value in zip(names, numbers, strict=True))
    machine_facts = facts(
        machines.riscv_guest() | machines.texts({"/proc/cpuinfo": f"processor\t: 0\n{cpuinfo}"})
    )
    assert machine_facts["machine"]["emulated"] == emulated


def test_a_riscv_board_is_no_guest() -> None:
    tree = b"starfive,visionfive-2-v1.3b\0starfive,jh7110\0"
    cpuinfo = (
        "processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdc_zicntr_zicsr_zifencei_zihpm_zba_zbb\nmmu\t\t: sv39\n"
        "uarch\t\t: sifive,u74-mc\nmvendorid\t: 0x489\nmarchid\t\t: 0x8000000000000007\nmimpid\t\t: 0x4210427\n"
    )
    files = machines.riscv_guest() | machines.texts({"/proc/cpuinfo": cpuinfo})
    machine_facts = facts(
        files | {"/proc/device-tree/compatible": {"base64": base64.b64encode(tree).decode()}}
    )
    assert machine_facts["cpu"]["model"] == "sifive,u74-mc"
    assert machine_facts["cpu"]["features"] == []
    assert (machine_facts["machine"]["virtual"], machine_facts["machine"]["emulated"]) == (False, False)


def test_a_loongarch_machine() -> None:
    machine_facts = facts(machines.loongarch_machine())
    assert (machine_facts["cpu"]["model"], machine_facts["kernel"]["architecture"]) == (
        "Loongson-3A5000",
        "loongarch64",
    )
    assert machine_facts["machine"]["virtual"] is False


def test_almost_nothing_is_unknown_and_no_guess() -> None:
    machine_facts = facts(machines.busybox())
    assert machine_facts["kernel"]["preemption"]["model"] == "none or voluntary"
    assert machine_facts["kernel"]["architecture"] == "unknown"
    assert machine_facts["machine"] == {
        "virtual": "unknown",
        "hypervisor": "unknown",
        "emulated": "unknown",
        "evidence": [],
        "instruction_ns": "unknown",
    }
    assert machine_facts["cpu"]["model"] == "unknown"
    assert (
        machine_facts["cpu"]["online"]
        == machine_facts["cpu"]["online_count"]
        == machine_facts["cpu"]["isolated"]
        == "unknown"
    )
    assert machine_facts["cpu"]["frequency"]["governors"] == "unknown"
    assert machine_facts["scheduling"]["rt_runtime_us"] == "unknown"
    assert machine_facts["steal_ns_since_boot"] == "unknown"
    assert machine_facts["memory"]["swaps"] == "unknown"


@pytest.mark.parametrize(
    ("files", "model"),
    [
        ({VERSION: "#1 SMP PREEMPT RT Debian 4.19"}, "PREEMPT_RT"),
        ({VERSION: "#1 SMP PREEMPT_DYNAMIC", PREEMPT: "none (voluntary) full lazy"}, "voluntary"),
        (
            {
                VERSION: "#1 SMP PREEMPT_DYNAMIC",
                PREEMPT: "none voluntary full (lazy)",
                "/proc/cmdline": "preempt=full",
            },
            "lazy",
        ),
        ({VERSION: "#1 SMP PREEMPT_DYNAMIC", "/proc/cmdline": "preempt=none preempt=voluntary"}, "voluntary"),
        ({VERSION: "#1 SMP PREEMPT_DYNAMIC", "/proc/cmdline": "xpreempt=none"}, "unknown"),
        ({VERSION: "#1 SMP PREEMPT", RELEASE: "6.8.0"}, "full"),
        ({VERSION: "#1 SMP PREEMPT", RELEASE: "6.14.0"}, "full or lazy"),
        (
            {VERSION: "#1 SMP PREEMPT", RELEASE: "6.14.0", "/boot/config-6.14.0": "CONFIG_PREEMPT_LAZY=y\n"},
            "lazy",
        ),
        (
            {
                VERSION: "#1 SMP",
                RELEASE: "5.10.0",
                "/boot/config-5.10.0": "CONFIG_PREEMPT_VOLUNTARY=y\n# CONFIG_PREEMPT is not set\n",
            },
            "voluntary",
        ),
        (
            {VERSION: "#1 SMP", RELEASE: "5.10.0", "/boot/config-5.4.0": "CONFIG_PREEMPT_VOLUNTARY=y\n"},
            "none or voluntary",
        ),
        ({REALTIME: "1", VERSION: "#1 SMP"}, "PREEMPT_RT"),
        ({REALTIME: "0", VERSION: "#1 SMP PREEMPT"}, "full or lazy"),
        ({}, "unknown"),
    ],
)
def test_preemption_model(files: dict[str, str], model: str) -> None:
    assert facts(machines.texts(files))["kernel"]["preemption"]["model"] == model


@pytest.mark.parametrize(
    ("files", "virtual", "emulated"),
    [
        ({"/proc/cpuinfo": "model name\t: QEMU TCG CPU version 2.5+\nflags\t: lm hypervisor\n"}, True, True),
        (
            {"/proc/cpuinfo": "model name\t: QEMU Virtual CPU version 2.5+\nflags\t: lm hypervisor\n"},
            True,
            True,
        ),
        (
            {
                "/proc/cpuinfo": "model name\t: QEMU Virtual CPU version 2.5+\nflags\t: lm hypervisor\n",
                f"{machines.CLOCK}/available_clocksource": "tsc kvm-clock",
            },
            True,
            False,
        ),
        (
            {
                "/proc/cpuinfo": "CPU implementer\t: 0x00\nCPU part\t: 0x051\n",
                "/proc/device-tree/compatible": "linux,dummy-virt\0",
            },
            True,
            True,
        ),
        (
            {
                "/proc/cpuinfo": "CPU implementer\t: 0x41\nCPU part\t: 0xd08\n",
                "/proc/device-tree/compatible": "linux,dummy-virt\0",
            },
            True,
            "unknown",
        ),
        ({"/proc/cpuinfo": "CPU implementer\t: 0x41\nCPU part\t: 0xd08\n"}, "unknown", "unknown"),
        (
            {
                "/sys/class/dmi/id/sys_vendor": "Amazon EC2",
                "/sys/class/dmi/id/product_name": "c5.metal",
                "/proc/cpuinfo": "flags\t: lm\n",
            },
            False,
            False,
        ),
        (
            {
                "/sys/class/dmi/id/sys_vendor": "Microsoft Corporation",
                "/sys/class/dmi/id/product_name": "Surface Pro",
            },
            False,
            False,
        ),
        (
            {
                "/sys/class/dmi/id/sys_vendor": "Microsoft Corporation",
                "/sys/class/dmi/id/product_name": "Virtual Machine",
            },
            True,
            "unknown",
        ),
    ],
)
def test_virtual_machine_or_not(files: dict[str, str], virtual: bool | str, emulated: bool | str) -> None:
    machine = facts(machines.texts(files))["machine"]
    assert (machine["virtual"], machine["emulated"]) == (virtual, emulated)


def test_cgroup_v1_takes_the_tightest_group_on_the_way() -> None:
    base = {"/proc/self/cgroup": "4:memory:/box\n3:cpu,cpuacct:/box/job\n0::/x\n"}
    root = "/sys/fs/cgroup/cpu,cpuacct"
    first = machines.texts(
        base | {f"{root}/cpu.rt_runtime_us": "950000", f"{root}/cpu.rt_period_us": "1000000"}
    )
    more = more_fact_paths(first)
    assert f"{root}/box/job/cpu.rt_runtime_us" in more
    assert f"{root}/box/cpu.rt_period_us" in more
    limited = {f"{root}/box/cpu.rt_runtime_us": "0", f"{root}/box/cpu.rt_period_us": "1000000"}
    group = facts(first | machines.texts(limited))["scheduling"]["cgroup"]
    assert group == {"version": "v1", "path": "/box/job", "rt_runtime_us": 0, "rt_period_us": 1000000}


def test_cgroup_v1_without_real_time_limit() -> None:
    group = facts(
        machines.texts({"/proc/self/cgroup": "3:cpu:/\n", "/sys/fs/cgroup/cpu/cpu.shares": "1024"})
    )["scheduling"]["cgroup"]
    assert group["rt_runtime_us"] == "none"


@pytest.mark.parametrize(
    ("allowed", "effective", "on"),
    [
        ("0-3", "3", ["9 (eth0)"]),
        ("0-3", "0", []),
        ("0-2", "3", []),  # it moves when it fires next
        ("3", "", ["9 (eth0)"]),
        ("2-3", "2-3", ["9 (eth0)"]),
    ],
)
def test_interrupts_on_cpus_that_a_control_group_isolates(
    allowed: str, effective: str, on: list[str]
) -> None:
    files = {
        "/sys/devices/system/cpu/online": "0-3",
        "/sys/devices/system/cpu/isolated": "\n",
        "/sys/fs/cgroup/cpuset.cpus.isolated": "3\n",
        "/proc/irq/9/smp_affinity_list": allowed,
        "/proc/irq/9/effective_affinity_list": effective,
        "/sys/kernel/irq/9/actions": "eth0",
    }
    actual = facts(machines.texts(files))
    assert (actual["cpu"]["isolated"], actual["interrupts"]["on_isolated"]) == ("3", on)


@pytest.mark.parametrize("kind", ["fair_server", "ext_server"])
def test_servers_of_each_cpu(kind: str) -> None:
    base = f"/sys/kernel/debug/sched/{kind}"
    files = {
        f"{base}/cpu{cpu}/{name}": text
        for cpu in (0, 10)
        for name, text in (("runtime", "50000000"), ("period", "1000000000"))
    }
    server = facts(machines.texts(files))["scheduling"][kind]
    assert server == {cpu: {"runtime_ns": 50_000_000, "period_ns": 1_000_000_000} for cpu in ("0", "10")}


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"state": {"text": "enabled\n"}, "root/ops": {"text": "lavd_1.0.16\n"}}, "lavd_1.0.16"),
        ({"state": {"text": "enabled\n"}}, "enabled"),
        ({"state": {"text": "disabled\n"}, "root/ops": {"error": "ENOENT"}}, "none"),
        ({"state": {"error": "ENOENT"}}, "none"),
        ({"state": {"error": "EACCES"}}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_the_scheduler_extension_at_work(files: dict[str, dict[str, str]], name: str) -> None:
    tree = Files({f"/sys/kernel/sched_ext/{path}": file for path, file in files.items()})
    assert facts(tree)["scheduling"]["scheduler_extension"] == name


@pytest.mark.parametrize(
    ("files", "actual"),
    [
        ({"/proc/cpuinfo": "flags : fpu cat_l3 cdp_l3 mba tsc"}, ["L3", "MB"]),
        ({"/proc/cpuinfo": "flags : fpu cat_l2 tsc"}, ["L2"]),
        ({"/proc/cpuinfo": "flags : fpu cat_l30"}, []),
        ({"/proc/cpuinfo": "CPU part : 0xd4f"}, "unknown"),
        (
            {
                "/proc/cpuinfo": "CPU part : 0xd4f",
                "/sys/fs/resctrl/info/L3/cbm_mask": "fff",
                "/sys/fs/resctrl/info/MB/min_bandwidth": "10",
                "/sys/fs/resctrl/info/L3_MON/cbm_mask": "1",
            },
            ["L3", "MB"],
        ),
    ],
)
def test_what_resctrl_can_divide(files: dict[str, str], actual: list[str] | str) -> None:
    """Recorded from documentation; no machine with resctrl was here."""
    assert facts(machines.texts(files))["cpu"]["resource_control"] == actual


def test_a_configuration_that_is_cut_off_says_nothing() -> None:
    whole = machines.packed("CONFIG_PREEMPT_NONE=y\n" * 1000)
    files = machines.texts({VERSION: "#1 SMP PREEMPT_DYNAMIC"})
    assert facts(files | {"/proc/config.gz": whole})["kernel"]["preemption"]["model"] == "none"
    assert (
        facts(files | {"/proc/config.gz": {"base64": whole["base64"][:40]}})["kernel"]["preemption"]["model"]
        == "unknown"
    )


def test_this_machine() -> None:
    files = read_local(fact_paths())
    machine_facts = facts(files | read_local(more_fact_paths(files)))
    assert machine_facts["cpu"]["online_count"] >= 1
    assert machine_facts["kernel"]["release"] != "unknown"
    json.dumps(machine_facts, allow_nan=False)


HOSTILE = st.one_of(
    st.fixed_dictionaries(
        {
            "text": st.one_of(
                st.text(max_size=200),
                st.from_regex(r"([A-Za-z_ ]+ *: *[0-9(\[]*[a-z)\]]*\n)*", fullmatch=True),
            )
        }
    ),
    st.fixed_dictionaries({"base64": st.text(max_size=40)}),
    st.fixed_dictionaries({"error": st.sampled_from(["ENOENT", "EPERM", ""])}),
    st.fixed_dictionaries({"directory": st.lists(st.text(max_size=5), max_size=3)}),
    st.none(),
    st.integers(),
    st.just({"text": None}),
    st.just({"text": "9" * 5000}),
    st.just({"text": "0-99999999,3"}),
)
PATHS = st.one_of(
    st.sampled_from([path.replace("[0-9]*", "0") for path in fact_paths()]),
    st.sampled_from(
        [
            f"{machines.CPU}/cpu99999/cpuidle/state9/disable",
            f"{machines.CPU}/cpu99999/cpufreq/scaling_governor",
        ]
    ),
    st.text(max_size=30),
)


@given(st.dictionaries(PATHS, HOSTILE, max_size=30))
def test_hostile_files_never_raise(files: dict[str, Any]) -> None:
    json.dumps(facts(files), allow_nan=False)
    assert all(isinstance(path, str) for path in more_fact_paths(Files(files)))


@given(st.sampled_from([machines.bare_metal_rt, machines.virtual_machine, machines.arm_board]), st.data())
def test_damaged_files_never_raise(machine: Any, data: st.DataObject) -> None:
    files = dict(machine())
    for path in data.draw(st.lists(st.sampled_from(sorted(files)), max_size=8)):
        files[path] = data.draw(HOSTILE)
    json.dumps(facts(files), allow_nan=False)
