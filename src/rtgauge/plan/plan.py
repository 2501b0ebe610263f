# SPDX-License-Identifier: MIT
"""Makes a checked plan from a plan file or preset: every step, in the order of measuring."""

from __future__ import annotations

import itertools
import random
import secrets
import tomllib
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import ValidationError

from rtgauge.errors import InputError
from rtgauge.input_file import read_toml
from rtgauge.load import registry as loads
from rtgauge.plan.plan_file import CROSS_CHECK_TOOLS, STEP_KEYS, PlanFile, plan_keys
from rtgauge.probe import registry as probes
from rtgauge.probe.descriptor import key_names, normalise
from rtgauge.probe.explain_parameters import KEYS as EXPLAIN_KEYS
from rtgauge.probe.registry import AnyProbe
from rtgauge.probe.signal_parameters import SignalParameters, other_role
from rtgauge.record.files import clean_name
from rtgauge.record.model import COKERNELS, StepKey
from rtgauge.record.parameters import Parameters
from rtgauge.suggest import nearest
from rtgauge.system.deployment.definition import AS_IS, Deployment, parse_deployment
from rtgauge.system.priorities import Controller
from rtgauge.target.address import LAB, LOCAL, target_name
from rtgauge.validation import explain

DMA_LATENCY = "dma-latency"
SELF = "self"
MAX_STEPS = 10_000
COMMAND_LINE = "command line"


@dataclass(frozen=True)
class Overrides:
    """Options of the command line, which take precedence over the plan. None: the plan decides."""

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
    deployments_by: Literal["settings", "boot"] | None = None


@dataclass(frozen=True)
class Plan:
    """A plan that was checked: every step in the order in which it is measured."""

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
    """Whether the machine is booted for each deployment, instead of set while it runs."""
    allow_left_out: bool = False
    """Whether the requirement may hold even if a load or a step could not be measured."""


def parse_setting(text: str, option: str) -> tuple[str, object]:
    """Parse `"interval=100us"` into the key and its value: a whole number, true or false, or text.

    `option` names the option in errors. Raises InputError.
    """
    key, sign, value = (part.strip() for part in text.partition("="))
    if not sign or not key:
        raise InputError(f"{option} {text}: write KEY=VALUE, for example interval=100us")
    return key, int(value) if value.isdigit() else {"true": True, "false": False}.get(value, value)


def presets() -> dict[str, str]:
    """Return the description of every preset by its name."""
    folder = resources.files("rtgauge.plan") / "presets"
    plans = {
        entry.name.removesuffix(".toml"): tomllib.loads(entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    }
    return {name: plans[name].get("description", "") for name in sorted(plans)}


def _written(source: str) -> tuple[dict[str, Any], str]:
    """Return the TOML of a preset or a file, and its name for errors."""
    preset = resources.files("rtgauge.plan") / "presets" / f"{source}.toml"
    path = Path(source)
    if "/" not in source and not source.endswith(".toml") and preset.is_file():
        return tomllib.loads(preset.read_text(encoding="utf-8")), f"preset {source}"
    if not path.exists():
        if source.endswith(".toml") or "/" in source:
            raise InputError(f"there is no plan file {source}")
        raise InputError(f"unknown plan '{source}'{nearest(source, presets())} (or the path of a TOML file)")
    return read_toml(path, f"plan {source}"), f"plan {source}"


def _step_key(entry: dict[str, Any], place: str) -> StepKey:
    try:
        probe = probes.get(str(entry.get("probe", probes.DEFAULT)))
        load = str(entry.get("load", "idle"))
        loads.get(load)
        deployment = parse_deployment(str(entry.get("deployment", AS_IS)))
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    written = {name: value for name, value in entry.items() if name not in STEP_KEYS}
    for name in written:
        if name not in key_names(probe):
            raise InputError(f"{place}: unknown key '{name}'{nearest(name, [*STEP_KEYS, *key_names(probe)])}")
    _keep_c_states(deployment, written, probe, place)
    parameters = normalise(probe, written, place)
    return StepKey(
        probe=probe.name,
        parameters=parameters,
        load=load,
        deployment=deployment.name,
        targets={SELF: LOCAL, **_peer(parameters)},
        repeat=1,
    )


def _peer(parameters: Parameters) -> dict[str, str]:
    """Return the role that another machine plays, and that machine."""
    if not isinstance(parameters, SignalParameters) or parameters.peer is None:
        return {}
    return {other_role(parameters.role): parameters.peer}


def _keep_c_states(deployment: Deployment, written: dict[str, Any], probe: AnyProbe, place: str) -> None:
    """If the deployment has C-states on, keep the probe from disabling them."""
    if deployment.c_states != "on" or DMA_LATENCY not in key_names(probe):
        return
    if written.setdefault(DMA_LATENCY, "off") != "off":
        raise InputError(
            f"{place}: {DMA_LATENCY}={written[DMA_LATENCY]} keeps C-states off, but the deployment "
            f"{deployment.name} has them on; leave it out"
        )


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merge two entries. A key of `above` replaces its alternatives in `below` too: a count replaces a
    duration.
    """
    probe = probes.PROBES.get(str(above.get("probe", below.get("probe", probes.DEFAULT))))
    replaced = {
        other
        for group in (probe.parameters.alternatives if probe is not None else ())
        if group & above.keys()
        for other in group
    }
    return {key: value for key, value in below.items() if key not in replaced} | above


def _checked(entry: dict[str, Any], place: str, parameters: dict[str, Any], known: set[str]) -> StepKey:
    """Check a step as the plan has it, then with the command line's parameters; an error names the parameter
    that is wrong.
    """
    key = _step_key(entry, place)
    fitting = _fitting(parameters, entry, known)
    if "probe" in fitting:  # the other probe may not know the keys that the plan sets
        entry = {name: value for name, value in entry.items() if name in _names({"probe": fitting["probe"]})}
    return _step_key(_over(entry, fitting), COMMAND_LINE) if fitting else key


def _only_for_others(entry: dict[str, Any], place: str, overrides: Overrides, known: set[str]) -> bool:
    """Return whether a parameter of the command line, such as a path within user space, does not fit a step
    in kernel space.
    """
    if entry.get("space") != "kernel" or "space" in overrides.parameters:
        return False
    _step_key(entry, place)
    try:
        _checked(entry, place, overrides.parameters, known)
    except InputError:
        return True
    return False


def _names(entry: dict[str, Any]) -> set[str]:
    probe = probes.PROBES.get(str(entry.get("probe", probes.DEFAULT)))
    return {*STEP_KEYS, *(key_names(probe) if probe is not None else ())}


def _known(entries: list[dict[str, Any]]) -> set[str]:
    """Return the keys that any step of a plan knows."""
    probes_named = {str(entry.get("probe", probes.DEFAULT)) for entry in entries}
    return set[str]().union(*(_names({"probe": name}) for name in probes_named))


def _fitting(parameters: dict[str, Any], entry: dict[str, Any], known: set[str]) -> dict[str, Any]:
    """Return the parameters that this entry's probe knows. A key that is not in `known`, the keys of all
    steps, stays, so that it is refused.
    """
    elsewhere = known - _names(entry)
    if (
        entry.get("space") == "kernel" and "space" not in parameters
    ):  # only steps in user space can be explained
        elsewhere |= EXPLAIN_KEYS
    return {key: value for key, value in parameters.items() if key not in elsewhere}


def _combinations(matrix: dict[str, Any], place: str) -> list[dict[str, Any]]:
    """Return every combination of the matrix's lists; a value that is not a list is the same in all of
    them.
    """
    if not matrix:
        return []
    axes = [cast("list[Any]", value) if isinstance(value, list) else [value] for value in matrix.values()]
    for name, axis in zip(matrix, axes, strict=True):
        if not axis:
            raise InputError(
                f"{place}: the matrix is empty: '{name}' is an empty list; name at least one value"
            )
    if len(list(itertools.islice(itertools.product(*axes), MAX_STEPS + 1))) > MAX_STEPS:
        raise InputError(f"{place}: the matrix has more than {MAX_STEPS} combinations")
    return [dict(zip(matrix, values, strict=True)) for values in itertools.product(*axes)]


def _with_cross_checks(steps: list[StepKey], tool: str | None) -> list[StepKey]:
    """Add the cross-check of each step that the tool can measure, directly after it.

    Raises InputError if the tool is unknown, or can measure none of the steps.
    """
    if tool is None:
        return steps
    if tool not in CROSS_CHECK_TOOLS:
        raise InputError(f"--cross-check: unknown tool '{tool}'{nearest(tool, CROSS_CHECK_TOOLS)}")
    paired: list[StepKey] = []
    for step in steps:
        paired.append(step)
        checked_by = probes.get(step.probe).cross_checked_by
        if step.rt == "auto" and any(
            checked_by(tool, step.parameters.but(rt=rt)) for rt in ("linux", *COKERNELS)
        ):
            raise InputError(
                f"cross-check {tool}: each tool measures either Linux or a co-kernel; name one instead of "
                f"rt auto"
            )
        if checked_by(tool, step.parameters):
            paired.append(step.model_copy(update={"tool": tool}))
    if len(paired) == len(steps):
        raise InputError(
            f"cross-check {tool}: it cannot check any of the steps; it measures {probes.measured_by(tool)}"
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
                f"{place}: the targets {other} and {name} would have one folder in the record; give "
                "one another name in ~/.ssh/config"
            )
    if len(names) < len(written):
        raise InputError(
            f"{place}: a target is named twice; name each once, and measure more often with repeats"
        )
    return list(names.values())


def _check_bootable(targets: list[str], place: str) -> None:
    """Raise InputError if rtgauge cannot boot one of the targets."""
    for name in targets:
        if not name.startswith(LAB):
            how = "boot it by hand with what `rtgauge deploy cmdline NAME` prints, and measure as-is"
            raise InputError(
                f"{place}: deployments by boot are for guests of the lab (--target lab:NAME), not "
                f"for {name}: {how}"
            )


def _ordered(
    keys: list[StepKey], target: str, repeats: int, generator: random.Random | None
) -> list[StepKey]:
    """Return the steps of one target, shuffled anew in each repeat; in the order of `keys` if `generator` is
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
    """Raise InputError if a target would be its own peer."""
    for key in keys:
        if key.peer is not None and key.peer.target in targets:
            raise InputError(
                f"{place}: {key.peer.target} is the target and its own peer; for both roles on one "
                "machine leave peer out"
            )


def _but_for_the_load(entries: list[tuple[dict[str, Any], str]]) -> list[tuple[dict[str, Any], str]]:
    """Return one entry of each group that differs only in the load."""
    first: dict[str, tuple[dict[str, Any], str]] = {}
    for entry, place in entries:
        first.setdefault(
            repr(sorted((key, value) for key, value in entry.items() if key != "load")), (entry, place)
        )
    return list(first.values())


def load_plan(source: str, overrides: Overrides) -> Plan:
    """Read and check the preset or file `source`. Raises InputError with one line that names the place."""
    written, source_name = _written(source)
    return make_plan(written, source_name, overrides)


def make_plan(written: dict[str, Any], source_name: str, overrides: Overrides) -> Plan:
    """Check the content of a plan file. `source_name` names it in errors. Raises InputError."""
    try:
        plan = PlanFile.model_validate(written)
    except ValidationError as error:
        raise explain(error, source_name, plan_keys()) from None
    bare = [
        *((entry, f"{source_name}, step {i}") for i, entry in enumerate(plan.step, 1)),
        *((entry, f"{source_name}, matrix") for entry in _combinations(plan.matrix, source_name)),
    ]
    # A step may take its probe from the defaults.
    own_entries = [{"probe": plan.defaults.get("probe", probes.DEFAULT), **entry} for entry, _ in bare]
    known = _known(own_entries)
    entries = [
        (_over(_fitting(plan.defaults, own, known), entry), place)
        for own, (entry, place) in zip(own_entries, bare, strict=True)
    ]
    if overrides.loads is not None:
        entries = [
            ({**entry, "load": load}, place)
            for entry, place in _but_for_the_load(entries)
            for load in overrides.loads
        ]
    if overrides.deployments is not None:
        entries = [
            ({**entry, "deployment": deployment}, place)
            for entry, place in entries
            for deployment in overrides.deployments
        ]
    if not entries:
        raise InputError(f"{source_name} has no step: give it a [[step]] or a [matrix]")
    repeats = overrides.repeats or plan.repeats
    targets = (
        _targets(overrides.targets, COMMAND_LINE)
        if overrides.targets
        else _targets(plan.targets, source_name)
    )
    if len(entries) * repeats * len(targets) > MAX_STEPS:
        raise InputError(
            f"{source_name}: {repeats} repeats of {len(entries)} steps on {len(targets)} target(s) "
            f"are more than {MAX_STEPS}"
        )
    by_boot = (overrides.deployments_by or plan.deployments_by) == "boot"
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
    known = _known([entry for entry, _ in entries])
    if any(entry.get("space") != "kernel" for entry, _ in entries):
        entries = [
            (entry, place) for entry, place in entries if not _only_for_others(entry, place, overrides, known)
        ]
    keys = [_checked(entry, place, overrides.parameters, known) for entry, place in entries]
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
