# SPDX-License-Identifier: MIT
"""Leads from words that people try first to the commands and options of rtgauge."""

from __future__ import annotations

from collections.abc import Collection

COMMANDS = {
    "rtgauge run": (
        "bench benchmark measure record sample start go new init rteval jitterdebugger soak endurance"
    ),
    'rtgauge run --require "period=1ms latency<=200us"': (
        "check test verify validate deadline deadlines ok pass threshold bound limit requirement "
        "require qualify certify score grade judge"
    ),
    "rtgauge run or rtgauge probe wakeup": (
        "latency latencies cyclictest cyclicdeadline wakeups wake wake-up rt-tests hist histogram signaltest"
    ),
    "rtgauge probe periodic or rtgauge run": "jitter period cycle",
    "rtgauge probe wakeup --space kernel": "timerlat rtla",
    "rtgauge probe noise": "osnoise oslat hwlatdetect hwlat hwnoise smi",
    "rtgauge run path --peer HOST": "ping fping roundtrip rtt isochron rtc-testbench",
    "rtgauge probe response": "gpio latmus latmon",
    "rtgauge probe response --path loop:mqueue": "pmqtest",
    "rtgauge probe semaphore": "ptsematest svsematest mutex futex lock",
    "rtgauge probe inversion": "pi_stress pi-stress pip priority-inversion",
    "rtgauge probe switch": "lmbench lat_ctx context-switch",
    "rtgauge probe": "probes sensors",
    "rtgauge watch -- CMD or rtgauge watch --pid PID": (
        "monitor top loop attach follow trace strace perf profile observe pid spy live ps ros ros2 "
        "ethercat control"
    ),
    "rtgauge show latest": (
        "view cat print summary result last info-record verdict stats statistics log worst max p99 p99.9 tail"
    ),
    "rtgauge show latest --page": (
        "open report html page plot graph gui web browser dashboard figure figures chart pdf png svg"
    ),
    "rtgauge show latest --why": "why explain cause culprit culprits reason blame analyze debug spike",
    "rtgauge run --explain, then rtgauge show latest --why": "ftrace trace-cmd tracefs bpftrace kernelshark",
    "rtgauge show latest --frequency": "frequency rate max-rate",
    "rtgauge show latest --details": "details verbose",
    "rtgauge show latest --json": "json",
    "rtgauge audit": (
        "doctor lint diagnose health inspect advice tips config settings sysctl governor cstates "
        "c-states preempt-rt preempt_rt kconfig"
    ),
    "rtgauge audit --facts": "system info sysinfo facts uname hardware machine status env cpu cpus kernel",
    "rtgauge list": "ls results records runs dir",
    "rtgauge compare A B": "diff cmp versus vs against",
    "rtgauge gate --baseline A --candidate B": "ci regression regress ab baseline candidate",
    "rtgauge bisect": "bisection git-bisect culprit-commit",
    "rtgauge tune": "optimize optimise fix improve autotune optimizer setup harden configure",
    "rtgauge deploy": (
        "isolate isolcpus partition shield affinity pin cpuset taskset cores cset irq irqs "
        "irqbalance smp_affinity nohz nohz-full nohz_full rcu rcu-nocbs rcu_nocbs"
    ),
    "rtgauge restore": (
        "undo reset revert rollback unlock release clean cleanup unisolate stop kill abort cancel"
    ),
    "rtgauge resume": "continue restart retry",
    "rtgauge store history SERIES": "history trend timeline",
    "rtgauge store add RECORD": "db database archive save upload push keep",
    "rm -r with the folder of a record, or rtgauge store rm RECORD": "rm remove delete del",
    "rtgauge store site": "site publish website",
    "rtgauge sched SET.toml": "schedulability rta wcrt wcet edf utilization analysis schedule",
    "rtgauge import": "read convert parse load-file",
    "rtgauge export": "csv dump write parquet junit perfetto metrics prometheus openmetrics grafana",
    "rtgauge marks NAME": "mark doubt doubts glossary",
    "rtgauge run --load cpu": "load loads stress stress-ng hackbench hog noise-load",
    "rtgauge lab": "vm qemu guest virtual boot",
    "rtgauge fleet PLAN": "farm board boards multi",
    "rtgauge help run": "plan plans preset presets",
    "rtgauge deploy cmdline": "cmdline bootparams boot-parameters",
    "rtgauge run --live": "server serve",
    "rtgauge run --target ssh://USER@HOST": "remote ssh host target rpi raspberry-pi raspberrypi pi",
    "rtgauge run inside the container": "docker podman container",
    "rtgauge help": "man manual usage docs tutorial",
    "rtgauge --version": "version about",
    "rtgauge help all": "commands all",
}
"""What rtgauge calls it -> the words that people try instead."""
COMMAND_OF_WORD = {word: command for command, words in COMMANDS.items() for word in words.split()}
OPTIONS = {
    "--load NAMES": "loads stress background workload",
    "--within DURATION": "larger-than",
    "--stop-at TIME of a probe, or --set stop-at=TIME of run": "breaktrace break trace-stop stop",
    "--duration TIME": "time length runtime seconds for timeout",
    "--interval TIME": "period rate freq frequency cycle interval-us",
    "--period TIME": "interval rate cycle-time deadline-period",
    "--set space=kernel": "kernel-space kernel",
    "--baseline A": "old base reference before from",
    "--candidate B": "new cand after to",
    "--cpu CPUS": "cpus core cores affinity cpulist",
    "--priority N": "prio rtprio",
    "--policy NAME": "sched scheduler fifo",
    "--target NAME": "host ssh remote machine board user port ip address",
    "--repeats N": "repeat iterations times count-runs",
    "--out DIR": "output dir folder directory",
    "--page FILE": "html report-file graph plot figure chart svg png",
    "--json": "format machine-readable quiet",
    "rtgauge export RECORD": "csv histogram histfile",
    "--pid PID": "watch process attach",
    "--program NAME": "name comm process-name exe",
    '--require "latency<=200us"': "max limit bound threshold max-latency latency requirement target-latency",
    "--larger-than PERCENT": (
        "tolerance threshold-percent min-change max-regression regression max-change fail-under "
        "fail-on fail-above"
    ),
    "--side NAME=RECORD": "label before after",
    "--about SETTING": "describe",
    "--wait TIME": "queue block",
    "--boot each-run": "boot-between",
    "--boot each-deployment": "deployments-by reboot",
    "--live=ADDRESS:PORT": "live-at",
    "rtgauge resume RECORD": "resume",
    "--explain": "why trace tracing",
    "--details": "verbose full long all",
}
"""Option -> the words that people try instead. Of several options, a command's own is preferred."""


def option_of(word: str, known: Collection[str]) -> str | None:
    """Return the option that a word stands for, if possible one of the options that a command knows."""
    found = [option for option, words in OPTIONS.items() if word in words.split()]
    own = [option for option in found if option.partition(" ")[0] in known]
    return next(iter([*own, *found]), None)
