# SPDX-License-Identifier: MIT
"""Makes a checked plan from a plan file or preset: every step, in the order of measuring."""

from __future__ import annotations

import random
import secrets
import tomllib
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from rtgauge import extension
from rtgauge.errors import InputError
from rtgauge.input_file import read_toml
from rtgauge.known_extensions import from_where
from rtgauge.nearest_name import nearest
from rtgauge.plan.matrix import COMMAND_LINE, MAX_STEPS, SELF, step_entries, under_each
from rtgauge.plan.plan_keys import CROSS_CHECK_TOOLS, PlanFile, plan_keys
from rtgauge.probe import probe_registry as probes
from rtgauge.record.files import clean_name
from rtgauge.record.model import COKERNELS, StepKey
from rtgauge.system.priorities import Controller
from rtgauge.target.address import target_name
from rtgauge.target.kind import guest_kind
from rtgauge.validation import explain


@dataclass(frozen=True)
class Overrides:
    """Options from the command line, which override the plan. None: the plan decides."""

    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    loads: list[str] | None = None
    deployments: list[str] | None = None
    repeats: int | None = None
    seed: int | None = None
    require: str | None = None
    allow_left_out: bool = False
    cross_check: str | None = None
    controller: bool = False
    raised: list[str] = field(default_factory=list[str])
    targets: list[str] | None = None
    boot: Literal["each-deployment"] | None = None


@dataclass(frozen=True)
class Plan:
    """A checked plan, with every step in the order of measuring."""

    name: str
    description: str
    seed: int
    require: str | None
    cross_check: str | None
    load_warm_up_ns: int
    controller: Controller | None
    targets: list[str]
    steps: list[StepKey]
    written: dict[str, Any]
    by_boot: bool = False
    """Whether each deployment is booted, instead of set on the running machine."""
    allow_left_out: bool = False
    """Whether the requirement may hold even if a load or a step could not be measured."""


def parse_setting(text: str, option: str) -> tuple[str, object]:
    """Parse `"interval=100us"` into the key and its value: a whole number, true or false, or text.

    `option` names the option in errors. Raises InputError.
    """
    key, sign, value = (part.strip() for part in text.partition("="))
    if not sign or not key:
        raise InputError(f"{option} {text}: give KEY=VALUE, for example interval=100us")
    return key, int(value) if value.isdigit() else {"true": True, "false": False}.get(value, value)


def preset_texts() -> dict[str, str]:
    """Return the TOML text of every preset by its name. The first extension has a name."""
    packages = [each.presets for each in extension.extensions() if each.presets is not None]
    return {
        entry.name.removesuffix(".toml"): entry.read_text(encoding="utf-8")
        for package in reversed(packages)
        for entry in (resources.files(package) / "presets").iterdir()
        if entry.name.endswith(".toml")
    }


def presets() -> dict[str, str]:
    """Return the description of every preset by its name."""
    texts = preset_texts()
    return {name: tomllib.loads(texts[name]).get("description", "") for name in sorted(texts)}


def read_plan(source: str) -> tuple[dict[str, Any], str]:
    """Return the TOML content of a preset or a file, and its name for errors. Raises InputError."""
    path = Path(source)
    if "/" not in source and not source.endswith(".toml") and (preset := preset_texts().get(source)):
        return tomllib.loads(preset), f"preset {source}"
    if not path.exists():
        if source.endswith(".toml") or "/" in source:
            raise InputError(f"there is no plan file {source}")
        known = [*presets(), *extension.registered("studies")]
        instead = f"{nearest(source, known)}; give a preset, a study or the path of a TOML file"
        raise InputError(f"unknown plan '{source}'{from_where('plans', source) or instead}")
    return read_toml(path, f"plan {source}"), f"plan {source}"


def _with_cross_checks(steps: list[StepKey], tool: str | None) -> list[StepKey]:
    """Add the cross-check of each step that the tool can measure, directly after the step.

    Raises InputError if the tool is unknown, or can measure none of the steps.
    """
    if tool is None:
        return steps
    if tool not in CROSS_CHECK_TOOLS:
        raise InputError(f"--cross-check: unknown tool '{tool}'{nearest(tool, CROSS_CHECK_TOOLS)}")
    if missing := from_where("measurers", tool):
        raise InputError(f"--cross-check {tool}{missing}")
    paired: list[StepKey] = []
    for step in steps:
        paired.append(step)
        checked_by = probes.get(step.probe).cross_checked_by
        if step.rt == "auto" and any(
            checked_by(tool, step.parameters.but(rt=rt)) for rt in ("linux", *COKERNELS)
        ):
            raise InputError(
                f"cross-check {tool}: a tool measures only Linux or only the co-kernel, so rt auto does not "
                "say which; give rt linux, cobalt or rtai"
            )
        if checked_by(tool, step.parameters):
            paired.append(step.model_copy(update={"tool": tool}))
    if len(paired) == len(steps):
        raise InputError(
            f"{tool} cannot cross-check any of the steps; it measures {probes.measured_by(tool)}"
        )
    return paired


def _targets(written: list[str], place: str) -> list[str]:
    """Return the checked names of the targets. Raises InputError."""
    names: dict[str, str] = {}
    for text in written:
        try:
            name = target_name(text)
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
        if (other := names.setdefault(clean_name(name), name)) != name:
            raise InputError(
                f"{place}: the targets {other} and {name} would share one folder in the record; give one of "
                f"them another name in ~/.ssh/config"
            )
    if len(names) < len(written):
        raise InputError(
            f"{place}: a target is named twice; name it once, and set repeats to measure it several times"
        )
    return list(names.values())


def _check_bootable(targets: list[str], place: str) -> None:
    """Raise InputError if rtgauge cannot boot one of the targets."""
    for name in targets:
        if guest_kind(name) is None:
            how = (
                f"boot it with the parameters that `rtgauge deploy cmdline DEPLOYMENT --target {name}` "
                "prints, and measure it with the deployment as-is"
            )
            raise InputError(
                f"{place}: for a deployment, rtgauge can boot only guests of the lab (--target lab:NAME), "
                f"not {name}; {how}"
            )


def _ordered(
    keys: list[StepKey], target: str, repeats: int, generator: random.Random | None
) -> list[StepKey]:
    """Return the steps of one target, shuffled again in each repeat; in the order of `keys` if `generator` is
    None.
    """
    ordered: list[StepKey] = []
    for repeat in range(1, repeats + 1):
        block = [
            key.model_copy(update={"repeat": repeat, "targets": {**key.targets, SELF: target}})
            for key in keys
        ]
        if generator is not None:
            generator.shuffle(block)
        ordered += block
    return ordered


def _check_peers(keys: list[StepKey], targets: list[str], place: str) -> None:
    """Raise InputError if a target is its own peer."""
    for key in keys:
        if key.peer is not None and key.peer.target in targets:
            raise InputError(
                f"{place}: {key.peer.target} is both the target and the peer; leave peer out, so that one "
                "machine plays both roles"
            )


def load_plan(source: str, overrides: Overrides) -> Plan:
    """Read and check the preset or file `source`. Raises InputError, which names the place in the file."""
    return make_plan(*read_plan(source), overrides)


def make_plan(written: dict[str, Any], source_name: str, overrides: Overrides) -> Plan:
    """Check the content of a plan file. `source_name` names it in errors. Raises InputError."""
    try:
        plan = PlanFile.model_validate(written)
    except ValidationError as error:
        raise explain(error, source_name, plan_keys()) from None
    entries, allowed = step_entries(plan, source_name)
    entries = under_each(entries, overrides.loads, overrides.deployments)
    if not entries:
        raise InputError(f"{source_name} does not contain any step; add a [[step]] or a [matrix]")
    repeats = overrides.repeats or plan.repeats
    targets = (
        _targets(overrides.targets, COMMAND_LINE)
        if overrides.targets
        else _targets(plan.targets, source_name)
    )
    if len(entries) * repeats * len(targets) > MAX_STEPS:
        raise InputError(
            f"{source_name} has {len(entries) * repeats * len(targets)} steps, counting repeats and "
            f"targets, but a run can measure at most {MAX_STEPS}; remove some"
        )
    by_boot = (overrides.boot or plan.boot) is not None
    if by_boot:
        _check_bootable(targets, source_name)
    seed = (
        overrides.seed
        if overrides.seed is not None
        else plan.seed
        if plan.seed is not None
        else secrets.randbelow(2**32)
    )
    generator = random.Random(seed)  # noqa: S311 - a repeatable order, not a secret
    if not all(entry.in_kernel for entry in entries):
        entries = [entry for entry in entries if not entry.is_only_for_others(overrides.parameters, allowed)]
    keys = [entry.checked_with(overrides.parameters, allowed) for entry in entries]
    _check_peers(keys, targets, source_name)
    ordered = [
        step
        for target in targets
        for step in _ordered(keys, target, repeats, generator if plan.order == "random" else None)
    ]
    raised = [*plan.raised, *overrides.raised]
    controller = Controller(tuple(raised)) if plan.controller or overrides.controller or raised else None
    tool = overrides.cross_check or plan.cross_check
    return Plan(
        name=plan.name,
        description=plan.description,
        seed=seed,
        require=overrides.require if overrides.require is not None else plan.require,
        cross_check=tool,
        load_warm_up_ns=plan.load_warm_up_ns,
        controller=controller,
        targets=targets,
        steps=_with_cross_checks(list(dict.fromkeys(ordered)), tool),
        written=written,
        by_boot=by_boot,
        allow_left_out=overrides.allow_left_out or plan.allow_left_out,
    )
