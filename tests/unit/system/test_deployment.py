# SPDX-License-Identifier: MIT
"""Deployments: their words, which machine can take which, and what is set for each; machines that do not
exist.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.errors import InputError
from rtgauge.record.facts import Idle, Nothing, Processors, Topology
from rtgauge.system.deployment.current import recognise
from rtgauge.system.deployment.definition import (
    NAMED,
    Deployment,
    isolated_cpus,
    kept_cpus,
    parse_deployment,
    split_deployments,
    why_not,
)
from rtgauge.system.deployment.machine_state import MACHINE_PATHS, Machine
from rtgauge.system.deployment.stages import STAGES, Action, Gather, Note, Setting, Write, preview
from rtgauge.target.file_batch import Files
from rtgauge.units import format_cpu_list, format_cpu_mask

CPU = "/sys/devices/system/cpu"
V1 = "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"
V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"


def machine(
    cores: list[list[int]],
    *,
    offline: tuple[int, ...] = (),
    smt: str | None = "on",
    fixed: tuple[int, ...] = (),
    c_states: bool = True,
    mounts: str = V1,
    **more: str,
) -> Machine:
    """A machine of these cores; `fixed` CPUs cannot be switched off."""
    online = sorted(cpu for core in cores for cpu in core)
    files: dict[str, str] = {
        f"{CPU}/online": format_cpu_list(online),
        f"{CPU}/present": format_cpu_list([*online, *offline]),
        "/proc/mounts": "proc /proc proc rw 0 0\n" + mounts,
        "/proc/irq/default_smp_affinity": format_cpu_mask(online),
        "/sys/devices/virtual/workqueue/cpumask": format_cpu_mask(online),
        "/proc/sys/kernel/timer_migration": "1",
        "/proc/sys/kernel/sched_rt_runtime_us": "950000",
        "/proc/irq/8/smp_affinity_list": format_cpu_list(online),
        "/proc/irq/9/smp_affinity_list": str(online[0]),
        "/sys/fs/cgroup/cpuset/cpuset.mems": "0",
        "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance": "1",
        "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory",
    }
    if smt is not None:
        files[f"{CPU}/smt/control"] = smt
    for core in cores:
        for cpu in core:
            files[f"{CPU}/cpu{cpu}/topology/thread_siblings_list"] = format_cpu_list(core)
            files[f"{CPU}/cpu{cpu}/cpufreq/scaling_governor"] = "powersave"
            for state, latency in ((0, "0"), (1, "2"), (2, "100")) if c_states else ():
                files[f"{CPU}/cpu{cpu}/cpuidle/state{state}/latency"] = latency
                files[f"{CPU}/cpu{cpu}/cpuidle/state{state}/disable"] = "0"
    for cpu in {*online, *offline} - {0} - set(fixed):
        files[f"{CPU}/cpu{cpu}/online"] = "0" if cpu in offline else "1"
    return Machine(Files({path: {"text": f"{text}\n"} for path, text in (files | more).items()}))


DELGADO = [[0, 2], [1, 3]]
"""The paper's processor: two cores of two threads."""


def written(actions: list[Action]) -> dict[str, str]:
    return {
        setting.path: setting.value
        for action in actions
        if isinstance(action, Write)
        for setting in action.settings
    }


def test_the_six_are_those_of_the_paper() -> None:
    table = {"CHM": "YYYN4", "HM": "NYYN4", "HMI": "NYYY4", "M": "NNYN2", "MI": "NNYY2", "Single": "NNNN1"}
    here = machine(DELGADO)
    for name, row in table.items():
        item = NAMED[name]
        features = [item.c_states == "on", item.smt == "on", item.cores == "all", item.isolates]
        assert (
            "".join("Y" if feature else "N" for feature in features) + str(len(kept_cpus(item, here))) == row
        )
        assert why_not(item, here) is None


@pytest.mark.parametrize(("name", "isolated"), [("CHM", []), ("HMI", [1, 2, 3]), ("MI", [1]), ("Single", [])])
def test_all_but_the_first_cpu_are_isolated(name: str, isolated: list[int]) -> None:
    assert isolated_cpus(NAMED[name], machine(DELGADO)) == isolated


def test_words_are_read_in_any_order_and_written_in_one() -> None:
    item = parse_deployment(" isolate=3,1-2, c-states=off ,cores=all")
    assert item == parse_deployment(item.name)
    assert item.name == item.words == "c-states=off,cores=all,isolate=1-3"
    assert parse_deployment("hmi") is NAMED["HMI"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("HMX", "did you mean"),
        ("", "unknown deployment"),
        ("c-states=maybe", "on or off"),
        ("cores=0", "at least 1"),
        ("cores=two", "at least 1"),
        ("isolate=5-1", "isolate"),
        ("isolate=", "isolate"),
        ("smt=on,smt=off", "twice"),
        ("sped=on", "unknown setting"),
        ("governor=../x", "governor"),
        ("=", "unknown setting"),
    ],
)
def test_wrong_settings_are_refused_with_a_reason(text: str, part: str) -> None:
    with pytest.raises(InputError, match=part):
        parse_deployment(text)


@given(st.text(max_size=60))
def test_any_text_is_a_deployment_or_an_input_error(text: str) -> None:
    with contextlib.suppress(InputError):
        assert parse_deployment(parse_deployment(text).name) == parse_deployment(text)


def test_a_list_of_deployments_keeps_sets_of_words_together() -> None:
    assert split_deployments("HM,MI,single") == ["HM", "MI", "single"]
    assert split_deployments("HM,c-states=off,isolate=1,3;cores=1") == [
        "HM",
        "c-states=off,isolate=1,3",
        "cores=1",
    ]
    assert split_deployments("as-is") == ["as-is"]


@pytest.mark.parametrize(
    ("name", "here", "reason"),
    [
        ("HM", machine([[0], [1]], smt="notsupported"), "only one thread"),
        ("HMI", machine([[0], [1]], smt="forceoff"), "disabled permanently at boot"),
        ("CHM", machine(DELGADO, c_states=False), "no C-state"),
        ("M", machine([[0]], smt=None), "single core"),
        ("MI", machine([[0, 1]]), "single core"),
        ("Single", machine([[0], [1]], smt=None, fixed=(1,)), "cannot be taken offline"),
        ("M", machine(DELGADO, smt=None, fixed=(2, 3)), "cannot be taken offline"),
        ("MI", machine(DELGADO, mounts=""), "the cpuset controller, which is not mounted"),
        (
            "MI",
            machine(DELGADO, **{"/sys/fs/cgroup/cpuset/docker/cpuset.cpus": "0-3"}),
            "cpuset /docker uses CPU 1",
        ),
        (
            "MI",
            machine(DELGADO, **{"/sys/fs/cgroup/cpuset/rtgauge-isolated/cpuset.cpus": "1"}),
            "earlier deployment",
        ),
        ("cores=3", machine(DELGADO), "2 core"),
        ("isolate=7", machine(DELGADO), "is offline"),
        ("cores=1,isolate=1", machine(DELGADO, smt="off"), "is offline"),
        ("isolate=0-3", machine(DELGADO), "every CPU would be isolated"),
    ],
)
def test_the_reason_why_a_machine_does_not_support_a_deployment(
    name: str, here: Machine, reason: str
) -> None:
    cannot = why_not(parse_deployment(name), here)
    assert cannot is not None
    assert reason in cannot.reason
    assert cannot.remedy


def test_smt_that_is_off_may_be_switched_on() -> None:
    here = machine([[0], [1]], offline=(2, 3), smt="off")
    assert why_not(NAMED["HM"], here) is None
    assert written(preview(NAMED["HM"], here))[f"{CPU}/smt/control"] == "on"


def test_single_switches_threads_off_and_then_cores() -> None:
    here = machine(DELGADO)
    assert written(STAGES[1](NAMED["Single"], here)) == {f"{CPU}/smt/control": "off"}
    without_threads = machine([[0], [1]], offline=(2, 3), smt="off")
    assert written(STAGES[2](NAMED["Single"], without_threads)) == {f"{CPU}/cpu1/online": "0"}


def test_without_a_control_file_threads_go_off_one_by_one() -> None:
    assert written(STAGES[1](NAMED["M"], machine(DELGADO, smt=None))) == {
        f"{CPU}/cpu2/online": "0",
        f"{CPU}/cpu3/online": "0",
    }


def test_cores_that_are_offline_come_back_for_all() -> None:
    here = machine([[0], [1]], offline=(2, 3), smt="notsupported")
    assert written(STAGES[2](NAMED["M"], here)) == {f"{CPU}/cpu2/online": "1", f"{CPU}/cpu3/online": "1"}
    assert written(STAGES[2](parse_deployment("c-states=off"), here)) == {}


@pytest.mark.parametrize(("name", "value"), [("CHM", "0"), ("HM", "1")])
def test_c_states_are_all_but_polling(name: str, value: str) -> None:
    here = machine(DELGADO)
    states = {
        path: expected
        for path, expected in written(STAGES[3](NAMED[name], here)).items()
        if "cpuidle" in path
    }
    expected_value = {
        f"{CPU}/cpu{cpu}/cpuidle/state{state}/disable": "1" for cpu in range(4) for state in (1, 2)
    }
    assert states == (expected_value if value == "1" else {})  # they are on already


def test_isolation_by_version_1() -> None:
    actions = STAGES[4](NAMED["MI"], machine([[0], [1], [2]], smt="notsupported"))
    group, others = "/sys/fs/cgroup/cpuset/rtgauge-isolated", "/sys/fs/cgroup/cpuset/rtgauge-others"
    values = written(actions)
    assert (
        values[f"group:{group}"],
        values[f"{group}/cpuset.cpus"],
        values[f"{group}/cpuset.cpu_exclusive"],
    ) == ("present", "1-2", "1")
    assert (
        values[f"{group}/cpuset.sched_load_balance"],
        values["/sys/fs/cgroup/cpuset/cpuset.sched_load_balance"],
    ) == ("0", "0")
    assert (values[f"{others}/cpuset.cpus"], values[f"{others}/cpuset.mems"]) == ("0", "0")
    assert Gather(others) in actions
    assert (values["/proc/irq/8/smp_affinity_list"], values["/proc/irq/default_smp_affinity"]) == ("0", "1")
    assert "/proc/irq/9/smp_affinity_list" not in values
    assert values["/proc/sys/kernel/timer_migration"] == "0"
    # a group has to be there before its files are read: they are not written by the same call
    for action in actions:
        if isinstance(action, Write):
            assert len({setting.path.startswith("group:") for setting in action.settings}) == 1


def test_isolation_by_version_2_is_a_partition() -> None:
    actions = STAGES[4](NAMED["MI"], machine([[0], [1], [2]], smt="notsupported", mounts=V2))
    group = "/sys/fs/cgroup/rtgauge-isolated"
    values = written(actions)
    assert values["controller:cpuset:/sys/fs/cgroup"] == "on"
    assert (values[f"{group}/cpuset.cpus"], values[f"{group}/cpuset.cpus.partition"]) == ("1-2", "isolated")
    assert not any(isinstance(action, Gather) for action in actions)


@pytest.mark.parametrize(
    ("file", "by_kernel"), [({}, False), ({"/sys/fs/cgroup/cpuset.cpus.isolated": ""}, True)]
)
def test_workqueues_are_moved_only_if_the_kernel_does_not(file: dict[str, str], *, by_kernel: bool) -> None:
    values = written(STAGES[4](NAMED["MI"], machine([[0], [1]], smt="notsupported", mounts=V2, **file)))
    assert values["/proc/irq/default_smp_affinity"] == "1"
    assert ("/sys/devices/virtual/workqueue/cpumask" in values) is not by_kernel


def test_only_interrupts_and_their_like_may_refuse() -> None:
    for action in preview(NAMED["HMI"], machine(DELGADO)):
        for item in action.settings if isinstance(action, Write) else ():
            place = item.path.removeprefix(CPU)
            assert item.essential is (
                place.startswith(("group:", "controller:", "/sys/fs/cgroup"))
                or "cpuidle" in place
                or place.endswith(("online", "control"))
            )


def thread(tid: int, cpus: str, flags: int = 0) -> dict[str, str]:
    """The stat and status of a thread with these CPUs."""
    stat = f"{tid} (a (b) c) S 1 1 1 0 -1 {flags} " + "0 " * 12 + "4711 " + "0 " * 30
    return {
        f"/proc/{tid}/task/{tid}/stat": stat,
        f"/proc/{tid}/task/{tid}/status": f"Name:\ta\nCpus_allowed_list:\t{cpus}\n",
    }


def test_what_hotplug_erases_is_noted_before() -> None:
    groups = {"/sys/fs/cgroup/cpuset/a/cpuset.cpus": "0-3", "/sys/fs/cgroup/cpuset/a/b/cpuset.cpus": "3"}
    more = (
        thread(50, "3")
        | thread(51, "0-3")
        | thread(52, "0")
        | thread(53, "1-3", 0x04000000)
        | thread(54, "0-1")
    )
    (note,) = STAGES[0](parse_deployment("smt=off"), machine(DELGADO, **groups, **more))
    assert isinstance(note, Note)
    paths = list(note.paths)
    assert "thread:50:4711:affinity" in paths
    assert "thread:51:4711:affinity" not in paths  # everywhere it may be
    assert "thread:53:4711:affinity" not in paths  # the kernel's own, which it looks after
    assert "/proc/irq/8/smp_affinity_list" in paths
    assert "/proc/irq/9/smp_affinity_list" not in paths
    # put back from the end: the CPUs first, and a group before those below it
    order = [
        next(i for i, path in enumerate(paths) if part in path)
        for part in ("thread:50", "/a/b/cpuset", "/a/cpuset", "cpu3/online")
    ]
    assert order == sorted(order)


@given(
    name=st.sampled_from([*NAMED, "isolate=1", "cores=1", "c-states=off,isolate=all"]),
    files=st.dictionaries(
        st.sampled_from(
            [path.replace("[0-9]*", "1") for path in MACHINE_PATHS]
            + ["/proc/1/task/1/stat", "/proc/1/task/1/status", f"{CPU}/cpu0/online"]
        ),
        st.one_of(
            st.builds(lambda text: {"text": text}, st.text(max_size=40)),
            st.builds(
                lambda text: {"text": text},
                st.sampled_from(["0-1", "1", "0", "0-1,4", "on", "off", V1, V2, "99999"]),
            ),
            st.just({"error": "EACCES"}),
        ),
        max_size=12,
    ),
)
def test_any_machine_is_looked_at_without_failing(name: str, files: dict[str, Any]) -> None:
    here = Machine(Files(files))
    deployment = parse_deployment(name)
    if why_not(deployment, here) is None:
        for action in preview(deployment, here):
            assert isinstance(action, Note | Write | Gather)
    list(here.bound_threads())


@pytest.mark.parametrize(
    ("cpus", "text"),
    [
        ([0], "1"),
        ([0, 1, 2, 3], "f"),
        ([33], "2,00000000"),
        ([0, 31, 32], "1,80000001"),
        ([64], "1,00000000,00000000"),
    ],
)
def test_masks_are_written_as_the_kernel_takes_them(cpus: list[int], text: str) -> None:
    assert format_cpu_mask(cpus) == text


def cpu_facts(deepest: int | Nothing | None, threads: int, cores: int, isolated: str) -> Processors:
    return Processors(
        idle=Idle(deepest_latency_us=deepest),
        topology=Topology(threads_per_core=threads, cores=cores),
        isolated=isolated,
        smt_active=threads > 1,
    )


@pytest.mark.parametrize(
    ("facts", "name", "six"),
    [
        (cpu_facts(100, 2, 2, ""), "CHM", True),
        (cpu_facts(0, 2, 2, ""), "HM", True),
        (cpu_facts("none", 2, 2, "1-3"), "HMI", True),
        (cpu_facts(0, 1, 2, ""), "M", True),
        (cpu_facts(0, 1, 2, "1"), "MI", True),
        (cpu_facts(0, 1, 1, ""), "Single", True),
        (cpu_facts(1, 1, 2, ""), "CM", False),
        (cpu_facts(None, 1, 2, ""), None, None),
    ],
)
def test_the_deployment_of_a_machine_is_recognised(
    facts: Processors, name: str | None, six: bool | None
) -> None:
    actual = recognise(facts, None)
    assert (actual.name, actual.of_the_six) == (name, six)


def test_settings_that_are_so_already_are_not_written() -> None:
    here = machine(DELGADO, **{"/proc/sys/kernel/sched_rt_runtime_us": "-1"})
    assert "/proc/sys/kernel/sched_rt_runtime_us" not in written(STAGES[3](NAMED["HM"], here))
    assert Setting("/proc/sys/kernel/sched_rt_runtime_us", "950000", essential=False) in next(
        action.settings
        for action in STAGES[3](Deployment("t", throttling="on"), here)
        if isinstance(action, Write)
    )
