# SPDX-License-Identifier: MIT
"""Co-kernels of extensions: one that a made-up extension knows, and a core that knows none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from rtgauge import extension
from rtgauge.errors import InputError, MeasureError
from rtgauge.record.facts import RealTimeCore
from rtgauge.record.model import StepKey
from rtgauge.runner.choice import choose_runtime
from rtgauge.runner.scope import needs_of, with_cokernels
from rtgauge.system.runtime import Need, Runtime, cokernel_paths, real_time_core, runtime_of
from rtgauge.target.file_batch import Files

if TYPE_CHECKING:
    from pathlib import Path

READABLE = {
    "/proc/sys/kernel/osrelease": {"text": "6.12.0\n"},
    "/sys/devices/system/cpu/online": {"text": "0-1\n"},
}


class ToyRuntime(Runtime):
    """A co-kernel that is there if /proc/toy is."""

    def facts(self, files: Files) -> RealTimeCore | None:
        return RealTimeCore(name=self.core, version="1") if files.exists("/proc/toy") else None

    def needs(self, files: Files) -> list[Need]:
        return []


TOY = ToyRuntime(
    name="cobalt",
    core="Toy",
    config="toy-config",
    kernel_file="/proc/toy",
    no_core="this kernel has no Toy",
    missing_library="install Toy",
    early="toy-calibrate",
    method="Toy measures.",
    page="toy.md",
    fact_paths=["/proc/toy"],
)


def step(rt: str) -> StepKey:
    return StepKey(
        probe="wakeup",
        parameters={"rt": rt},
        load="idle",
        deployment="as-is",
        targets={"self": "local"},
        repeat=1,
    )


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The runtimes of all extensions: none, until a test adds one."""
    runtimes: dict[str, str] = {}

    def registered(kind: str) -> dict[str, str]:
        assert kind == "runtimes"
        return runtimes

    monkeypatch.setattr(extension, "registered", registered)
    return runtimes


@pytest.mark.usefixtures("known")
def test_without_extensions_the_core_is_unknown_and_rt_refused() -> None:
    assert cokernel_paths() == []
    assert real_time_core(Files(cast("Any", READABLE))).name is None
    assert choose_runtime(RealTimeCore(), "x86_64").why == "no installed extension measures on a co-kernel"
    with pytest.raises(InputError, match="cannot measure on cobalt"):
        runtime_of("cobalt")
    with (
        pytest.raises(InputError, match="measure on cobalt"),
        with_cokernels([step("cobalt")], cast("Any", None), print),
    ):
        pass
    with pytest.raises(InputError, match="measure on cobalt"):
        needs_of(step("cobalt"))


def test_an_extension_says_whether_its_cokernel_is_there(
    known: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known["cobalt"] = f"{__name__}:TOY"
    monkeypatch.setattr(extension, "imported", lambda _reference: TOY)
    assert cokernel_paths() == ["/proc/toy"]
    assert real_time_core(Files(cast("Any", READABLE))).name == "none"
    actual = real_time_core(Files(cast("Any", {**READABLE, "/proc/toy": {"text": "1"}})))
    assert (actual.name, actual.version) == ("Toy", "1")
    monkeypatch.setenv("RTGAUGE_ENGINE_COBALT", str(tmp_path / "none"))
    with pytest.raises(MeasureError, match=r"toy-config in PATH, or set RTGAUGE_ENGINE_COBALT \(toy.md\)"):
        runtime_of("cobalt").engine("x86_64")
    assert choose_runtime(actual, "x86_64").name == "linux"
    engine = tmp_path / "engine"
    engine.touch(mode=0o755)
    monkeypatch.setenv("RTGAUGE_ENGINE_COBALT", str(engine))
    assert choose_runtime(actual, "x86_64") == ("cobalt", "its kernel has Toy 1")
    with with_cokernels([step("cobalt"), step("linux")], cast("Any", None), print) as loaded:
        assert loaded == frozenset()
