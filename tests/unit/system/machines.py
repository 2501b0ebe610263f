# SPDX-License-Identifier: MIT
"""What the files of several kinds of machines say, written by hand after real ones."""

from __future__ import annotations

import base64
import gzip

from rtgauge.target.file_batch import Files

CPU = "/sys/devices/system/cpu"
CLOCK = "/sys/devices/system/clocksource/clocksource0"


def texts(files: dict[str, str]) -> Files:
    return Files({path: {"text": text} for path, text in files.items()})


def packed(text: str) -> dict[str, str]:
    return {"base64": base64.b64encode(gzip.compress(text.encode())).decode()}


def bare_metal_rt() -> Files:
    """A PC with Debian's PREEMPT_RT kernel, CPU 3 isolated, debugfs mounted."""
    files = {
        "/proc/sys/kernel/hostname": "shopfloor\n",
        "/proc/sys/kernel/osrelease": "6.1.0-28-rt-amd64\n",
        "/proc/sys/kernel/version": "#1 SMP PREEMPT_RT Debian 6.1.119-1 (2024-11-22)\n",
        "/proc/sys/kernel/arch": "x86_64\n",
        "/proc/sys/kernel/random/boot_id": "0d7e2c0e-7f0f-4f0b-8a58-6f7c6b1f5d11\n",
        "/proc/sys/kernel/sched_rt_runtime_us": "950000\n",
        "/proc/sys/kernel/sched_rt_period_us": "1000000\n",
        "/proc/sys/kernel/tainted": "0\n",
        "/proc/cmdline": (
            "BOOT_IMAGE=/boot/vmlinuz-6.1.0-28-rt-amd64 root=UUID=1234 ro isolcpus=3 nohz_full=3 quiet\n"
        ),
        "/proc/cpuinfo": (
            "processor\t: 0\nmodel name\t: Intel(R) Core(TM) i5-6500 CPU @ 3.20GHz\nflags\t\t: fpu tsc "
            "msr lm vmx\n"
        ),
        "/proc/meminfo": (
            "MemTotal:       16262516 kB\nMemAvailable:   14012345 kB\nSwapTotal:       999420 kB\n"
        ),
        "/proc/swaps": (
            "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/nvme0n1p3                          "
            "partition\t999420\t\t0\t\t-2\n"
        ),
        "/proc/stat": (
            "cpu  10 0 10 1000 0 0 0 0 0 0\ncpu0 5 0 5 250 0 0 0 0 0 0\ncpu1 5 0 5 250 0 0 0 0 0 "
            "0\nintr 12345 0 1\nctxt 999\nbtime 1\nprocesses 7\n"
        ),
        "/proc/self/cgroup": "0::/user.slice/user-0.slice/session-3.scope\n",
        "/etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\n',
        "/sys/kernel/realtime": "1\n",
        "/sys/kernel/debug/sched/preempt": "none voluntary full \n",
        "/sys/kernel/security/lockdown": "[none] integrity confidentiality\n",
        f"{CLOCK}/current_clocksource": "tsc\n",
        f"{CLOCK}/available_clocksource": "tsc hpet acpi_pm \n",
        "/sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
        "/sys/class/dmi/id/product_name": "OptiPlex 7040\n",
        "/sys/class/dmi/id/bios_vendor": "Dell Inc.\n",
        f"{CPU}/online": "0-3\n",
        f"{CPU}/possible": "0-3\n",
        f"{CPU}/isolated": "3\n",
        f"{CPU}/nohz_full": "3\n",
        f"{CPU}/smt/active": "0\n",
        f"{CPU}/smt/control": "notsupported\n",
        f"{CPU}/intel_pstate/no_turbo": "0\n",
        f"{CPU}/cpuidle/current_driver": "intel_idle\n",
        f"{CPU}/cpuidle/current_governor": "menu\n",
    }
    for cpu in range(4):
        files[f"{CPU}/cpu{cpu}/cpufreq/scaling_governor"] = "performance\n" if cpu == 3 else "powersave\n"
        files[f"{CPU}/cpu{cpu}/cpufreq/scaling_driver"] = "intel_pstate\n"
        files[f"{CPU}/cpu{cpu}/cpufreq/cpuinfo_min_freq"] = "800000\n"
        files[f"{CPU}/cpu{cpu}/cpufreq/cpuinfo_max_freq"] = "3600000\n"
        for state, (name, latency) in enumerate((("POLL", 0), ("C1", 2), ("C6", 85))):
            files[f"{CPU}/cpu{cpu}/cpuidle/state{state}/name"] = f"{name}\n"
            files[f"{CPU}/cpu{cpu}/cpuidle/state{state}/latency"] = f"{latency}\n"
            files[f"{CPU}/cpu{cpu}/cpuidle/state{state}/disable"] = (
                "1\n" if cpu == 3 and state == 2 else "0\n"
            )
    return texts(files) | {
        "/sys/class/thermal/thermal_zone[0-9]*/temp": {"error": "ENOENT"},
        "/sys/hypervisor/type": {"error": "ENOENT"},
        "/proc/xenomai/version": {"error": "ENOENT"},
        "/proc/config.gz": {"error": "ENOENT"},
    }


def virtual_machine() -> Files:
    """A KVM guest with Linux 6.12, cgroup v2, debugfs not mounted, configuration in /proc/config.gz."""
    return texts(
        {
            "/proc/sys/kernel/hostname": "runner-7\n",
            "/proc/sys/kernel/osrelease": "6.12.9-cloud\n",
            "/proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC Mon Jan 13 2025\n",
            "/proc/sys/kernel/arch": "x86_64\n",
            "/proc/sys/kernel/sched_rt_runtime_us": "950000\n",
            "/proc/sys/kernel/sched_rt_period_us": "1000000\n",
            "/proc/cmdline": "console=ttyS0 preempt=full\n",
            "/proc/cpuinfo": (
                "processor\t: 0\nmodel name\t: Intel Xeon Processor (Skylake, IBRS)\nflags\t\t: fpu "
                "tsc lm hypervisor\n"
            ),
            "/proc/stat": "cpu  1 0 1 1 0 0 0 12 0 0\ncpu0 1 0 1 1 0 0 0 12 0 0\n",
            "/proc/self/cgroup": "0::/system.slice/runner.service\n",
            "/proc/swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
            f"{CLOCK}/current_clocksource": "kvm-clock\n",
            f"{CLOCK}/available_clocksource": "kvm-clock tsc acpi_pm\n",
            "/sys/class/dmi/id/sys_vendor": "QEMU\n",
            "/sys/class/dmi/id/product_name": "Standard PC (Q35 + ICH9, 2009)\n",
            f"{CPU}/online": "0\n",
            f"{CPU}/possible": "0-1\n",
            f"{CPU}/isolated": "\n",
        }
    ) | {
        "/proc/config.gz": packed(
            "CONFIG_HZ=250\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_PREEMPT_VOLUNTARY=y\n# "
            "CONFIG_RT_GROUP_SCHED is not set\n"
        ),
        "/sys/kernel/debug/sched/preempt": {"error": "EACCES"},
        "/sys/kernel/debug/sched/fair_server": {"error": "EACCES"},
    }


def arm_board() -> Files:
    """A Raspberry Pi 4 with a vendor kernel 6.6; the device tree's strings come as bytes."""
    tree = {
        "/proc/device-tree/model": b"Raspberry Pi 4 Model B Rev 1.4\0",
        "/proc/device-tree/compatible": b"raspberrypi,4-model-b\0brcm,bcm2711\0",
    }
    return texts(
        {
            "/proc/sys/kernel/hostname": "pi\n",
            "/proc/sys/kernel/osrelease": "6.6.51+rpt-rpi-v8\n",
            "/proc/sys/kernel/version": "#1 SMP PREEMPT Debian 1:6.6.51-1+rpt3 (2024-10-08)\n",
            "/proc/cpuinfo": (
                "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd08\n"
            ),
            "/proc/cmdline": "console=serial0,115200 root=PARTUUID=1\n",
            f"{CPU}/online": "0-3\n",
            f"{CPU}/possible": "0-3\n",
            f"{CPU}/cpu0/cpufreq/scaling_governor": "ondemand\n",
            f"{CLOCK}/current_clocksource": "arch_sys_counter\n",
            f"{CLOCK}/available_clocksource": "arch_sys_counter\n",
        }
    ) | {path: {"base64": base64.b64encode(content).decode()} for path, content in tree.items()}


def riscv_guest() -> Files:
    """Debian 13's kernel in QEMU 7.2's board for RISC-V, as recorded."""
    tree = {"model": b"riscv-virtio,qemu\0", "compatible": b"riscv-virtio\0"}
    isa = "rv64imafdch_zicntr_zicsr_zifencei_zihintpause_zihpm_zca_zcd_zba_zbb_zbc_zbs_sstc"
    cpus = "\n".join(
        f"processor\t: {cpu}\nhart\t\t: {1 - cpu}\nisa\t\t: {isa}\nmmu\t\t: sv57\nmvendorid\t: 0x0\n"
        f"marchid\t\t: 0x70216\nmimpid\t\t: 0x70216\nhart isa\t: {isa}\n"
        for cpu in range(2)
    )
    return texts(
        {
            "/proc/sys/kernel/hostname": "debian-riscv64\n",
            "/proc/sys/kernel/osrelease": "6.12.117+deb13-riscv64\n",
            "/proc/sys/kernel/arch": "riscv64\n",
            "/proc/sys/kernel/version": "#1 SMP Debian 6.12.117-1 (2026-11-12)\n",
            "/proc/cpuinfo": cpus,
            "/proc/cmdline": "console=ttyS0 loglevel=5 panic=-1 norandmaps\n",
            f"{CPU}/online": "0-1\n",
            f"{CPU}/possible": "0-1\n",
            f"{CLOCK}/current_clocksource": "riscv_clocksource\n",
            f"{CLOCK}/available_clocksource": "riscv_clocksource \n",
        }
    ) | {
        f"/proc/device-tree/{name}": {"base64": base64.b64encode(text).decode()}
        for name, text in tree.items()
    }


def loongarch_machine() -> Files:
    """A PC with a Loongson 3A5000, by the kernel's own text (arch/loongarch/kernel/proc.c)."""
    return texts(
        {
            "/proc/sys/kernel/osrelease": "6.12.41+deb13-loong64\n",
            "/proc/sys/kernel/arch": "loongarch64\n",
            "/proc/sys/kernel/version": "#1 SMP Debian 6.12.41-1 (2025-08-12)\n",
            "/proc/cpuinfo": (
                "system type\t\t: generic-loongson-machine\n\nprocessor\t\t: 0\npackage\t\t\t: 0\n"
                "CPU Family\t\t: Loongson-64bit\nModel Name\t\t: Loongson-3A5000\nCPU Revision\t\t: 0x10\n"
                "FPU Revision\t\t: 0x00\nCPU MHz\t\t\t: 2500.00\nISA\t\t\t: loongarch32 loongarch64\n"
                "Features\t\t: cpucfg lam ual fpu lsx lasx crc32 complex crypto lvz\n"
            ),
            "/sys/class/dmi/id/sys_vendor": "Loongson\n",
            f"{CPU}/online": "0-3\n",
            f"{CLOCK}/current_clocksource": "Constant\n",
        }
    )


def busybox() -> Files:
    """A BusyBox system without sysfs: almost nothing."""
    return texts(
        {
            "/proc/sys/kernel/hostname": "(none)\n",
            "/proc/sys/kernel/osrelease": "4.19.0\n",
            "/proc/sys/kernel/version": "#2 Tue Mar 5 2019\n",
        }
    )


def _stat(pid: int, name: str, *, kernel: bool, priority: int, policy: int) -> str:
    """A line of /proc/PID/task/TID/stat."""
    fields = ["0"] * 52
    fields[0], fields[1], fields[2] = str(pid), f"({name})", "S"
    fields[8] = str(0x00208040 if kernel else 0x00400000)
    fields[39], fields[40] = str(priority), str(policy)
    return " ".join(fields) + "\n"


def threads(*given: tuple[int, str, bool, int, int]) -> Files:
    """(process, name, kernel, real-time priority, policy) of each thread."""
    return texts(
        {
            f"/proc/{pid}/task/{pid}/stat": _stat(pid, name, kernel=kernel, priority=rt, policy=policy)
            for pid, name, kernel, rt, policy in given
        }
    )


DEBUG_OFF = "".join(
    f"# CONFIG_{name} is not set\n" for name in ("KASAN", "KCSAN", "PROVE_LOCKING", "KGDB", "RT_GROUP_SCHED")
)


def well_set_rt() -> Files:
    """The same PC, set for real-time: CPUs 1-3 isolated in every way, no deep idle state, everything that
    matters in effect.
    """
    cmdline = (
        "root=/dev/sda1 isolcpus=domain,managed_irq,1-3 nohz_full=1-3 rcu_nocbs=1-3 irqaffinity=0 "
        "skew_tick=1 intel_idle.max_cstate=0"
    )
    files = {
        "/proc/cmdline": (
            f"{cmdline} processor.max_cstate=1 mitigations=off nosmt tsc=nowatchdog nosoftlockup "
            "clocksource=tsc pcie_aspm=off\n"
        ),
        "/proc/swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
        "/proc/timer_list": (
            "Timer List Version: v0.9\n\ncpu: 0\n clock 0:\n  .index:      0\n  .resolution: 1 nsecs\n"
        ),
        "/proc/irq/default_smp_affinity": "1\n",
        "/proc/irq/16/smp_affinity_list": "0\n",
        "/proc/irq/16/effective_affinity_list": "0\n",
        "/sys/kernel/irq/16/actions": "ehci_hcd:usb1\n",
        "/proc/irq/17/smp_affinity_list": "0-3\n",
        "/proc/irq/17/effective_affinity_list": "\n",
        "/sys/kernel/irq/17/actions": "\n",
        "/sys/devices/virtual/workqueue/cpumask": "1\n",
        "/proc/sys/kernel/watchdog_cpumask": "0\n",
        "/proc/sys/kernel/watchdog": "0\n",
        "/proc/sys/kernel/nmi_watchdog": "0\n",
        "/proc/sys/kernel/soft_watchdog": "0\n",
        "/proc/sys/kernel/numa_balancing": "0\n",
        "/proc/sys/kernel/timer_migration": "0\n",
        "/proc/sys/kernel/sched_rt_runtime_us": "-1\n",
        "/proc/sys/vm/compaction_proactiveness": "0\n",
        "/proc/sys/vm/compact_unevictable_allowed": "0\n",
        "/proc/sys/vm/stat_interval": "120\n",
        "/sys/kernel/rcu_normal": "1\n",
        "/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n",
        "/sys/kernel/mm/ksm/run": "2\n",
        "/sys/kernel/tracing/current_tracer": "nop\n",
        "/sys/bus/pci/devices/0000:00:1f.6/power/control": "on\n",
        "/sys/devices/system/machinecheck/machinecheck0/check_interval": "0\n",
        f"{CPU}/isolated": "1-3\n",
        f"{CPU}/nohz_full": "1-3\n",
        f"{CPU}/intel_pstate/no_turbo": "1\n",
        f"{CPU}/vulnerabilities/meltdown": "Vulnerable\n",
        f"{CPU}/vulnerabilities/srbds": "Not affected\n",
        f"{CPU}/cpu0/microcode/version": "0xf0\n",
        "/sys/class/dmi/id/bios_version": "1.24.0\n",
        "/boot/config-6.1.0-28-rt-amd64": "CONFIG_X86_64=y\nCONFIG_PREEMPT_RT=y\nCONFIG_HIGH_RES_TIMERS=y\nCONFIG_CPU_ISOLATION=y\nCONFIG_NO_HZ_FULL=y\n"
        f"CONFIG_RCU_NOCB_CPU=y\nCONFIG_MCORE2=y\nCONFIG_COMPACTION=y\nCONFIG_TRACING=y\n{DEBUG_OFF}",
    }
    cpus: dict[str, str] = {}
    for cpu in range(4):
        cpus[f"{CPU}/cpu{cpu}/cpufreq/scaling_governor"] = "performance\n"
        cpus[f"{CPU}/cpu{cpu}/cpufreq/energy_performance_preference"] = "performance\n"
        cpus[f"{CPU}/cpu{cpu}/topology/physical_package_id"] = "0\n"
        cpus[f"{CPU}/cpu{cpu}/topology/core_id"] = f"{cpu}\n"
        cpus[f"{CPU}/cpu{cpu}/topology/thread_siblings_list"] = f"{cpu}\n"
        for index, (level, shared) in enumerate(((1, cpu), (3, "0-3"))):
            cache = f"{CPU}/cpu{cpu}/cache/index{index}"
            cpus |= {
                f"{cache}/level": f"{level}\n",
                f"{cache}/type": "Unified\n",
                f"{cache}/size": f"{level * 32}K\n",
                f"{cache}/shared_cpu_list": f"{shared}\n",
            }
        for state in range(3):
            cpus[f"{CPU}/cpu{cpu}/cpuidle/state{state}/disable"] = "1\n" if state == 2 else "0\n"
    offloaded = threads(*((20 + cpu, f"rcuop/{cpu}", True, 0, 0) for cpu in (1, 2, 3)))
    running = threads(
        (1, "systemd", False, 0, 0),
        (11, "migration/0", True, 99, 1),
        (15, "migration/1", True, 99, 1),
        (900, "ctl) R 1 (x", False, 80, 2),
    )
    return bare_metal_rt() | texts(files) | texts(cpus) | offloaded | running


def badly_set_rt() -> Files:
    """The same PC, where much was asked for on the command line and nothing of it is in effect."""
    cmdline = (
        "root=/dev/sda1 isolcpus=nohz,1-3 nohz_full=1-3 rcu_nocbs=1-3 irqaffinity=2 "
        "intel_idle.max_cstate=0 idle=halt nosmt mitigations=off clocksource=tsc"
    )
    files = {
        "/proc/cmdline": (
            f"{cmdline} intel_pstate=disable cpufreq.default_governor=performance "
            "transparent_hugepage=never\n"
        ),
        f"{CPU}/isolated": "\n",
        f"{CPU}/nohz_full": "(null)\n",
        f"{CPU}/smt/active": "1\n",
        f"{CPU}/vulnerabilities/meltdown": "Mitigation: PTI\n",
        f"{CLOCK}/current_clocksource": "hpet\n",
        "/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
        "/proc/timer_list": "cpu: 0\n clock 0:\n  .resolution: 4000000 nsecs\n",
        "/proc/irq/default_smp_affinity": "f\n",
        "/sys/kernel/tracing/current_tracer": "function\n",
        "/boot/config-6.1.0-28-rt-amd64": "CONFIG_X86_64=y\nCONFIG_PREEMPT_RT=y\nCONFIG_KASAN=y\nCONFIG_KGDB=y\n",
    }
    return bare_metal_rt() | texts(files) | threads((1, "init", False, 0, 0))
