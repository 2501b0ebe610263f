# SPDX-License-Identifier: MIT
"""Whatever ends a step, and however far it got, its load is stopped and its deployment put back; only what goes
on by itself behind a broken connection is left.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from rtgauge.errors import MeasureError
from rtgauge.load.lifecycle import EMULATED_READY_S, READY_S
from rtgauge.record.facts import Facts
from rtgauge.record.model import LoadReport, StepKey
from rtgauge.runner import scope, step
from rtgauge.runner.context import LoadFailed, TargetContext
from rtgauge.runner.deployments import nothing_set
from rtgauge.runner.interrupt import Abandoned
from rtgauge.runner.step import State, StepRun
from rtgauge.target.file_batch import Files
from rtgauge.target.ssh_errors import ConnectionBroken

if TYPE_CHECKING:
    from rtgauge.runner.context import StepInProgress

KEY = StepKey(
    probe="noise", parameters={"count": 1}, load="cpu", deployment="M", targets={"self": "local"}, repeat=1
)


class Bench:
    """A target, a load and a measurer that write down what happens, and fail at `fails_at` with `error`."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        fails_at: str,
        error: BaseException,
        *,
        alone: bool = True,
        emulated: bool = False,
    ) -> None:
        self.events: list[str] = []
        self.ready_s = 0.0
        self.goes_on_alone = alone
        self._fails_at, self._error = fails_at, error
        progress = SimpleNamespace(phase=lambda _text: None)
        interrupt = SimpleNamespace(requested=False, stop_by=lambda _stop: None)
        run = SimpleNamespace(progress=progress, interrupt=interrupt, controller=None, load_warm_up_s=0.0)
        target = SimpleNamespace(name="local", read=lambda _paths: Files())
        deployments = SimpleNamespace(
            not_put_back=[], sets_as_is=False, bring_about=lambda _name: (nothing_set(), None)
        )
        facts = Facts.model_validate({"machine": {"emulated": emulated}})
        context = TargetContext(cast("Any", run), cast("Any", target), facts, [], cast("Any", deployments))
        monkeypatch.setattr(step, "measurer_of", lambda _key: self)
        monkeypatch.setattr(step.StepRun, "_expected_s", 0.0)
        monkeypatch.setattr(step.RunningLoad, "start", lambda *_parts, **_names: self)
        monkeypatch.setattr(scope, "put_back", lambda *_parts: self.events.append("put back"))
        self.run = StepRun("01", KEY, context, Path())

    def _reach(self, place: str) -> None:
        self.events.append(place)
        if place == self._fails_at:
            raise self._error

    def wait_warm(self, _seconds: float, ready_s: float) -> None:
        self.ready_s = ready_s
        self._reach("warm")

    def begin(self) -> None:
        self._reach("load begins")

    def stop(self) -> LoadReport:
        self.events.append("load stops")
        return LoadReport(name="cpu")

    def measure(self, begun: StepInProgress) -> Any:
        self._reach("arm")
        begun.begin()
        self._reach("measure")
        return self

    def settle(self, _ended: object) -> tuple[Any, Any]:
        self._reach("settle")
        return "step", "windows"

    def measured(self) -> tuple[Any, Any]:
        with self.run as run:
            run.set()
            run.begin()
            run.measure()
            return run.end()


ALL = ["warm", "arm", "load begins", "measure", "load stops", "settle"]


def test_a_step_takes_all_states_and_undoes_in_order(monkeypatch: pytest.MonkeyPatch):
    bench = Bench(monkeypatch, "nowhere", MeasureError(""))
    assert bench.measured() == ("step", "windows")
    assert bench.events == [*ALL, "load stops", "put back"], "a load that is stopped again stays stopped"
    assert bench.run.state is State.SETTLED


@pytest.mark.parametrize(("emulated", "ready_s"), [(False, READY_S), (True, EMULATED_READY_S)])
def test_an_emulated_load_may_start_later(emulated: bool, ready_s: float, monkeypatch: pytest.MonkeyPatch):
    bench = Bench(monkeypatch, "nowhere", MeasureError(""), emulated=emulated)
    bench.measured()
    assert bench.ready_s == ready_s


@pytest.mark.parametrize("place", ["arm", "load begins", "measure", "settle"])
@pytest.mark.parametrize("error", [MeasureError("refused"), Abandoned(), KeyboardInterrupt()])
def test_whatever_ends_a_step_is_undone(place: str, error: BaseException, monkeypatch: pytest.MonkeyPatch):
    bench = Bench(monkeypatch, place, error)
    with pytest.raises(type(error)):
        bench.measured()
    assert bench.events == [*ALL[: ALL.index(place) + 1], "load stops", "put back"]
    assert bench.run.state is State.SETTLED


def test_a_load_that_does_not_warm_up_is_stopped_and_named(monkeypatch: pytest.MonkeyPatch):
    bench = Bench(monkeypatch, "warm", MeasureError("stress died"))
    with pytest.raises(LoadFailed, match="load cpu: stress died"):
        bench.measured()
    assert bench.events == ["warm", "load stops", "put back"]


@pytest.mark.parametrize(("alone", "stopped"), [(True, []), (False, ["load stops"])])
def test_behind_a_broken_connection_the_load_stays(
    alone: bool, stopped: list[str], monkeypatch: pytest.MonkeyPatch
):
    bench = Bench(monkeypatch, "measure", ConnectionBroken("gone"), alone=alone)
    with pytest.raises(ConnectionBroken):
        bench.measured()
    assert bench.events == [*ALL[:4], *stopped], "its guard puts the deployment back, not we"
