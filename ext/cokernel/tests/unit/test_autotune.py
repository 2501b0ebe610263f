# SPDX-License-Identifier: MIT
"""calibrate on Cobalt: the latency around Xenomai's autotune, and the gravity, on a target that plays back
what a guest with 3.2.7 said.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.messages import missing

from rtgauge.errors import InputError, MeasureError
from rtgauge.probe.descriptor import normalise
from rtgauge.probe.probe_registry import PROBES
from rtgauge.record.model import LoadReport, Run, Step, StepKey
from rtgauge.record.reader import Record
from rtgauge.record.summary import summarise_step
from rtgauge.report.record_view import RecordView
from rtgauge.runner.context import NotHere, StepContext, StepInProgress
from rtgauge.runner.interrupt import Abandoned
from rtgauge.target.file_batch import Files
from rtgauge_ext.cokernel import autotune, cobalt_facts
from rtgauge_ext.cokernel.gravity import GRAVITY_PRESENTER

CAPTURED = Path(__file__).parents[1] / "data"
STREAMS = [CAPTURED / f"cobalt-{when}-autotune.ndjson" for when in ("before", "after")]
PRINTED = (CAPTURED / "cobalt-autotune.txt").read_bytes()
BEFORE = (CAPTURED / "cobalt-coreclk.txt").read_text()
AFTER = BEFORE.replace("irq=0 kernel=2000 user=2000", "irq=500 kernel=5500 user=5000")


class Program:
    """One that has printed its lines and ended."""

    pid, reconnections, kept = 1, 0, None

    def __init__(self, printed: bytes, status: int) -> None:
        self._printed, self._status = printed, status

    def lines(self, silence_s: float | None = None) -> Iterator[bytes]:
        return iter(self._printed.splitlines(keepends=True))

    def send(self, word: str) -> None:
        pass

    def wait(self, timeout_s: float | None = None) -> int:
        return self._status

    def stop(self, grace_s: float = 2.0) -> int:
        return self._status


class Guest:
    """A target with Xenomai. `printed`, `status`: of its autotune, None: it has none."""

    name, machine = "lab:xenomai", "x86_64"

    def __init__(self, printed: bytes | None = PRINTED, status: int = 0, *, driver: bool = True) -> None:
        self._printed, self._status, self._driver = printed, status, driver
        self._streams = iter(STREAMS)
        self._tuned = False
        self.agent_calls: list[tuple[str, ...]] = []

    def read(self, paths: list[str]) -> Files:
        texts = {
            cobalt_facts.CLOCK: {"text": AFTER if self._tuned else BEFORE},
            autotune.DEVICE: {"error": "EINVAL" if self._driver else "ENOENT"},
        }
        return Files({path: texts[path] for path in paths})

    def which(self, program: str) -> str | None:
        return program if self._printed is not None and program.endswith("/sbin/autotune") else None

    def put(self, file: Path) -> str:
        return str(file)

    def monotonic_ns(self) -> int:
        return 31_000_000_000 if self._tuned else 0

    def start(self, argv: list[str], log: Any = None, group: str | None = None) -> Program:
        if not argv[0].endswith("autotune"):
            return Program(next(self._streams).read_bytes(), 0)
        self._tuned = True
        log.write(self._printed)
        return Program(b"", self._status)

    def agent(self, *words: str) -> list[dict[str, Any]]:
        self.agent_calls.append(words)
        return []


class Progress:
    """Listens to nothing; `at` is told of every phase."""

    def __init__(self, at: Any = None) -> None:
        self._at = at

    def phase(self, text: str) -> None:
        if self._at is not None:
            self._at(text)

    def watched(self) -> bool:
        return False

    def series(self, lines: object) -> None:
        pass

    window = series


def measure(
    guest: Guest,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    keep: bool = False,
    stop_at: str | None = None,
) -> tuple[StepKey, Any]:
    engine = folder / "rtgauge-engine-cobalt"
    engine.touch(0o755)
    monkeypatch.setenv("RTGAUGE_ENGINE_COBALT", str(engine))
    interrupt = SimpleNamespace(requested=False, stop_by=id)

    def look(text: str) -> None:
        interrupt.requested |= stop_at is not None and stop_at in text

    key = StepKey(
        probe="calibrate",
        parameters=normalise(PROBES["calibrate"], {"rt": "cobalt", "keep": keep}, "x"),
        load="cpu",
        deployment="as-is",
        targets={"self": guest.name},
        repeat=0,
    )
    run = SimpleNamespace()
    context = cast(
        "StepContext",
        SimpleNamespace(
            key=key,
            target=guest,
            progress=Progress(look),
            interrupt=interrupt,
            group=None,
            on=SimpleNamespace(run=run),
        ),
    )
    steps = folder / "record" / "steps" / "01"
    steps.mkdir(parents=True)
    step = StepInProgress(context, steps, "2026-11-22T16:44:31Z", {}, None, lambda: None, ExitStack())
    return key, autotune.measure(step)


def test_the_latency_before_and_after_and_the_gravity_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    guest = Guest()
    key, measured = measure(guest, tmp_path, monkeypatch)
    summary = summarise_step(measured.windows, measured.result.series, measured.result.summaries)
    assert not summary.marks
    assert [
        (series.labels["role"], series.count, round(series.mean_ns or 0)) for series in summary.series
    ] == [
        ("before-autotune", 3000, 7696),
        ("after-autotune", 3000, 4688),
    ]
    assert summary.total is not None
    assert summary.total.count == 3000, "the two are no one distribution"
    gravity = {
        str(result.labels["role"]): result.values
        for result in measured.result.results
        if result.name == "gravity"
    }
    assert gravity == {
        "before-autotune": {"irq_ns": 0, "kernel_ns": 2000, "user_ns": 2000},
        "after-autotune": {"irq_ns": 500, "kernel_ns": 5500, "user_ns": 5000},
    }
    assert guest.agent_calls == [], "what it set is put back with everything else of the step"

    step = Step(
        id="01-calibrate-cpu", key=key, tool="rtgauge-engine-cobalt 0.1.0", started="2026-11-22T16:44:31Z",
        ended="2026-11-22T16:46:30Z", start_ns=0,
        end_ns=10**10, end_reason="duration", parameters={}, cpus=[0], load=LoadReport(name="cpu"),
        series=summary.series, total=summary.total,
        outliers=[], results=measured.result.results, marks=[],
    )  # fmt: skip
    run = Run(
        id="r",
        created="2026-11-22T16:44:31Z",
        state="complete",
        rtgauge="0.1.0",
        command=[],
        plan={},
        targets=["lab:xenomai"],
        steps=[step.id],
    )
    view = RecordView(Record(tmp_path, run, [step], {}))
    conclusion = GRAVITY_PRESENTER.conclusion(view, [step]) or ""
    before, after = "0.0 us irq, 2.0 us kernel, 2.0 us user", "0.5 us irq, 5.5 us kernel, 5.0 us user"
    assert not missing(conclusion, "autotune", f"from {before} to {after}", "7.7 us before", "4.7 us after")
    assert "restored" in conclusion
    chapter = GRAVITY_PRESENTER.chapter(view, [step], ())
    assert chapter is not None
    assert [len(grid.rows) for grid in cast("list[Any]", chapter.content)] == [2, 2]


def test_gravity_is_kept_if_requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    guest = Guest()
    _, measured = measure(guest, tmp_path, monkeypatch, keep=True)
    assert guest.agent_calls == [("set", "--keep", "--", cobalt_facts.CLOCK)]
    assert [result.values["kept"] for result in measured.result.results if result.name == "autotune"] == [
        True
    ]


@pytest.mark.parametrize("phase", ["autotune", "measuring"])
def test_a_run_stopped_during_autotune_keeps_nothing(
    phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    guest = Guest()
    with pytest.raises(Abandoned):
        measure(guest, tmp_path, monkeypatch, keep=True, stop_at=phase)
    assert guest.agent_calls == []


@pytest.mark.parametrize(
    ("printed", "status", "words"),
    [
        (b"", 1, "status 1: it printed nothing"),
        (b"autotune: cannot open autotune device: Device or resource busy\n", 1, "resource busy"),
        (PRINTED.replace(b"5000 ns", b""), 0, "auto-tuning completed"),
    ],
)
def test_an_autotune_that_fails_is_an_error_with_its_last_words(
    printed: bytes, status: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    guest = Guest(printed, status)
    with pytest.raises(MeasureError, match=words):
        measure(guest, tmp_path, monkeypatch, keep=True)
    assert guest.agent_calls == []


def test_a_target_without_autotune_says_what_is_missing():
    with pytest.raises(NotHere, match="install Xenomai's programs"):
        autotune.find_autotune(cast("Any", Guest(None)))
    with pytest.raises(NotHere, match="CONFIG_XENO_DRIVERS_AUTOTUNE"):
        autotune.find_autotune(cast("Any", Guest(driver=False)))


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"rt": "rtai"}, "RTAI calibrates itself"),
        ({"rt": "cobalt", "count": 5}, "count applies only to the clocks"),
        ({"keep": True}, "keep applies only to rt cobalt"),
        ({"interval": "1ms", "cpu": "0"}, "cpu and interval apply only to rt cobalt"),
    ],
)
def test_what_is_not_of_this_calibration_is_refused(written: dict[str, object], words: str):
    with pytest.raises(InputError, match=words):
        normalise(PROBES["calibrate"], written, "x")


def test_the_setting_that_is_put_back_is_the_one_that_is_read():
    assert PROBES["calibrate"].changes(normalise(PROBES["calibrate"], {"rt": "cobalt"}, "x")) == (
        cobalt_facts.CLOCK,
    )
    assert PROBES["calibrate"].changes(normalise(PROBES["calibrate"], {}, "x")) == ()
