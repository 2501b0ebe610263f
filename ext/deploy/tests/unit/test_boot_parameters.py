# SPDX-License-Identifier: MIT
"""Deployments by booting: what a machine is booted with, whether it can be, and whether it then is what was
asked; machines that do not exist.
"""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.system.test_deployment import DELGADO, machine

from rtgauge.errors import InputError
from rtgauge.record.facts import Idle, Nothing, Processors
from rtgauge.system.deployment.definition import NAMED, Deployment, parse_deployment, why_not
from rtgauge.target.file_batch import Files
from rtgauge_ext.deploy.boot_parameters import (
    boot_words,
    command_line,
    differs,
    knows_nohz_full,
    left_to_set,
    not_in_effect,
    other_words,
    why_not_by_boot,
)

GUEST = [[0, 1], [2, 3]]
X86, ARM = "x86_64", "aarch64"


def cpu(online: str, isolated: str = "", nohz_full: str = "", deepest: int | Nothing = "none") -> Processors:
    """That part of the facts."""
    return Processors(
        online=online, isolated=isolated, nohz_full=nohz_full, idle=Idle(deepest_latency_us=deepest)
    )


def test_where_there_are_no_c_states_no_words_are_spent_on_them() -> None:
    assert boot_words(NAMED["M"], machine(GUEST, c_states=False), X86) == [
        "nosmt",
        "cpufreq.default_governor=performance",
    ]
    assert "idle=poll" in boot_words(NAMED["M"], machine(GUEST), X86)


@pytest.mark.parametrize(
    ("name", "cores", "expected"),
    [
        ("CHM", GUEST, "this kernel has no C-state"),
        ("HM", [[0], [1]], "only one thread"),
        ("M", [[0]], "a single core"),
        ("cores=3", GUEST, "the machine has only 2 cores"),
        ("smt=off,isolate=1", GUEST, "CPU 1 should be isolated, but is offline in this deployment"),
        ("isolate=0-3", GUEST, "one must remain"),
        ("HM", GUEST, None),
        ("MI", GUEST, None),
        ("Single", GUEST, None),
    ],
)
def test_what_a_guest_cannot_be_booted_for(name: str, cores: list[list[int]], expected: str | None) -> None:
    cannot = why_not_by_boot(
        parse_deployment(name),
        machine(cores, c_states=False, smt="on" if len(cores[0]) > 1 else "notsupported"),
        X86,
    )
    assert cannot is None if expected is None else cannot is not None and expected in cannot.reason


def test_what_only_stands_in_the_way_of_settings_does_not_matter() -> None:
    fixed = machine(GUEST, fixed=(1, 2, 3), mounts="")
    assert why_not(NAMED["Single"], fixed) is not None
    assert why_not_by_boot(NAMED["Single"], fixed, X86) is None
    assert why_not_by_boot(NAMED["MI"], fixed, X86) is None


@pytest.mark.parametrize(
    ("name", "now", "expected"),
    [
        ("M", cpu("0,2"), None),
        ("M", cpu("0-3"), "the CPUs 0-3 are online, but the deployment needs 0,2"),
        ("MI", cpu("0,2", "2"), None),
        ("MI", cpu("0,2"), "no CPU is isolated, but the deployment isolates 2"),
        ("M", cpu("0,2", "2"), "the isolated CPUs are 2, but the deployment does not isolate any"),
        ("HM", cpu("0-3", deepest=100), "a C-state with an exit latency of 100 us"),
        ("HM", cpu("0-3", deepest=0), None),
        ("governor=performance", cpu("0-3", "1", deepest=100), None),
        ("as-is", cpu("0"), None),
    ],
)
def test_the_booted_machine_is_compared_with_the_deployment(
    name: str, now: Processors, expected: str | None
) -> None:
    reported = differs(parse_deployment(name), machine(GUEST), now)
    assert reported is None if expected is None else reported is not None and expected in reported


def test_what_boot_parameters_cannot_do_is_left_to_set() -> None:
    assert left_to_set(NAMED["MI"]) == Deployment("MI", governor="performance", throttling="off")


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("quiet idle=poll", "quiet idle=poll"),
        ("quiet maxcpus=1 threadirqs", "quiet threadirqs"),
        ("intel_idle.max_cstate=0 processor.max_cstate=1 idle=poll quiet", "quiet"),
        ("xenomai.supported_cpus=0x2 xenomai.smi=disabled", "xenomai.smi=disabled"),
        ("", ""),
    ],
)
def test_which_words_of_a_guest_make_no_deployment(words: str, kept: str) -> None:
    assert other_words(words.split()) == kept.split()


@given(st.sampled_from(sorted(NAMED)))
def test_no_word_of_a_deployment_is_taken_for_another(name: str) -> None:
    with contextlib.suppress(InputError):
        assert other_words(boot_words(parse_deployment(name), machine([[0, 1], [2, 3]]), "x86_64")) == []


def test_a_kernel_without_nohz_full_is_reported() -> None:
    words = boot_words(NAMED["MI"], machine(GUEST, c_states=False), X86)
    assert not_in_effect(words, cpu("0,2", "2", "2")) == []
    assert not_in_effect(words, cpu("0,2", "2", "")) == ["nohz_full=2"]
    assert not_in_effect(["nosmt"], cpu("0,2")) == []


@given(
    cores=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    name=st.sampled_from([*NAMED, "cores=2", "isolate=1", "smt=off,cores=1", "isolate=1-3,smt=off"]),
    architecture=st.sampled_from([X86, ARM]),
    c_states=st.booleans(),
)
def test_whatever_can_be_booted_has_words_that_a_kernel_takes(
    cores: list[int], name: str, architecture: str, c_states: bool
) -> None:
    starts = [sum(cores[:i]) for i in range(len(cores))]
    here = machine(
        [list(range(start, start + n)) for start, n in zip(starts, cores, strict=True)], c_states=c_states
    )
    deployment = parse_deployment(name)
    if why_not_by_boot(deployment, here, architecture) is None:
        assert all(
            word.isprintable() and " " not in word for word in boot_words(deployment, here, architecture)
        )
    else:
        with contextlib.suppress(InputError):
            boot_words(deployment, here, architecture)


def test_rules_that_take_a_boot_become_their_parameters() -> None:
    deployment = parse_deployment("boot=skew-tick,threaded-interrupts,isolate=1")
    assert deployment.boot == "threaded-interrupts,skew-tick"
    four = machine([[0], [1], [2], [3]])
    assert [*boot_words(deployment, four, X86)][-2:] == ["threadirqs", "skew_tick=1"]
    assert why_not_by_boot(deployment, four, X86) is None
    cannot = why_not(deployment, four)
    assert cannot is not None
    assert "takes effect only after a boot" in cannot.reason
    with pytest.raises(InputError, match="boot cannot contain 'thp'"):
        parse_deployment("boot=thp")


NO_C_STATES, FAST = (
    "intel_idle.max_cstate=0 processor.max_cstate=1 idle=poll",
    "cpufreq.default_governor=performance",
)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("CHM", FAST),
        ("HM", f"{NO_C_STATES} {FAST}"),
        (
            "HMI",
            f"{NO_C_STATES} isolcpus=managed_irq,domain,1-3 nohz_full=1-3 rcu_nocbs=1-3 irqaffinity=0 {FAST}",
        ),
        ("Single", f"{NO_C_STATES} nosmt maxcpus=1 {FAST}"),
    ],
)
def test_the_words_of_a_deployment(name: str, words: str) -> None:
    assert " ".join(command_line(NAMED[name], machine(DELGADO), architecture="x86_64")) == words


def test_the_words_on_other_machines() -> None:
    here = machine(DELGADO)
    assert "cpuidle.off=1" in command_line(NAMED["HM"], here, architecture="aarch64")
    assert not any(
        word.startswith("nohz_full=")
        for word in command_line(NAMED["MI"], here, architecture="x86_64", tickless=False)
    )
    assert "xenomai.supported_cpus=0xe" in command_line(
        NAMED["HMI"], here, architecture="x86_64", xenomai=True
    )
    with pytest.raises(InputError, match="one must remain"):
        command_line(NAMED["MI"], machine([[0]]), architecture="x86_64")


@pytest.mark.parametrize(
    ("files", "known"),
    [({"online": "0-1", "nohz_full": "(null)"}, True), ({"online": "0-1"}, False), ({}, True)],
)
def test_a_kernel_without_nohz_full_has_no_file_of_it(files, known):
    read = Files({f"/sys/devices/system/cpu/{name}": {"text": text} for name, text in files.items()})
    assert knows_nohz_full(read) is known
