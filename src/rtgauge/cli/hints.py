# SPDX-License-Identifier: MIT
"""Leads from words that people try first to the commands and options of rtgauge."""

from __future__ import annotations

COMMANDS = {
    "rtgauge run": "bench benchmark measure record sample start stress go record",
    'rtgauge run --require "period=1ms latency<=200us"': "check test verify deadline deadlines ok pass",
    "rtgauge run or rtgauge probe wakeup": (
        "latency latencies cyclictest wakeups wake wake-up rt-tests hist histogram signaltest"
    ),
    "rtgauge probe periodic or rtgauge run": "jitter period cycle",
    "rtgauge probe wakeup --space kernel": "timerlat rtla",
    "rtgauge probe noise": "osnoise oslat hwlatdetect hwlat hwnoise smi",
    "rtgauge probe response": "ping roundtrip rtt",
    "rtgauge watch -- CMD or rtgauge watch --pid PID": (
        "monitor top loop attach follow trace strace perf profile observe pid spy live"
    ),
    "rtgauge show latest": "view cat print summary result last info-record verdict stats statistics log",
    "rtgauge show latest --page": "open report html page plot graph gui web browser dashboard figure chart",
    "rtgauge show latest --why": "why explain cause culprit culprits reason blame analyze debug spike",
    "rtgauge show latest --frequency": "frequency rate max-rate",
    "rtgauge audit": "doctor lint diagnose health inspect advice tips",
    "rtgauge audit --facts": "system info sysinfo facts uname hardware machine status env",
    "rtgauge list": "ls results records runs dir",
    "rtgauge compare A B": "diff cmp versus vs against",
    "rtgauge gate --baseline A --candidate B": "ci regression regress ab",
    "rtgauge tune": "optimize optimise fix improve autotune optimizer setup harden configure",
    "rtgauge deploy": "isolate isolcpus partition shield affinity pin cpuset taskset cores cset",
    "rtgauge restore": "undo reset revert rollback unlock release clean cleanup unisolate",
    "rtgauge resume": "continue restart retry",
    "rtgauge store history SERIES": "history trend timeline",
    "rtgauge store": "db database archive save",
    "rtgauge store site": "site publish website",
    "rtgauge sched SET.toml": "schedulability rta wcrt analysis schedule",
    "rtgauge import": "read convert parse load-file",
    "rtgauge export": "csv dump write json",
    "rtgauge marks NAME": "mark doubt doubts glossary",
    "rtgauge run --load cpu": "load loads stress-ng hackbench",
    "rtgauge lab": "vm qemu guest virtual",
    "rtgauge fleet PLAN": "farm boards multi",
    "rtgauge help": "man manual usage docs tutorial",
    "rtgauge --version": "version about",
    "rtgauge help all": "commands all",
}
"""What rtgauge calls it -> the words that people try instead."""
COMMAND_OF_WORD = {word: command for command, words in COMMANDS.items() for word in words.split()}
OPTIONS = {
    "--load NAMES": "loads stress background workload",
    "--duration TIME": "time length runtime seconds for timeout",
    "--interval TIME": "period rate freq frequency cycle interval-us",
    "--cpu CPUS": "cpus core cores affinity cpulist",
    "--priority N": "prio rtprio",
    "--policy NAME": "sched scheduler fifo",
    "--target NAME": "host ssh remote machine board",
    "--repeats N": "repeat iterations times count-runs",
    "--out DIR": "output dir folder directory",
    "--page FILE": "html report-file",
    "--json": "format machine-readable",
    "--pid PID": "watch process attach",
    "--program NAME": "name comm process-name exe",
    '--require "latency<=200us"': "max limit bound threshold max-latency requirement target-latency",
    "--larger-than PERCENT": "tolerance threshold-percent min-change",
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
"""Option -> the words that people try instead."""
OPTION_OF_WORD = {word: option for option, words in OPTIONS.items() for word in words.split()}
