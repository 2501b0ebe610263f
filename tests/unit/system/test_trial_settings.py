# SPDX-License-Identifier: MIT
"""What is written so that a machine keeps a rule of the audit."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest

from rtgauge.errors import HungError, InputError
from rtgauge.system.deployment.apply import Refused, apply
from rtgauge.system.deployment.definition import parse_deployment
from rtgauge.system.deployment.machine_state import NO_SETAFFINITY, Machine
from rtgauge.system.deployment.stages import Write, preview
from rtgauge.system.deployment.trial_settings import trial_paths, trial_settings
from rtgauge.system.rules import tried_rules
from rtgauge.target.target import Target

THP = "/sys/kernel/mm/transparent_hugepage/enabled"


def machine(**files: str) -> Machine:
    """Four CPUs; the names of files have `__` for a slash."""
    paths = {name.replace("__", "/"): text for name, text in files.items()}
    paths["/sys/devices/system/cpu/online"] = "0-3"
    return Machine({path: {"text": f"{text}\n"} for path, text in paths.items()})


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
    assert set(trial_paths(deployment.rules)) == {THP, "/sys/devices/virtual/workqueue/cpumask"}
    now = machine(**{THP.replace("/", "__"): "[always] madvise never"})
    (write,) = preview(deployment, now)
    assert isinstance(write, Write)
    assert {setting.path: setting.value for setting in write.settings} == {THP: "never"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("settings=thpp", "has no 'thpp'; did you mean 'thp'?"),
        ("settings=c-states", "has no 'c-states'"),
        ("settings=workqueues", "name them (rt-cpus=1)"),
        ("settings=thp,rt-cpus=x", "CPUs like 1 or 2-3"),
    ],
)
def test_a_wrong_setting_is_refused(text: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_deployment(text)
    assert why in str(caught.value)


def test_no_trial_touches_what_the_owner_needs() -> None:
    """The network, the console, thermal limits and the root disk: by the folders that the kernel has them
    in.
    """
    forbidden = (
        "/sys/class/net/*",
        "/proc/sys/net/*",
        "*/tty*",
        "/proc/sys/kernel/printk*",
        "/sys/class/thermal/*",
        "*/thermal_throttle/*",
        "*/hwmon/*",
        "/sys/block/*",
        "/sys/class/block/*",
    )
    for rule in tried_rules().values():
        for setting in rule.trial.set if rule.trial is not None else []:
            assert not any(fnmatch.fnmatch(setting.file or "", pattern) for pattern in forbidden), rule.id


def test_a_rule_only_conflicts_with_rules_that_are_tried() -> None:
    for rule in tried_rules().values():
        assert rule.trial is not None
        assert set(rule.trial.conflicts) <= set(tried_rules())


class Hanging:
    """A target on which a setting hangs."""

    def __init__(self, files: Mapping[str, Any]) -> None:
        self.files, self.verbs = files, list[str]()

    def read(self, paths: Iterable[str]) -> Mapping[str, Any]:
        return self.files if paths else {}

    def agent(self, verb: str, *arguments: str) -> list[dict[str, Any]]:
        self.verbs.append(verb)
        if verb == "set":
            raise HungError(f"the engine's verb {verb} did not end: {arguments}")
        return []


def test_a_setting_that_hangs_is_refused_and_put_back() -> None:
    target = Hanging(machine(**{THP.replace("/", "__"): "always [madvise] never"}).raw)
    with pytest.raises(Refused, match="a setting hung"):
        apply(parse_deployment("settings=thp"), cast("Target", target))
    assert target.verbs == ["set", "restore"]
