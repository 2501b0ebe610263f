# SPDX-License-Identifier: MIT
"""Reads and validates the audit's rules: the model of rules.toml."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import BaseModel, Field, ValidationError, model_validator

from rtgauge.errors import InputError
from rtgauge.input_file import MOST_TOML, read_regular, toml_of
from rtgauge.record.facts import Purpose
from rtgauge.validation import DASHED, dashed, explain

Architecture = Literal["x86-64", "arm64", "armhf", "riscv64"]
AuditSeverity = Literal["serious", "moderate", "minor"]
Value = str | bool | int
SUBJECTS = ("kernel-option", "boot-parameter", "file", "fact")
TESTS = ("is", "is-not", "at-least", "at-most", "present", "has", "has-not", "covers", "avoids")
LIST_SOURCE = r"(?:(?:boot-parameter|fact) [A-Za-z0-9_.]{1,128}|cpus [0-9,-]{1,64})"
Version = Annotated[str, Field(pattern=r"^[0-9]{1,3}\.[0-9]{1,3}$")]


class RuleEntry(BaseModel):
    """Base of the models. Keys have dashes, and unknown keys are errors."""

    model_config = DASHED


class Subject(NamedTuple):
    """The subject of a check. `kind`: its key in the file."""

    kind: str
    name: str


class ValueTest(NamedTuple):
    """How a check tests the value. `kind`: its key in the file."""

    kind: str
    expected: Any


class Check(RuleEntry):
    """A check: one subject, and one test of its value."""

    kernel_option: Annotated[str, Field(pattern=r"^[A-Z0-9_]{1,64}$")] | None = None
    """Subject: an option of the kernel's configuration. Its value is `y`, `m`, `n` (also if it is missing),
    or another text.
    """
    boot_parameter: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")] | None = None
    """Subject: the last value of a parameter on the kernel's command line."""
    file: Annotated[str, Field(pattern=r"^/[^\x00-\x20]{1,255}$")] | None = None
    """Subject: the text of a file in /proc or /sys. With `*`, `?`, `[...]` every matching file must pass."""
    fact: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,64}(\.[a-z0-9_]{1,64}){0,7}$")] | None = None
    """Subject: a fact by its path in `rtgauge audit --facts --json`. Empty is `none`, true is `yes`."""
    module: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,64}$")] | None = None
    """The kernel option's folder in /sys/module, used if the configuration cannot be read."""
    is_: Value | list[Value] | None = None
    """Test: the value is this text, or one of these."""
    is_not: Value | list[Value] | None = None
    """Test: the value is not this text, and not one of these."""
    at_least: int | None = None
    """Test: the value is a number of at least this."""
    at_most: int | None = None
    """Test: the value is a number of at most this."""
    present: bool | None = None
    """Test: the boot parameter was given or the file exists (true), or not (false)."""
    has: str | None = None
    """Test: the value is a list with this word."""
    has_not: str | None = None
    """Test: the value is a list without this word."""
    covers: Annotated[str, Field(pattern=f"^{LIST_SOURCE}$")] | None = None
    """Test: the CPU list has every CPU of `fact PATH`, `boot-parameter NAME` or `cpus LIST`."""
    avoids: Annotated[str, Field(pattern=f"^{LIST_SOURCE}$")] | None = None
    """Test: the CPU list has no CPU of `fact PATH`, `boot-parameter NAME` or `cpus LIST`."""
    if_missing: Literal["unknown", "ok", "differs", "not-applicable"] = "unknown"
    """The result if the file does not exist."""

    @model_validator(mode="after")
    def _check_keys(self) -> Check:
        """Check that there is one subject, one test, and only keys that fit the subject."""
        given = self.model_fields_set
        for keys, role in ((SUBJECTS, "subject"), (TESTS, "test")):
            present = [key for key in keys if _field(key) in given and getattr(self, _field(key)) is not None]
            if len(present) != 1:
                raise ValueError(
                    f"a check needs exactly one {role} of {', '.join(keys)}; this one has "
                    f"{' and '.join(present) or 'none'}"
                )
        if self.present is not None and self.boot_parameter is None and self.file is None:
            raise ValueError("'present' works only with 'boot-parameter' or 'file'")
        if "if_missing" in given and self.file is None:
            raise ValueError("if-missing works only with file")
        if self.module is not None and self.kernel_option is None:
            raise ValueError("module works only with kernel-option")
        return self

    @property
    def subject(self) -> Subject:
        """The subject of this check."""
        return next(
            Subject(key, str(getattr(self, _field(key))))
            for key in SUBJECTS
            if getattr(self, _field(key)) is not None
        )

    @property
    def expected(self) -> list[Any]:
        """The expected value, or the alternatives."""
        value = self.test.expected
        return cast("list[Any]", value) if isinstance(value, list) else [value]

    @property
    def test(self) -> ValueTest:
        """The test of the value."""
        return next(
            ValueTest(key, getattr(self, _field(key)))
            for key in TESTS
            if getattr(self, _field(key)) is not None
        )


def _field(key: str) -> str:
    return "is_" if key == "is" else key.replace("-", "_")


SIBLING = r"^[A-Za-z0-9_]{1,64}$"
SET_FILE = r"^(/(sys|proc)/[^\x00-\x20]{1,255}|ethtool:\*:[a-z-]{1,20}|timer:[a-z0-9@._-]{1,100}\.timer)$"


class TrialSetting(RuleEntry):
    """A setting that `rtgauge tune` writes to try a rule. In `to`, `{other-cpus}` or `{other-mask}` stands
    for all CPUs except the real-time ones. `{own-queue}` gives the real-time CPUs a send queue of their own,
    `{exclusive-ways}` ways of the cache, and `{half-bandwidth}` leaves the others half of the memory's.
    """

    file: Annotated[str, Field(pattern=SET_FILE)] | None = None
    """The file to write, or a pattern of files; `{pid}` is the watched program. `ethtool:*:KEY` is a setting
    of every network interface, `timer:NAME.timer` a systemd timer (docs/formats/agent.md).
    """
    threads: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]{1,40}$")] | None = None
    """Threads: `other-real-time`, `program` (the watched program's real-time ones), or a pattern of names."""
    to: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]{1,100}$")] | None = None
    """The value (`{other-cpus}`: all except real-time CPUs). For threads: CPUs, `fifo 50`, or `stopped`."""
    to_file: Annotated[str, Field(pattern=SIBLING)] | None = None
    """A file in the same folder that holds the value, instead of `to`."""
    offered_by: Annotated[str, Field(pattern=SIBLING)] | None = None
    """A file in the same folder that lists the allowed values."""

    @model_validator(mode="after")
    def _check_subject(self) -> TrialSetting:
        if (self.file is None) == (self.threads is None):
            raise ValueError("a setting needs exactly one of 'file' and 'threads'")
        if (self.to is None) == (self.to_file is None) or (self.to is None and self.file is None):
            raise ValueError("a setting needs either 'to' or, for a file, 'to-file'")
        return self

    @property
    def about_cpus(self) -> bool:
        """Whether the setting needs the real-time CPUs."""
        return self.to is not None and "{" in self.to

    @property
    def about_program(self) -> bool:
        """Whether the setting needs the watched program."""
        return self.threads == "program" or "{pid}" in (self.file or "")

    @property
    def siblings(self) -> list[str]:
        """The other files in the same folder that decide the value."""
        folder = (self.file or "").rpartition("/")[0]
        return [f"{folder}/{name}" for name in (self.to_file, self.offered_by) if name is not None]


class Trial(RuleEntry):
    """How to try a rule: by settings that a journal undoes, a part of a deployment, or boot parameters."""

    set: list[TrialSetting] = []
    """The settings to write."""
    deployment: Annotated[str, Field(pattern=r"^[a-z-]{1,20}=[a-z{}-]{1,20}$")] | None = None
    """A part of a deployment, such as `c-states=off`; `{cpus}` stands for the real-time CPUs."""
    boot: bool = False
    """If true, `tune` tries the rule's boot parameters on machines that rtgauge boots."""
    cost: Annotated[str, Field(min_length=3)]
    """What the rule costs the user."""
    against: Annotated[str, Field(min_length=3)] | None = None
    """The advice against the rule, with its source."""
    conflicts: list[str] = []
    """Rules that are never tried together with this rule."""
    lasting: bool = False
    """Whether the effect outlasts the setting, so that later measurements may still show the effect."""
    if_missing: Annotated[str, Field(min_length=3)] | None = None
    """Why the rule is not tried if the machine lacks the files, for a machine that can have them."""
    fought_by: list[Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]] = []
    """Daemons that change the setting back. They are stopped during the trial."""

    @model_validator(mode="after")
    def _check_method(self) -> Trial:
        if bool(self.set) + (self.deployment is not None) != 1 and not self.boot:
            raise ValueError(
                "a trial needs 'set', 'deployment' or 'boot', but not both 'set' and 'deployment'"
            )
        return self

    @property
    def needs_cpus(self) -> bool:
        """Whether the trial needs the real-time CPUs."""
        return any(each.about_cpus for each in self.set) or "{" in (self.deployment or "")

    @property
    def needs_program(self) -> bool:
        """Whether the trial needs the watched program."""
        return any(each.about_program for each in self.set)


class Rule(RuleEntry):
    """A rule: the wanted state, the checks for it, the reason and the remedy."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    """Small letters, digits and dashes; unique among the rules."""
    title: Annotated[str, Field(min_length=3, max_length=100)]
    """The wanted state, as a sentence."""
    severity: AuditSeverity
    """How serious it is if the machine does not meet the rule."""
    checks: list[Check] = []
    """If empty, the audit leaves the rule out; only `rtgauge tune` tries it."""
    enough: Literal["all", "any"] = "all"
    """Whether all checks must hold, or only one of them."""
    interface: bool = False
    """Whether the checks are about the network interface that the user names with --interface. Without one,
    the audit leaves the rule out.
    """
    when: list[Check] = []
    """Checks that must hold for the rule to apply."""
    for_: list[Purpose] = ["xenomai", "preempt-rt", "stock"]
    """The kinds of kernel to which the rule applies."""
    architectures: list[Architecture] = ["x86-64", "arm64", "armhf", "riscv64"]
    """The architectures to which the rule applies."""
    guest: bool | None = None
    """true: applies only in a virtual machine; false: never in one."""
    since: Version | None = None
    """The first Linux version to which the rule applies, such as "6.12"."""
    until: Version | None = None
    """The first Linux version to which the rule no longer applies."""
    why: Annotated[str, Field(min_length=3)]
    """The reason, for the reader."""
    source: Annotated[str, Field(min_length=3)]
    """The source: a paper, or the kernel's documentation."""
    how_much: Annotated[str, Field(min_length=3)]
    """How large the effect is."""
    remedy: Annotated[str, Field(min_length=3)]
    """The remedy, for the reader."""
    commands: list[Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]{3,300}$")]] = []
    """The remedy as shell commands, if the running machine can be changed."""
    boot: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.,= -]{3,100}$")] | None = None
    """The remedy as boot parameters, if no command can make the change."""
    trial: Trial | None = None
    """How `rtgauge tune` tries the rule; None if it does not."""

    @model_validator(mode="after")
    def _checked_or_tried(self) -> Rule:
        if not self.checks and self.trial is None:
            raise ValueError("a rule needs 'checks' or a 'trial'")
        if self.trial is not None and self.trial.boot and self.boot is None:
            raise ValueError("a trial with 'boot' needs the rule's boot parameters ('boot' of the rule)")
        return self


READABLE = ("/proc/sys/", "/sys/")
"""Where the rules of a file may read. Anybody may have written them, and the audit prints what it reads."""
CHECK_KEYS = [dashed(name) for name in Check.model_fields]
RULE_KEYS = [dashed(name) for name in Rule.model_fields]
FILE: dict[str, type[BaseModel]] = {
    "[[rule]]": Rule,
    "A check: one thing and one test": Check,
    "[rule.trial]": Trial,
    "An entry of `set`": TrialSetting,
}
"""The tables of the file, for the page of the keys."""


def parse_rules(text: str, source: str) -> list[Rule]:
    """Parse the rules in a TOML text. `source` names the text in errors.

    Raises InputError, which names the invalid rule.
    """
    document = toml_of(text, source)
    unknown = [key for key in document if key != "rule"]
    entries: Any = document.get("rule")
    if unknown:
        raise InputError(f"{source} has the unknown key '{unknown[0]}'; only [[rule]] is allowed")
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{source} has no [[rule]]")
    rules: list[Rule] = []
    for number, entry in enumerate(cast("list[Any]", entries), 1):
        name = cast("dict[str, Any]", entry).get("id") if isinstance(entry, dict) else None
        where = f"{source}, rule '{name}'" if isinstance(name, str) else f"{source}, rule number {number}"
        try:
            rule = Rule.model_validate(entry)
        except ValidationError as error:
            inside = error.errors()[0]["loc"][:1] in {("checks",), ("when",)}
            raise explain(error, where, CHECK_KEYS if inside else RULE_KEYS) from None
        if rule.id in {other.id for other in rules}:
            raise InputError(f"{where}: another rule has this id; give each rule its own")
        rules.append(rule)
    return rules


@cache
def tried_rules() -> dict[str, Rule]:
    """Return the rules that `rtgauge tune` can try, by id."""
    return {rule.id: rule for rule in read_rules() if rule.trial is not None}


def read_rules(path: Path | None = None) -> list[Rule]:
    """Return rtgauge's rules, or the rules in a file. Raises InputError if the file is invalid."""
    if path is None:
        return parse_rules(
            (resources.files("rtgauge_ext.audit") / "rules.toml").read_text(encoding="utf-8"), "rules.toml"
        )
    try:
        rules = parse_rules(read_regular(path, MOST_TOML).decode("utf-8"), str(path))
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    own = {*rule_paths(read_rules())}
    for rule in rules:
        for file in rule_paths([rule]):
            # A pattern such as `.*` matches `..` too.
            if file not in own and (not file.startswith(READABLE) or "/." in file):
                raise InputError(
                    f"{path}, rule '{rule.id}': rtgauge does not read '{file[:100]}', because it is outside "
                    f"of {' and '.join(READABLE)}; name a file there"
                )
    return rules


def rule_paths(rules: list[Rule]) -> list[str]:
    """Return the files that the rules' checks need in addition to the facts."""
    checks = [check for rule in rules for check in (*rule.checks, *rule.when)]
    files = [check.file for check in checks if check.file is not None]
    modules = [f"/sys/module/{check.module}" for check in checks if check.module is not None]
    return list(dict.fromkeys(files + modules))
