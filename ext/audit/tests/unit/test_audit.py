# SPDX-License-Identifier: MIT
from __future__ import annotations

import base64
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from rich.console import Console
from tests.support.messages import missing
from tests.support.mutated_document import EXAMPLES, check_taken_or_refused
from tests.support.mutated_text import mutated
from tests.unit.system import machines
from tools import reference

from ext.audit.tests.unit.worlds import World
from rtgauge.errors import InputError
from rtgauge.record.facts import Facts
from rtgauge.system.collect_facts import fact_paths, facts
from rtgauge.target.file_batch import Files, glob_pattern
from rtgauge_ext.audit import kernel_command_line, rules
from rtgauge_ext.audit.audit import AuditDocument, audit
from rtgauge_ext.audit.audit_terminal import mend_script, print_audit
from rtgauge_ext.audit.checks import mask_cpus
from rtgauge_ext.audit.rules import Rule, parse_rules, read_rules, rule_paths

RULES = [rule for rule in read_rules() if rule.checks]
BY_ID = {rule.id: rule for rule in RULES}
PATHS = [*fact_paths(), *rule_paths(RULES)]
DOCS = Path(__file__).parents[4] / "docs"


def results(files: Files, purpose: Any = None) -> dict[str, str]:
    return {finding.rule: finding.result for finding in audit(RULES, facts(files), files, purpose).findings}


def held(rule: Rule, world: World) -> str:
    actual, files = world.build()
    (finding,) = audit([rule], actual, files, rule.for_[0]).findings
    return finding.result


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_can_be_ok(rule: Rule) -> None:
    world = World(rule)
    for check in rule.checks:
        world.add(check, holds=True)
    assert held(rule, world) == "ok"


@pytest.mark.parametrize(
    ("rule", "number"),
    [(rule, n) for rule in RULES for n in range(len(rule.checks))],
    ids=lambda part: getattr(part, "id", str(part)),
)
def test_every_check_of_every_rule_counts(rule: Rule, number: int) -> None:
    """Of `all` each one that does not hold makes the difference; of `any` each one that holds is enough."""
    every = rule.enough == "all"
    world = World(rule)
    for other, check in enumerate(rule.checks):
        world.add(check, holds=(other == number) != every)
    assert held(rule, world) == ("differs" if every else "ok")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_can_differ(rule: Rule) -> None:
    world = World(rule)
    for check in rule.checks:
        world.add(check, holds=False)
    assert held(rule, world) == "differs"


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.when], ids=lambda rule: rule.id)
def test_every_condition_counts(rule: Rule) -> None:
    world = World(rule)
    for check in rule.checks:
        world.add(check, holds=False)
    actual, _ = world.build()
    world.parameters.clear()
    for check in rule.when:
        world.add(check, holds=False)
    assert actual
    assert held(rule, world) == "not-applicable"


def test_nothing_known_is_unknown_and_no_guess() -> None:
    for purpose in ("xenomai", "preempt-rt", "stock"):
        assert set(results(Files(), purpose).values()) <= {"unknown", "not-applicable"}


def test_every_fact_of_a_rule_is_a_fact() -> None:
    known = facts(Files(), interface="eth1").as_json()
    named = {check.fact for rule in RULES for check in (*rule.checks, *rule.when) if check.fact}
    sources = [(check.covers or check.avoids or "").partition(" ") for rule in RULES for check in rule.checks]
    named |= {name for kind, _, name in sources if kind == "fact"}
    for path in named:
        place: Any = known
        for key in path.split("."):
            assert key in place, path
            place = place[key]


@pytest.mark.parametrize(
    ("purpose", "options"),
    [
        (
            "xenomai",
            (
                "HIGH_RES_TIMERS MCORE2 SCHED_MC TRANSPARENT_HUGEPAGE COMPACTION MIGRATION CPU_FREQ "
                "ACPI_PROCESSOR INTEL_IDLE CPU_IDLE KGDB HYPERV CMA X86_SMAP"
            ),
        ),
        (
            "preempt-rt",
            (
                "PREEMPT_RT HIGH_RES_TIMERS MCORE2 SCHED_MC TRANSPARENT_HUGEPAGE COMPACTION MIGRATION "
                "CPU_FREQ ACPI_PROCESSOR INTEL_IDLE CPU_IDLE KGDB"
            ),
        ),
    ],
)
def test_the_papers_options_are_there(purpose: str, options: str) -> None:
    enabled = {"HIGH_RES_TIMERS", "MCORE2", "PREEMPT_RT"}
    there = {
        check.kernel_option: check.is_
        for rule in RULES
        if purpose in rule.for_
        for check in rule.checks
        if check.kernel_option
    }
    for option in options.split():
        assert there[option] == ("y" if option in enabled else "n")


@pytest.mark.parametrize(
    ("option", "severity"),
    [
        ("CONFIG_CPU_FREQ", "high"),
        ("CONFIG_CPU_FREQ_DEFAULT_GOV_PERFORMANCE", "high"),
        ("non-performance governors", "medium"),
        ("CONFIG_CPU_IDLE", "info"),
        ("CONFIG_DRM", "info"),
        ("CONFIG_EFI_DISABLE_RUNTIME", "medium"),
        ("CONFIG_NO_HZ", "medium"),
        ("CONFIG_NO_HZ_FULL", "medium"),
        ("CONFIG_PREEMPT_RT", "fatal"),
        ("CONFIG_TRACING", "info"),
        ("CONFIG_IRQSOFF_TRACER, CONFIG_PREEMPT_TRACER", "high"),
        ("CONFIG_LOCKUP_DETECTOR", "high"),
        ("CONFIG_PROVE_LOCKING", "high"),
    ],
)
def test_the_kernels_own_list_of_real_time_options_is_a_source(option: str, severity: str) -> None:
    """Documentation/core-api/real-time/kernel-configuration.rst, as of Linux 7.3."""
    named = re.compile(rf"real-time/kernel-configuration \([^)]*\b{option}: {severity}\b")
    assert any(named.search(rule.source) for rule in RULES)


def test_a_machine_that_is_well_set() -> None:
    files = machines.well_set_rt()
    document = audit(RULES, facts(files), files)
    actual = {finding.rule: finding.result for finding in document.findings}
    assert (document.purpose, document.purpose_from, document.architecture, document.guest) == (
        "preempt-rt",
        "found",
        "x86-64",
        False,
    )
    assert not document.serious
    assert not document.serious
    assert {finding.rule for finding in document.findings if finding.result == "differs"} == {
        "compaction-option"
    }
    assert {rule for rule, result in actual.items() if result == "unknown"} == set()
    for rule in (
        "isolation-in-effect",
        "nohz-full-in-effect",
        "rcu-nocbs-in-effect",
        "irqs-on-isolated",
        "max-cstate-in-effect",
        "nosmt-in-effect",
    ):
        assert actual[rule] == "ok"


def test_requested_isolation_not_in_effect_is_reported() -> None:
    files = machines.badly_set_rt()
    document = audit(RULES, facts(files), files)
    actual = {finding.rule: finding.result for finding in document.findings}
    for rule in (
        "isolation-in-effect",
        "nohz-full-in-effect",
        "rcu-nocbs-in-effect",
        "irqaffinity-parameter",
        "max-cstate-in-effect",
        "idle-parameter-in-effect",
        "nosmt-in-effect",
        "mitigations-in-effect",
        "clocksource-parameter-in-effect",
        "intel-pstate-in-effect",
        "default-governor-in-effect",
        "thp-parameter-in-effect",
        "high-res-timers-in-effect",
        "debug-kernel",
        "tracing-off",
    ):
        assert actual[rule] == "differs", rule
    assert document.serious


def test_a_virtual_machine() -> None:
    actual = results(machines.virtual_machine())
    assert actual["real-machine"] == "differs"
    assert actual["not-emulated"] == "ok"
    assert actual["clock-source"] == "ok"
    assert actual["c-states"] == actual["smt"] == actual["turbo"] == "not-applicable"
    assert actual["preemptible-kernel"] == "ok"
    assert actual["rt-group-sched"] == "ok"
    assert actual["fair-server"] == "unknown"
    assert actual["guest-idle"] == "unknown"


@pytest.mark.parametrize(
    ("error", "remedy", "other"),
    [("ENOENT", "run as root: mount -t debugfs", "audit as root"), ("EACCES", "audit as root", "mount")],
)
def test_the_remedy_fits_why_a_file_cannot_be_read(error: str, remedy: str, other: str) -> None:
    """Mounting helps only if the file system is missing."""
    path = "/sys/kernel/debug/sched/fair_server/cpu[0-9]*/runtime"
    files = machines.virtual_machine() | {path: {"error": error}}
    (finding,) = audit([BY_ID["fair-server"]], facts(files), files).findings
    assert remedy in finding.found
    assert other not in finding.found


def test_a_guest_that_controls_its_cpus_idle_states() -> None:
    """As with QEMU's `-overcommit cpu-pm=on`."""
    idle = f"{machines.CPU}/cpu0/cpuidle"
    states = {
        f"{idle}/state1/name": "C6\n",
        f"{idle}/state1/latency": "85\n",
        f"{idle}/state1/disable": "0\n",
        f"{machines.CPU}/cpuidle/current_driver": "intel_idle\n",
    }
    assert results(machines.virtual_machine() | machines.texts(states))["c-states"] == "differs"


def test_an_arm_board() -> None:
    files = machines.arm_board() | {"/sys/fs/cgroup/cpuset.cpus.isolated": {"error": "ENOENT"}}
    document = audit(RULES, facts(files, "aarch64"), files)
    actual = {finding.rule: finding.result for finding in document.findings}
    assert document.architecture == "arm64"
    assert actual["clock-source-arm"] == "ok"
    assert actual["clock-source"] == actual["intel-idle-option"] == actual["tsc-watchdog"] == "not-applicable"
    assert actual["governor"] == "differs"
    assert actual["high-res-timers-option"] == "unknown"
    assert actual["isolated-cpus"] == "differs"


@pytest.mark.parametrize("files", [machines.riscv_guest(), machines.loongarch_machine()])
def test_rules_for_x86_or_arm_do_not_fire_elsewhere(files: Files) -> None:
    document = audit(RULES, facts(files), files)
    limited = {rule.id for rule in RULES if not {"riscv64"} & {*rule.architectures}}
    actual = {finding.rule: finding.result for finding in document.findings}
    assert limited
    assert {actual[rule] for rule in limited & actual.keys()} == {"not-applicable"}
    assert actual["preemptible-kernel"] == "differs"


@pytest.mark.parametrize(
    ("extensions", "result"), [("zicntr_zihpm_sstc", "ok"), ("zicntr_zihpm", "differs"), (None, "unknown")]
)
def test_timers_of_a_riscv_board_without_sstc_are_the_firmwares(extensions: str | None, result: str) -> None:
    isa = "" if extensions is None else f"isa\t\t: rv64imafdc_{extensions}\n"
    cpuinfo = f"processor\t: 0\n{isa}uarch\t\t: sifive,u74-mc\nmvendorid\t: 0x489\n"
    tree = base64.b64encode(b"starfive,jh7110\0").decode()
    files = machines.riscv_guest() | machines.texts({"/proc/cpuinfo": cpuinfo})
    files |= {"/proc/device-tree/compatible": {"base64": tree}}
    document = audit(RULES, facts(files), files)
    actual = {finding.rule: finding.result for finding in document.findings}
    assert actual["timer-riscv"] == result
    guest = audit(RULES, facts(machines.riscv_guest()), machines.riscv_guest())
    assert {finding.rule: finding.result for finding in guest.findings}["timer-riscv"] == "not-applicable"


def test_busybox_with_almost_nothing() -> None:
    files = machines.busybox()
    document = audit(RULES, facts(files), files)
    assert {finding.result for finding in document.findings if finding.result != "not-applicable"} == {
        "unknown",
        "differs",
    }
    assert {finding.rule for finding in document.findings if finding.result == "differs"} == {
        "preemptible-kernel"
    }
    assert document.counts["unknown"] > 20


def test_xenomai_is_recognised_and_its_cpus_compared() -> None:
    mask = "/sys/module/xenomai/parameters/supported_cpus"
    for value, result in (("14", "ok"), ("7", "differs"), ("18446744073709551615", "ok")):
        files = machines.well_set_rt() | machines.texts({"/proc/xenomai/version": "3.1", mask: value})
        document = audit(RULES, facts(files), files)
        assert document.purpose == "xenomai"
        assert {finding.rule: finding.result for finding in document.findings}[
            "xenomai-supported-cpus"
        ] == result


def test_a_module_shows_an_option_if_there_is_no_configuration() -> None:
    files = machines.texts({"/proc/sys/kernel/osrelease": "6.1.0", "/proc/sys/kernel/arch": "x86_64"})
    assert results(files)["intel-idle-option"] == "unknown"
    assert (
        results(files | {"/sys/module/intel_idle": {"directory": ["parameters"]}})["intel-idle-option"]
        == "differs"
    )


@pytest.mark.parametrize(
    ("cmdline", "isolated", "result"),
    [
        ("isolcpus=1-3", "1-3", "ok"),
        ("isolcpus=1-3", "", "differs"),
        ("isolcpus=1-3", "1-2", "differs"),
        ("isolcpus=domain,managed_irq,1-N", "1-3", "ok"),
        ("isolcpus=nohz,1-3", "", "differs"),
        ("isolcpus=8-9", "", "differs"),
        ("isolcpus=1-64", "1-3", "ok"),
        ("isolcpus=1 isolcpus=2", "2", "ok"),
        ('isolcpus="1-3"', "1-3", "ok"),
        ("isolcpus=oops!", "1-3", "unknown"),
        ("quiet -- isolcpus=1-3", "", "not-applicable"),
        ("xisolcpus=1", "", "not-applicable"),
    ],
)
def test_requested_isolation_is_reported(cmdline: str, isolated: str, result: str) -> None:
    cpu = machines.CPU
    files = machines.texts(
        {
            "/proc/cmdline": cmdline,
            f"{cpu}/isolated": isolated,
            f"{cpu}/possible": "0-3",
            f"{cpu}/online": "0-3",
        }
    )
    assert results(files)["isolation-in-effect"] == result


def test_values_of_several_files_have_their_names() -> None:
    names = {"nmi_watchdog": "1", "watchdog_thresh": "10"}
    files = machines.texts({f"/proc/sys/kernel/{name}": text for name, text in names.items()})
    (finding,) = audit([BY_ID["nmi-watchdog"]], facts(files), files).findings
    assert finding.found == "nmi_watchdog 1; watchdog_thresh 10"
    files |= machines.texts({"/proc/sys/kernel/watchdog_thresh": "0"})
    (finding,) = audit([BY_ID["nmi-watchdog"]], facts(files), files).findings
    assert (finding.result, finding.found) == ("ok", "0")


def partitioned(cmdline: str, isolated: str) -> Files:
    """A PREEMPT_RT kernel without isolcpus=, with these CPUs in an isolated control group."""
    return machines.bare_metal_rt() | machines.texts(
        {
            "/proc/cmdline": cmdline,
            f"{machines.CPU}/isolated": "\n",
            f"{machines.CPU}/nohz_full": "\n",
            "/sys/fs/cgroup/cpuset.cpus.isolated": isolated,
        }
    )


def test_cpus_of_an_isolated_control_group_are_isolated_cpus() -> None:
    """What a control group cannot do is left for the command line, and the audit says so."""
    of_group = results(partitioned("quiet", "3\n"))
    assert of_group["isolated-cpus"] == "ok"
    left = ("nohz-full", "managed-irqs", "rcu-nocbs", "irqs-on-isolated")
    assert {rule: of_group[rule] for rule in left} == {
        "nohz-full": "differs",
        "managed-irqs": "differs",
        "rcu-nocbs": results(machines.bare_metal_rt())["rcu-nocbs"],
        "irqs-on-isolated": results(machines.bare_metal_rt())["irqs-on-isolated"],
    }
    without = results(partitioned("quiet", "\n"))
    assert without["isolated-cpus"] == "differs"
    assert {without[rule] for rule in left} == {"not-applicable"}


def test_isolcpus_may_leave_isolation_to_a_control_group() -> None:
    """The parameters that `tune apply` advises beside its slice do not isolate by themselves."""
    cmdline = "isolcpus=managed_irq,3 nohz_full=3 rcu_nocbs=3"
    both, alone = (results(partitioned(cmdline, cpus)) for cpus in ("3\n", "\n"))
    assert (both["isolation-in-effect"], both["managed-irqs"]) == ("ok", "ok")
    assert alone["isolation-in-effect"] == "differs"


@pytest.mark.parametrize(
    ("preempt", "result"), [("(full) lazy", "ok"), ("full (lazy)", "differs"), (None, "unknown")]
)
def test_lazy_preemption_is_seen_on_preempt_rt(preempt: str | None, result: str) -> None:
    path = "/sys/kernel/debug/sched/preempt"
    files = machines.bare_metal_rt() | machines.texts({"/proc/sys/kernel/osrelease": "7.3.4-rt-amd64"})
    files |= {path: {"error": "EACCES"} if preempt is None else {"text": preempt}}
    assert results(files)["lazy-preemption"] == result


@pytest.mark.parametrize(
    ("cmdline", "option", "by_option", "by_parameter"),
    [
        ("quiet", "y", "ok", "not-applicable"),
        ("quiet", "n", "differs", "not-applicable"),
        ("efi=noruntime,debug", "n", "ok", "not-applicable"),
        ("efi=debug,runtime", "y", "not-applicable", "differs"),
    ],
)
def test_a_boot_parameter_lets_the_kernel_call_the_firmware(
    cmdline: str, option: str, by_option: str, by_parameter: str
) -> None:
    files = machines.bare_metal_rt() | machines.texts({"/proc/cmdline": cmdline, "/sys/firmware/efi": ""})
    files |= {"/proc/config.gz": machines.packed(f"CONFIG_EFI=y\nCONFIG_EFI_DISABLE_RUNTIME={option}\n")}
    actual = results(files)
    assert (actual["efi-runtime"], actual["efi-runtime-parameter"]) == (by_option, by_parameter)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-3", [0, 1, 2, 3]),
        ("all", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("N", [7]),
        ("5-N", [5, 6, 7]),
        ("0-7:1/4", [0, 4]),
        ("0-7:2/4", [0, 1, 4, 5]),
        ("domain,nohz,2,4-5", [2, 4, 5]),
        ("future_word,2", [2]),
        ("6-20", [6, 7]),
        ("3-1", None),
        ("0-7:5/4", None),
        ("0-7:1/0", None),
        ("x!", None),
    ],
)
def test_cpu_lists_as_the_kernel_reads_them(text: str, cpus: list[int] | None) -> None:
    assert kernel_command_line.cpu_list(text, list(range(8))) == cpus


def test_boot_parameters() -> None:
    actual = kernel_command_line.parameters('a=1 b-c=2 d "e=f g" h="i j" a=3 k.l-m=n -- init=5')
    assert actual == {"a": "3", "b_c": "2", "d": "", "e": "f g", "h": "i j", "k.l_m": "n"}


RULE = """
[[rule]]
id = "one"
title = "A title"
severity = "minor"
checks = [{ fact = "a.b", is = 1 }]
why = "why"
source = "source"
how-much = "much"
remedy = "remedy"
"""


@pytest.mark.parametrize(
    ("before", "after", "reported"),
    [
        ("minor", "small", "rule 'one'.*severity.*small"),
        ('id = "one"', 'id = "One"', "rule 'One'.*id"),
        ('id = "one"', "", "rule number 1.*id"),
        (", is = 1", "", "one test of"),
        ("is = 1", "is = 1, at-most = 2", "is and at-most"),
        ('fact = "a.b"', 'fact = "a.b", file = "/x"', "file and fact"),
        ('fact = "a.b"', 'fact = "a b"', "rule 'one'.*fact"),
        ("is = 1", "si = 1", "rule 'one'.*unknown key 'si'.*is-not"),
        ("is = 1", "present = true", "'present' works only with"),
        ("is = 1", 'covers = "cpu.isolated"', "rule 'one'.*covers"),
        ("why =", "wy =", "rule 'one'.*why"),
        ("title =", "titel =", "rule 'one'"),
        ("[[rule]]", "[rule]", "no \\[\\[rule\\]\\]"),
        ("[[rule]]", "x = 1\n[[rule]]", "unknown key 'x'"),
        ("[[rule]]", "[[rule", "not TOML"),
        ('severity = "minor"', 'severity = "minor"\nsince = "six"', "rule 'one'.*since"),
        ('severity = "minor"', 'severity = "minor"\nfor = ["rtai"]', "rule 'one'.*for.*rtai"),
        ('remedy = "remedy"\n', 'remedy = "remedy"\n' + RULE, "another rule has this id"),
    ],
)
def test_a_rule_that_is_wrong_is_named(before: str, after: str, reported: str) -> None:
    assert before in RULE
    with pytest.raises(InputError, match=reported):
        parse_rules(RULE.replace(before, after), "my.toml")


@pytest.mark.parametrize(
    "file",
    [
        "/etc/ssh/ssh_host_ed25519_key",
        "/proc/1/environ",
        "/proc/kcore",
        "/proc/sys/../1/environ",
        "/sys/../etc/shadow",
        "/sys/.?/etc/shadow",
        "/[ep]*/shadow",
        "/sysx/x",
    ],
)
def test_rules_of_somebody_else_read_nothing_but_kernel_settings(tmp_path: Path, file: str) -> None:
    (tmp_path / "my.toml").write_text(RULE.replace('fact = "a.b", is = 1', f'file = "{file}", is = "1"'))
    assert file in (tmp_path / "my.toml").read_text()
    with pytest.raises(InputError, match=r"does not read .* outside of /proc/sys/ and /sys/"):
        read_rules(tmp_path / "my.toml")


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_mutated_rules_are_taken_or_refused(data: st.DataObject) -> None:
    text = (Path(rules.__file__).parent / "rules.toml").read_text(encoding="utf-8")
    check_taken_or_refused(lambda changed: parse_rules(changed, "rules"), mutated(text, data))


def test_the_page_of_keys_has_defaults_and_choices() -> None:
    page = reference.files_page()
    choices = r"^\| `if-missing` \| unknown \| .+ One of unknown, ok, differs, not-applicable\. \|$"
    assert re.search(choices, page, re.MULTILINE)
    assert "| `title` | required |" in page


def test_rules_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(RULE)
    (rule,) = read_rules(path)
    (finding,) = audit([rule], Facts.model_validate({"a": {"b": 1}}), Files()).findings
    assert (finding.result, finding.found, finding.where) == ("ok", "1", ["a.b"])
    with pytest.raises(InputError, match="cannot be read"):
        read_rules(tmp_path / "none.toml")


def test_globs() -> None:
    assert re.fullmatch(glob_pattern("/a/cpu[0-9]*/b.c"), "/a/cpu12/b.c")
    assert not re.fullmatch(glob_pattern("/a/cpu[0-9]*/b.c"), "/a/cpu1/2/b.c")
    assert not re.fullmatch(glob_pattern("/a/cpu[0-9]*/b.c"), "/a/cpu1/bxc")


HOSTILE = st.dictionaries(
    st.sampled_from(
        [
            *(path.replace("[0-9]*", "0") for path in PATHS),
            "/proc/1/task/1/stat",
            "/boot/config-1",
            "/sys/devices/system/cpu/vulnerabilities/x",
        ]
    ),
    st.one_of(
        st.fixed_dictionaries(
            {
                "text": st.one_of(
                    st.text(max_size=60),
                    st.from_regex(r"[0-9a-fx,:=\[\]( \n/_-]{0,40}"),
                    st.sampled_from(["1", "0-3", "-1", "(null)"]),
                )
            }
        ),
        st.fixed_dictionaries({"base64": st.text(max_size=20)}),
        st.fixed_dictionaries({"directory": st.lists(st.text(max_size=5), max_size=2)}),
        st.fixed_dictionaries({"error": st.sampled_from(["ENOENT", "EACCES", "EIO"])}),
        st.none(),
        st.integers(),
    ),
    max_size=25,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(HOSTILE, st.sampled_from([None, "xenomai", "preempt-rt", "stock"]))
def test_hostile_files_never_raise(files: dict[str, Any], purpose: Any) -> None:
    machine_facts = facts(Files(files))
    document = audit(RULES, machine_facts, Files(files), purpose)
    assert sum(document.counts.values()) == len([rule for rule in RULES if not rule.interface])


@settings(max_examples=200)
@given(st.text(max_size=80), st.lists(st.integers(0, 20), max_size=5))
def test_hostile_command_lines_never_raise(text: str, possible: list[int]) -> None:
    kernel_command_line.parameters(text)
    for value in (*kernel_command_line.parameters(text).values(), text):
        kernel_command_line.cpu_list(value, possible)
        mask_cpus(value, possible)


@settings(max_examples=100)
@given(
    st.sampled_from(
        ["cpu", "kernel", "cpu.isolated", "kernel.cmdline", "machine.virtual", "interrupts.on_isolated"]
    ),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ),
)
def test_hostile_facts_never_raise(path: str, value: Any) -> None:
    hostile = value
    for key in reversed(path.split(".")):
        hostile = {key: hostile}
    try:
        known = Facts.model_validate(hostile)
    except ValidationError:
        return
    audit(RULES, known, Files())


def test_the_schema_in_the_documentation_is_that_of_the_model() -> None:
    written = json.loads((DOCS / "formats" / "audit.schema.json").read_text())
    assert written == AuditDocument.model_json_schema(mode="serialization")


def _rtgauge(*arguments: str, columns: int = 80) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from rtgauge.cli.main import main; main()", *arguments]
    environment = {**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)


@pytest.mark.engine
def test_audit_of_this_machine() -> None:
    completed = _rtgauge("audit", "--interface", "lo", "--json")
    document = json.loads(completed.stdout)
    jsonschema.validate(document, AuditDocument.model_json_schema(mode="serialization"))
    assert completed.returncode == (1 if document["serious"] else 0)
    assert {finding["rule"] for finding in document["findings"]} == set(BY_ID)
    for columns in (60, 160):
        shown = _rtgauge("audit", "--interface", "lo", "--all", columns=columns)
        assert shown.returncode == completed.returncode
        too_long = [line for line in shown.stdout.splitlines() if len(line) > columns]
        assert all(len(line.split()) == 1 for line in too_long), "only a long path stays whole"
        assert all(rule in shown.stdout for rule in BY_ID)


def test_it_is_short_and_the_conclusion_is_first() -> None:
    document = audit(RULES, Facts(), Files(), "stock").model_copy(deep=True)
    for finding, severity in zip(
        document.findings, ("serious", "moderate", "moderate", "minor"), strict=False
    ):
        finding.result, finding.severity = "differs", cast("Any", severity)
    for width in (80, 140):
        out = io.StringIO()
        print_audit(document, Console(file=out, width=width))
        text = out.getvalue()
        assert not missing(text.splitlines()[0], "1 serious, 2 moderate, 1 minor", "stock")
        assert " ".join(text.split()).startswith(document.model_dump()["conclusion"])
        assert max(map(len, text.splitlines())) <= width
        assert document.findings[0].title.split()[0] in text
        assert document.findings[0].why not in text
        assert document.findings[3].rule in text


def test_the_script_of_all_mends_is_a_script(tmp_path: Path) -> None:
    document = audit(RULES, Facts(host="a\nreboot #\x1b"), Files(), "stock")
    for finding in document.findings:
        finding.result = "differs"
    script = tmp_path / "remedy.sh"
    script.write_text(mend_script(document))
    assert subprocess.run(["sh", "-n", script], check=False, capture_output=True).stderr == b""
    commands = [line for line in script.read_text().splitlines() if line and not line.startswith("#")]
    assert len(commands) == len(set(commands)) >= 12
    assert all(line.startswith(("sysctl -w ", "echo ", "for file in ", "swapoff")) for line in commands)
    assert "threadirqs" in script.read_text()


@pytest.mark.engine
def test_audit_for_a_kernel_that_does_not_run() -> None:
    completed = _rtgauge("audit", "--for", "xenomai", "--json")
    document = json.loads(completed.stdout)
    assert (document["purpose"], document["purpose_from"]) == ("xenomai", "asked")
    wrong = _rtgauge("audit", "--for", "preemptrt")
    assert wrong.returncode == 2
    (line,) = wrong.stderr.splitlines()
    assert not missing(line, "'preemptrt'", "--for", "'preempt-rt'")


@pytest.mark.engine
def test_system_of_this_machine() -> None:
    completed = _rtgauge("audit", "--facts", "--json")
    assert completed.returncode == 0
    document = json.loads(completed.stdout)
    assert document["kernel"]["release"] == os.uname().release
    assert document["cpu"]["online_count"] == os.cpu_count()
    for columns in (60, 160):
        shown = _rtgauge("audit", "--facts", columns=columns)
        assert shown.returncode == 0
        too_long = [line for line in shown.stdout.splitlines() if len(line) > columns]
        assert all(len(line.split()) == 1 for line in too_long), "only a long path stays whole"
        assert os.uname().release in shown.stdout
