# SPDX-License-Identifier: MIT
"""Parameter `rt`: what a co-kernel is refused, which engine is started, and how a record says what
measured.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.support.local_target import LocalTarget

from rtgauge.errors import InputError, MeasureError
from rtgauge.plan.make_plan import Overrides, load_plan
from rtgauge.probe.descriptor import normalise
from rtgauge.probe.probe_registry import PROBES
from rtgauge.record.facts import Facts, Kernel, RealTimeCore
from rtgauge.record.model import Mark, StepKey
from rtgauge.runner import choice, scope
from rtgauge.runner.choice import choose_runtime
from rtgauge.runner.engine import check_engine_starts
from rtgauge.system.runtime import runtime_of
from rtgauge.target.file_batch import Files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.target.target_protocol import Target

CAPTURED = Path(__file__).parents[1] / "data"
ON_COBALT = (
    "wakeup",
    "periodic",
    "response",
    "noise",
    "switch",
    "preempt",
    "semaphore",
    "inversion",
    "taskset",
    "tire",
)
LEAST = {"taskset": {"task": [{"name": "a", "period": "10ms", "execution": "1ms"}]}, "watch": {"pid": 1}}


@pytest.mark.parametrize("name", [name for name in ON_COBALT if name in PROBES])
def test_the_engine_is_undetermined_what_it_runs_on(name: str):
    probe = PROBES[name]
    written = LEAST.get(name, {})
    if "path" in probe.parameters.model_fields:
        written = {**written, "path": "loop:mqueue"}
    on_linux, on_cobalt = normalise(probe, written, "x"), normalise(probe, {**written, "rt": "cobalt"}, "x")
    assert (on_linux.rt, on_cobalt.rt) == ("linux", "cobalt")
    assert probe.arguments(on_linux, None) == probe.arguments(on_cobalt, None)


@pytest.mark.parametrize("name", sorted(set(PROBES) - set(ON_COBALT) - {"calibrate"}))
def test_other_probes_do_not_take_it(name: str):
    with pytest.raises(InputError, match="rt"):
        normalise(PROBES[name], {**LEAST.get(name, {}), "rt": "cobalt"}, "x")


@pytest.mark.parametrize("name", ["periodic", "response"])
def test_a_line_that_stays_with_the_cokernel_is_the_default(name: str):
    assert normalise(PROBES[name], {"rt": "cobalt"}, "x").path == "loop:mqueue"
    assert normalise(PROBES[name], {}, "x").path == "loop:eventfd"
    assert (
        normalise(PROBES[name], {"rt": "cobalt", "path": "loop:pipe"}, "x").path == "loop:pipe"
    )  # which its engine refuses


@pytest.mark.parametrize(
    "written",
    [
        {"peer": "ssh://desk", "path": "udp:board:7000"},
        {"instrument": "serial:/dev/ttyACM0", "path": "gpio:gpiochip0:1,2"},
    ],
)
def test_two_machines_and_a_cokernel_are_refused(written: dict[str, str]):
    name = next(iter(written))
    with pytest.raises(InputError, match=f"with {name}, the task would drive its line through Linux"):
        normalise(PROBES["response"], {**written, "rt": "cobalt"}, "x")


def test_an_unknown_runtime_is_refused():
    with pytest.raises(InputError, match="rt"):
        normalise(PROBES["wakeup"], {"rt": "windows"}, "x")


def test_a_step_of_before_the_choice_ran_on_linux():
    key = StepKey(
        probe="wakeup",
        parameters={"interval_ns": 1},
        load="idle",
        deployment="as-is",
        targets={"self": "local"},
        repeat=1,
    )
    assert key.rt == "linux"
    assert key.model_copy(update={"parameters": {"rt": "cobalt"}}).rt == "cobalt"


def test_the_engine_of_a_cokernel_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    engine = tmp_path / "engine"
    engine.write_text("#!/bin/sh\n")
    engine.chmod(0o755)
    monkeypatch.setenv("RTGAUGE_ENGINE_COBALT", str(engine))
    assert runtime_of("cobalt").engine("x86_64") == engine
    engine.chmod(0o644)
    with pytest.raises(MeasureError, match="xeno-config"):
        runtime_of("cobalt").engine("x86_64")


COBALT = {"name": "Xenomai Cobalt", "version": "3.2.7"}
RTAI = {"name": "RTAI", "version": "5.3.4"}


@pytest.mark.parametrize(
    ("extension", "installed", "runtime", "why"),
    [
        (COBALT, "cobalt", "cobalt", "its kernel has Xenomai Cobalt 3.2.7"),
        (COBALT, None, "linux", "the engine for cobalt is missing"),
        ({**RTAI, "modules": ["rtai_hal", "rtai_sched"]}, "rtai", "rtai", "its kernel has RTAI 5.3.4"),
        ({**RTAI, "modules": ["rtai_hal"]}, "rtai", "linux", "rtai_sched is not loaded"),
        (RTAI, "rtai", "linux", "rtai_sched is not loaded"),
        ({"name": "EVL"}, "cobalt", "linux", "does not have Cobalt or RTAI"),
        ({"name": "none"}, "cobalt", "linux", "does not have Cobalt or RTAI"),
    ],
)
def test_auto_is_the_cokernel_that_is_there_and_has_an_engine(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    extension: dict[str, object],
    installed: str | None,
    runtime: str,
    why: str,
):
    engine = tmp_path / "engine"
    engine.write_text("#!/bin/sh\n")
    engine.chmod(0o755)
    for name in ("cobalt", "rtai"):
        monkeypatch.setenv(
            f"RTGAUGE_ENGINE_{name.upper()}", str(engine if name == installed else tmp_path / "none")
        )
    chosen, reason = choose_runtime(RealTimeCore.model_validate(extension), "x86_64")
    assert chosen == runtime
    assert why in reason


def steps_of(tmp_path: Path, *steps: str) -> list[StepKey]:
    plan = tmp_path / "plan.toml"
    plan.write_text("".join(f'[[step]]\nprobe = "wakeup"\nload = "idle"\n{step}\n' for step in steps))
    return load_plan(str(plan), Overrides()).steps


def on_runtime(
    steps: list[StepKey], extension: dict[str, object], *, loaded: bool
) -> tuple[list[StepKey], str]:
    facts = Facts(kernel=Kernel(extension=RealTimeCore.model_validate(extension)))
    target = SimpleNamespace(name="board", machine="x86_64")
    marks: list[Mark] = []
    context = SimpleNamespace(facts=facts, target=target, loaded_cokernels={"rtai"} if loaded else set())
    chosen = choice._on_chosen_runtime(steps, cast("Any", context), marks)
    return chosen, " ".join(mark.detail for mark in marks)


def test_auto_that_becomes_the_same_step_is_measured_once(tmp_path: Path):
    steps = steps_of(tmp_path, "", 'rt = "auto"')
    chosen, reported = on_runtime(steps, {"name": "none"}, loaded=False)
    assert [key.rt for key in chosen] == ["linux"]
    assert "same as another step" in reported
    chosen, reported = on_runtime(steps_of(tmp_path, 'rt = "auto"'), {"name": "none"}, loaded=False)
    assert "the same" not in reported


def test_auto_does_not_depend_on_the_other_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """For a step with rt rtai, rtgauge itself loads RTAI to read its calibration."""
    engine = tmp_path / "engine"
    engine.write_text("#!/bin/sh\n")
    engine.chmod(0o755)
    monkeypatch.setenv("RTGAUGE_ENGINE_RTAI", str(engine))
    modules = {**RTAI, "modules": ["rtai_hal", "rtai_sched"]}
    steps = steps_of(tmp_path, 'rt = "rtai"', 'rt = "auto"\ninterval = "2ms"')
    assert [key.rt for key in on_runtime(steps, modules, loaded=False)[0]] == ["rtai", "rtai"]
    chosen, reported = on_runtime(steps, modules, loaded=True)
    assert sorted(key.rt for key in chosen) == ["linux", "rtai"]  # the plan draws the order
    assert "rtai_sched" in reported


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (('rt = "rtai"\nrtai-latency = "50us,40us"', 'rt = "rtai"\ninterval = "2ms"'), None),
        (('rt = "rtai"\nrtai-latency = "50us,40us"', 'rt = "linux"'), "50000ns,40000ns"),
    ],
    ids=["another step calibrates", "every step says it"],
)
def test_a_step_does_not_get_the_latency_of_another(
    steps: tuple[str, ...], expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    loaded: list[object] = []
    monkeypatch.setattr(
        scope, "insert_cokernel", lambda key, *_: loaded.append(key.parameters.get("rtai_latency"))
    )
    monkeypatch.setattr(scope, "put_back", lambda *_: None)
    with scope.with_cokernels(steps_of(tmp_path, *steps), cast("Any", None), lambda _: None):
        pass
    assert loaded == [expected]


def test_a_tool_that_checks_needs_to_know_the_runtime(tmp_path: Path):
    plan = tmp_path / "plan.toml"
    plan.write_text('[[step]]\nprobe = "wakeup"\nrt = "auto"\n')
    with pytest.raises(InputError, match="rt auto does not say which"):
        load_plan(str(plan), Overrides(cross_check="cyclictest"))


@pytest.mark.parametrize(
    ("tool", "checked"), [("xenomai-latency", "cobalt"), ("rtai-latency", "rtai"), ("cyclictest", "linux")]
)
def test_a_tool_checks_what_it_can_measure(tmp_path: Path, tool: str, checked: str):
    plan = tmp_path / "plan.toml"
    plan.write_text('[matrix]\nprobe = "wakeup"\nrt = ["linux", "cobalt", "rtai"]\n')
    steps = load_plan(str(plan), Overrides(cross_check=tool)).steps
    assert [key.rt for key in steps if key.tool == tool] == [checked]
    assert len(steps) == 4


class EngineTarget(LocalTarget):
    """A machine whose copy of the engine is this program, and on which there are these files of Xenomai's."""

    machine = "x86_64"

    def __init__(self, engine: Path, files: dict[str, str]) -> None:
        super().__init__()
        self._engine = engine
        self._texts = files

    def read(self, paths: Sequence[str]) -> Files:
        return Files(
            {
                path: {"text": self._texts[path]} if path in self._texts else {"error": "ENOENT"}
                for path in paths
            }
        )

    def put(self, file: Path) -> str:
        assert file == self._engine
        return str(file)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo rtgauge-engine 1", None),
        (
            (
                "echo engine: error while loading shared libraries: libcobalt.so.2: cannot open shared "
                "object file: No such file or directory >&2; exit 127"
            ),
            "needs libcobalt.so.2, which is not on the target; install Xenomai's libraries",
        ),
        (
            "echo engine: version GLIBC_9 not found >&2; exit 1",
            "does not start on the target: engine: version GLIBC_9 not found",
        ),
        ("exit 126", "it ended with status 126"),
    ],
)
def test_an_engine_that_cannot_be_loaded_says_why_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str | None
):
    engine = tmp_path / "engine"
    engine.write_text(f"#!/bin/sh\n{script}\n")
    engine.chmod(0o755)
    monkeypatch.setenv("RTGAUGE_ENGINE_COBALT", str(engine))
    target = cast("Target", EngineTarget(engine, {"/proc/xenomai/version": "3.2.7"}))
    if words is None:
        check_engine_starts("cobalt", target)
        return
    with pytest.raises(MeasureError, match=words):
        check_engine_starts("cobalt", target)


@pytest.mark.parametrize(
    ("runtime", "core", "lacks"),
    [
        ("cobalt", "/proc/xenomai/version", "this kernel has no Xenomai 3"),
        ("rtai", "/proc/ipipe/version", "this kernel has no I-pipe, which RTAI needs; boot a kernel"),
    ],
)
def test_a_missing_core_is_named_before_a_missing_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: str, core: str, lacks: str
):
    missing = tmp_path / "engine"
    monkeypatch.setenv(f"RTGAUGE_ENGINE_{runtime.upper()}", str(missing))
    with pytest.raises(MeasureError, match=lacks):
        check_engine_starts(runtime, cast("Target", EngineTarget(missing, {})))
    with pytest.raises(MeasureError, match=f"the engine for {runtime} is missing"):
        check_engine_starts(runtime, cast("Target", EngineTarget(missing, {core: "1"})))


def test_the_missing_cobalt_kernel_is_named_before_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    engine = tmp_path / "engine"
    engine.write_text(
        "#!/bin/sh\necho engine: error while loading shared libraries: libcobalt.so.2: no >&2\nexit 127\n"
    )
    engine.chmod(0o755)
    monkeypatch.setenv("RTGAUGE_ENGINE_COBALT", str(engine))
    with pytest.raises(MeasureError, match="this kernel has no Xenomai 3"):
        check_engine_starts("cobalt", cast("Target", EngineTarget(engine, {})))
