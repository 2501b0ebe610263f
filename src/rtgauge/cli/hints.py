# SPDX-License-Identifier: MIT
"""Leads from words that people try first to the commands and options of rtgauge."""

from __future__ import annotations

from collections.abc import Collection

from rtgauge.extension import extensions

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
    "rtgauge probe wakeup --space kernel": "timerlat rtla",
    "rtgauge probe noise": "osnoise oslat hwlatdetect hwlat hwnoise smi",
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
    "rtgauge show latest --details": "details verbose",
    "rtgauge show latest --json": "json",
    "rtgauge list": "ls results records runs dir",
    "rtgauge compare A B": "diff cmp versus vs against",
    "rtgauge gate --baseline A --candidate B": "ci regression regress ab baseline candidate",
    "rtgauge restore": (
        "undo reset revert rollback unlock release clean cleanup unisolate stop kill abort cancel"
    ),
    "rtgauge resume": "continue restart retry",
    "rm -r with the folder of a record": "rm remove delete del",
    "rtgauge export": "csv dump write parquet junit",
    "rtgauge marks NAME": "mark doubt doubts glossary",
    "rtgauge run --load cpu": "load loads stress stress-ng hackbench hog noise-load",
    "rtgauge help run": "plan plans preset presets",
    "rtgauge run --target ssh://USER@HOST": "remote ssh host target rpi raspberry-pi raspberrypi pi",
    "rtgauge run inside the container": "docker podman container",
    "rtgauge help": "man manual usage docs tutorial",
    "rtgauge --version": "version about",
    "rtgauge help all": "commands all",
}
"""What rtgauge calls it -> the words that people try instead. Extensions add to them."""
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
    "--wait TIME": "queue block",
    "--boot each-run": "boot-between",
    "--boot each-deployment": "deployments-by reboot",
    "--live=ADDRESS:PORT": "live-at",
    "rtgauge resume RECORD": "resume",
    "--explain": "why trace tracing",
    "--details": "verbose full long all",
}
"""Option -> the words that people try instead. Of several options, a command's own is preferred."""


def command_of(word: str) -> str | None:
    """Return what rtgauge calls what a word stands for; None if it is unknown. An extension's own comes
    before the core's.
    """
    named = [COMMANDS, *(extension.words for extension in extensions())]
    return next((what for each in reversed(named) for what in each if word in each[what].split()), None)


def way_out(typed: str) -> str | None:
    """Return what to do instead of a command or option of an earlier build; None if it never existed."""
    return next((each.gone[typed] for each in extensions() if typed in each.gone), None)


def option_of(word: str, known: Collection[str]) -> str | None:
    """Return the option that a word stands for, if possible one of the options that a command knows."""
    matching = [option for option, words in OPTIONS.items() if word in words.split()]
    own = [option for option in matching if option.partition(" ")[0] in known]
    return next(iter([*own, *matching]), None)
