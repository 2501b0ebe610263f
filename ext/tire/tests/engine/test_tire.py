# SPDX-License-Identifier: MIT
"""tire: the physics is right, every solver and every number of threads computes the same, and what is counted
adds up.
"""

from __future__ import annotations

import shutil
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.engine.stream import CPUS, FIFO, POLICY, Live, Stream, refusal, refused, run

from ext.tire.tests.engine.tires import STEP_S, Tire, defaults, largest_eigenvalue, simulate
from rtgauge.record.histogram import decode
from rtgauge_ext.tire.motion import TireFrame
from rtgauge_ext.tire.state_file import read_state
from rtgauge_ext.tire.tire_probe import most_damping

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.engine
SOLVERS = ["serial", "halo", "semaphore"]
PERIOD_NS = 2_000_000


def tire(engine: Path, *words: str, policy: str = POLICY, **options: Any) -> Stream:
    return run(engine, "tire", "--go", f"--policy={policy}", "--warm-up-ns=5000000", *words, **options)


def values(stream: Stream) -> dict[str, Any]:
    result = stream.one("result")
    assert result["name"] == "tire"
    return result["values"]


def state_after(engine: Path, folder: Path, steps: int, *words: str) -> bytes:
    """The bytes of the state file."""
    file = folder / "state"
    stream = tire(engine, f"--steps={steps}", f"--state={file}", *words)
    assert (stream.reason, values(stream)["steps"]) == ("count", steps)
    return file.read_bytes()


def nodes_of(folder: Path) -> np.ndarray:
    return read_state(folder / "state").nodes


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "model",
    [
        Tire(4),
        Tire(8),
        Tire(12, mass=1, radius=2, height=0),
        Tire(60, speed=3),
        Tire(100, height=0.05, gravity=1.62),
        Tire(20, stiffness=100, damping=1.5),
    ],
    ids=lambda model: f"{model.nodes}",
)
def test_it_is_what_numpy_integrates(engine: Path, tmp_path: Path, model: Tire, solver: str) -> None:
    for steps in (1, 30, 150):
        state_after(engine, tmp_path, steps, f"--solver={solver}", *model.options)
        actual, expected = nodes_of(tmp_path), simulate(model, steps)
        assert np.abs(actual - expected).max() < 1e-9, steps
    assert read_state(tmp_path / "state").steps == 150


def test_the_floor_is_reached_and_not_passed(engine: Path, tmp_path: Path) -> None:
    state_after(engine, tmp_path, 31, "--nodes=40")
    assert nodes_of(tmp_path)[:, 1].min() > 0, "0.5 m take 0.32 s"
    state_after(engine, tmp_path, 200, "--nodes=40")
    assert nodes_of(tmp_path)[:, 1].min() == 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_momentum_stays_without_gravity_and_floor(engine: Path, tmp_path: Path, solver: str) -> None:
    model = Tire(48, gravity=0, floor=False, speed=2, mass=7)
    state_after(engine, tmp_path, 10, f"--solver={solver}", *model.options)
    nodes = nodes_of(tmp_path)
    momentum = nodes[:, 2:].sum(axis=0) * model.mass / model.nodes
    assert np.allclose(momentum, [14, 0], atol=1e-12)
    assert np.allclose(nodes[:, 0].mean(), 0.2, atol=1e-12), "2 m/s for 0.1 s"
    lengths = np.linalg.norm(nodes[:24, :2] - nodes[24:, :2], axis=1)
    assert lengths.std() + abs(lengths.mean() - 0.6) > 1e-3, (
        "a rolling tire that does not stretch has no forces to conserve anything against"
    )


@pytest.mark.parametrize("nodes", [4, 8, 36, 1000, 4100])
def test_every_solver_and_number_of_threads_gives_the_same_bits(
    engine: Path, tmp_path: Path, nodes: int
) -> None:
    words = [f"--nodes={nodes}", "--speed-nm-s=1500000000"]
    steps = 120 if nodes < 2000 else 40
    expected = state_after(engine, tmp_path, steps, "--solver=serial", *words)
    for solver in ("halo", "semaphore"):
        most = nodes // 2 if solver == "halo" else nodes
        for threads in sorted({1, 2, 3, min(most, 7)}):
            if threads <= most:
                assert (
                    state_after(engine, tmp_path, steps, f"--solver={solver}", f"--threads={threads}", *words)
                    == expected
                ), (solver, threads)


def test_a_period_changes_nothing_in_the_physics(engine: Path, tmp_path: Path) -> None:
    expected = state_after(engine, tmp_path, 50, "--nodes=400")
    stream = tire(
        engine,
        "--steps=50",
        "--nodes=400",
        f"--period-ns={20 * PERIOD_NS}",
        f"--state={tmp_path / 'paced'}",
        "--threads=2",
    )
    if values(stream)["missed"] == 0:  # an activation that is missed is a step less
        assert (tmp_path / "paced").read_bytes() == expected


def test_the_state_file_is_as_documented(engine: Path, tmp_path: Path) -> None:
    data = state_after(engine, tmp_path, 3, "--nodes=4")
    magic, nodes, steps = struct.unpack_from("<8sqq", data)
    assert (magic, nodes, steps, len(data)) == (b"rtgtire\x01", 4, 3, 24 + 4 * 32)
    assert np.array_equal(np.frombuffer(data[24:], "<f8").reshape(4, 4), nodes_of(tmp_path))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("policy", [FIFO, "other"])
def test_real_fast_adds_up(engine: Path, solver: str, policy: str) -> None:
    threads = 1 if solver == "serial" else 3
    stream = tire(
        engine,
        "--duration-ns=1000000000",
        "--nodes=1200",
        f"--solver={solver}",
        f"--threads={threads}",
        policy=policy,
    )
    assert (stream.reason, stream.status) == ("duration", 0)
    assert [(line["metric"], line["labels"]["solver"]) for line in stream.all("series")] == [
        ("step-time", solver)
    ]
    actual, summary = values(stream), stream.one("summary")
    assert (actual["mode"], actual["nodes"], actual["threads"]) == ("real-fast", 1200, threads)
    assert summary["lost"] == summary["missed"] == summary["impossible"] == 0
    assert actual["steps"] == summary["count"] * actual["block"] > 0
    assert abs(summary["sum_ns"] * actual["block"] - actual["wall_ns"]) <= actual["steps"], (
        "means are rounded to whole ns"
    )
    assert (
        abs(actual["node_steps_per_s"] - 1200 * actual["steps"] / actual["wall_ns"] * 1e9)
        < 1e-6 * actual["node_steps_per_s"]
    )
    assert actual["step_min_ns"] == summary["min_ns"]
    assert actual["step_max_ns"] == summary["max_ns"]
    paused = (
        actual["step_max_ns"] * actual["block"] > 100_000_000
    )  # the machine as a whole: who has not worked needs no rest
    assert paused or (actual["rest_ns"] > 0) == (policy == "fifo"), (
        "a real-time policy leaves the machine a fifth"
    )
    assert actual["wall_ns"] + actual["rest_ns"] > 200_000_000
    assert actual["steps"] < 256 or (actual["barrier_ns"] is None) == (threads == 1)
    assert actual["cpu_ns"] > 0
    assert actual["activations"] is actual["deadline_missed"] is None


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_real_time_adds_up(engine: Path, threads: str) -> None:
    stream = tire(
        engine, "--duration-ns=400000000", f"--period-ns={PERIOD_NS}", "--nodes=400", f"--threads={threads}"
    )
    assert (stream.reason, stream.status) == ("duration", 0)
    assert [line["metric"] for line in stream.all("series")] == ["latency", "response", "slack"]
    actual = values(stream)
    assert actual["mode"] == "real-time"
    assert actual["activations"] == 200
    assert actual["deadline_missed"] == actual["late"] + actual["missed"]
    assert actual["steps"] + actual["missed"] == 200
    latency, response, slack = stream.all("summary")
    for item in (latency, response, slack):
        assert (item["count"], item["missed"]) == (actual["steps"], 0 if item is slack else actual["missed"])
        windows = stream.windows(item["series"])
        assert sum(window["count"] for window in windows) == item["count"]
        assert sum(number for window in windows for _, number in window["missed_bins"]) == item["missed"]
    assert latency["min_ns"] <= response["min_ns"]
    assert slack["sum_ns"] == PERIOD_NS * actual["steps"] - response["sum_ns"]
    assert slack["min_ns"] == PERIOD_NS - response["max_ns"]
    assert (slack["min_ns"] < 0) == (actual["late"] > 0)


def test_a_period_shorter_than_a_step_says_what_is_needed(engine: Path) -> None:
    stream = tire(
        engine,
        "--duration-ns=50000000",
        "--period-ns=100000",
        "--nodes=40000",
        "--solver=serial",
        policy="other",
    )
    actual = values(stream)
    assert actual["deadline_missed"] == actual["activations"] == 500
    assert actual["late"] == actual["steps"]
    slack = stream.all("summary")[2]
    assert slack["max_ns"] < 0
    assert slack["impossible"] == 0
    assert slack["count"] == actual["steps"]
    mark = next(mark for mark in stream.all("mark") if mark["name"] == "period-short")
    assert f"takes at least {actual['step_min_ns'] // 1000} us" in mark["detail"]


@pytest.mark.real_time
def test_steps_that_leave_nothing_to_the_machine_are_ended(engine: Path) -> None:
    """A period far shorter than a step leaves less than itself after each."""
    stream = tire(
        engine, "--duration-ns=20000000000", "--period-ns=10000", "--nodes=1000000", "--solver=serial"
    )
    assert (stream.reason, stream.status) == ("overload", 0)
    assert {"overload", "period-short"} <= set(stream.marks)
    actual = values(stream)
    assert actual["late"] == actual["steps"] > 0
    assert actual["deadline_missed"] == actual["activations"] < 2_000_000


def test_free_running_takes_every_step_and_meets_at_no_barrier(engine: Path, tmp_path: Path) -> None:
    words = ["--solver=semaphore", "--free-running", "--nodes=80", "--threads=2"]
    stream = tire(engine, *words, "--steps=3000", f"--state={tmp_path / 'state'}")
    actual = values(stream)
    assert (actual["steps"], actual["barrier_ns"]) == (3000, None)
    assert np.isfinite(nodes_of(tmp_path)).all()
    assert nodes_of(tmp_path)[:, 1].min() >= 0
    alone = state_after(engine, tmp_path, 100, "--solver=semaphore", "--nodes=80")
    assert state_after(engine, tmp_path, 100, *words[:-1], "--threads=1") == alone, (
        "with one thread nobody is ahead"
    )


@pytest.mark.parametrize("without", ["springs", "integration"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_step_can_do_without_a_part(engine: Path, solver: str, without: str) -> None:
    stream = tire(engine, "--steps=400", "--nodes=400", f"--solver={solver}", f"--without={without}")
    assert stream.one("hello")["parameters"]["without"] == without
    assert (values(stream)["steps"], values(stream)["step_min_ns"] > 0) == (400, True)


@pytest.mark.parametrize(
    ("word", "threads"), [("one", 1), ("hardware-threads", len(CPUS)), ("twice", 2 * len(CPUS))]
)
def test_threads_by_meaning(engine: Path, word: str, threads: int) -> None:
    assert values(tire(engine, "--steps=10", f"--threads={word}"))["threads"] == threads
    assert 1 <= values(tire(engine, "--steps=10", "--threads=cores"))["threads"] <= len(CPUS)


def test_threads_go_round_the_cpus(engine: Path) -> None:
    stream = tire(engine, "--steps=10", f"--cpu={CPUS[-1]}", "--threads=3")
    assert stream.one("hello")["cpus"] == [CPUS[-1]]
    assert tire(engine, "--steps=10").one("hello")["cpus"] == CPUS[:1]
    assert tire(engine, "--steps=10").one("series")["labels"] == {"cpu": CPUS[0], "solver": "halo"}


def test_the_warm_up_is_no_part_of_the_simulation(engine: Path, tmp_path: Path) -> None:
    states = [
        state_after(engine, tmp_path, 20, f"--warm-up-ns={warm_up}", "--nodes=40")
        for warm_up in (0, 3_000_000, 40_000_000)
    ]
    assert states[0] == states[1] == states[2]


@pytest.mark.parametrize("period", [0, PERIOD_NS])
def test_it_is_stopped_in_order(engine: Path, period: int) -> None:
    with Live(
        engine, "tire", f"--policy={POLICY}", f"--period-ns={period}", "--threads=3", "--nodes=400"
    ) as live:
        live.read_until("armed")
        live.send("go\n")
        live.read_until("window")
        live.storm(5)
        live.send("stop\n")
        stream = live.finish()
    assert (stream.reason, stream.status) == ("stopped", 0)
    actual = values(stream)
    assert actual["steps"] == sum(window["count"] for window in stream.windows(0)) * actual["block"] > 0
    assert actual["late"] is None or actual["activations"] == actual["steps"] + actual["missed"]


@pytest.mark.parametrize("nodes", [4, 8, 16, 60])
def test_the_bound_of_stability_is_that_of_the_graph(nodes: int) -> None:
    assert np.isclose(
        most_damping(nodes, 10), 2 * 10 / (nodes * 0.01 * largest_eigenvalue(nodes)), rtol=1e-12
    )


@pytest.mark.parametrize("nodes", [4, 40, 1000])
def test_inside_of_the_bound_it_stays_and_outside_it_does_not(
    engine: Path, tmp_path: Path, nodes: int
) -> None:
    most = most_damping(nodes, 10)
    edge = Tire(nodes, damping=most * 0.999, stiffness=most * 0.998 / 0.01)
    state_after(engine, tmp_path, 3000, *edge.options)
    assert np.abs(nodes_of(tmp_path)).max() < 100
    message = refused(engine, "unstable", 2, "tire", "--go", *Tire(nodes, damping=most * 1.001).options)
    assert f"at most {most:.4g}"[:12] in message
    refused(
        engine,
        "unstable",
        2,
        "tire",
        "--go",
        *Tire(nodes, damping=most / 2, stiffness=most * 0.502 / 0.01).options,
    )
    few = min(nodes, 40)
    outside = Tire(few, damping=most_damping(few, 10) * 1.02, stiffness=1e-3 / few, floor=False, speed=1)
    with np.errstate(all="ignore"):
        assert not np.abs(simulate(outside, 3000)).max() < 100, "the bound is no wider than it has to be"


@pytest.mark.parametrize("nodes", [4, 8, 12, 20, 100, 400, 2000, 10_000])
def test_the_defaults_are_stable(engine: Path, tmp_path: Path, nodes: int) -> None:
    state_after(engine, tmp_path, 6000 if nodes < 5000 else 2000, f"--nodes={nodes}")
    actual = nodes_of(tmp_path)
    assert np.abs(actual[:, :2]).max() < 5
    assert np.abs(actual[:, 2:]).max() < 0.5, "after a minute it rests"
    small = np.abs(actual[actual != 0])
    assert small.min() > np.finfo(np.float64).tiny, "no number is too small for full precision"


def test_the_choices_of_the_engine_are_reported(engine: Path) -> None:
    actual = values(tire(engine, "--steps=5", "--nodes=40"))
    assert np.allclose((actual["stiffness"], actual["damping"]), defaults(Tire(40)), rtol=1e-12)


@pytest.mark.parametrize(
    ("code", "words", "reported"),
    [
        ("usage", ["--nodes=4001"], "multiple of 4"),
        ("usage", ["--nodes=4001"], "use 4000 or 4004"),
        ("usage", ["--nodes=0"], "number of nodes must be from 4 to"),
        ("usage", ["--nodes=-4"], "number of nodes must be from 4 to"),
        ("usage", ["--nodes=16000004"], "number of nodes must be from 4 to"),
        ("usage", ["--nodes=8", "--threads=9", "--solver=semaphore"], "9 threads are more than 8 nodes"),
        ("usage", ["--nodes=8", "--threads=5"], "5 threads are more than 4 pairs of nodes"),
        ("usage", ["--threads=2", "--solver=serial"], "has one"),
        ("usage", ["--threads=0"], "number of threads must be from 1 to"),
        ("usage", ["--threads=1025"], "number of threads must be from 1 to"),
        ("usage", ["--threads=many"], '"one", "cores", "hardware-threads" or "twice"'),
        ("usage", ["--free-running"], "works only with --solver semaphore"),
        ("usage", ["--without=springs", "--state=/tmp/never"], "nothing is simulated"),
        ("usage", ["--steps=5", "--duration-ns=5"], "not both"),
        ("usage", ["--steps=9000000000000000", "--period-ns=3600000000000"], "70 years"),
        ("interval", ["--period-ns=999"], "shorter than the shortest time that a thread can sleep"),
        ("unstable", ["--stiffness-nn-m=100000000000"], "at most"),
    ],
)
def test_what_cannot_be_is_refused(engine: Path, code: str, words: list[str], reported: str) -> None:
    assert reported in refused(engine, code, 2, "tire", "--go", f"--policy={POLICY}", *words)


@pytest.fixture
def open_engine(engine: Path) -> Iterator[Path]:
    """The engine where any user can start it."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield Path(shutil.copy(engine, folder))
    shutil.rmtree(folder)


@pytest.mark.root
def test_memory_that_may_not_be_locked(open_engine: Path) -> None:
    words = ["tire", "--go", "--policy=other", "--steps=5", "--nodes=400000"]
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    error = refusal(
        open_engine, "memory-lock", 3, *words, prefix=["prlimit", f"--memlock={8 << 20}", *nobody]
    )
    assert error["detail"]["memlock_limit_bytes"] == 8 << 20


@pytest.mark.root
def test_memory_that_is_not_there(engine: Path, tmp_path: Path) -> None:
    """Refused before the kernel has to end somebody."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 90000 kB\nMemAvailable:   51200 kB\n")
    pretend = ["unshare", "--mount", "sh", "-c", f'mount --bind {meminfo} /proc/meminfo && exec "$@"', "sh"]
    words = ["tire", "--go", f"--policy={POLICY}", "--steps=1"]
    message = refused(engine, "memory", 3, *words, "--nodes=2000000", prefix=pretend)
    assert "63 MiB of locked memory" in message
    assert run(engine, *words, "--nodes=400000", prefix=pretend).reason == "count"


def test_a_state_that_cannot_be_written(engine: Path, tmp_path: Path) -> None:
    message = refused(
        engine,
        "output",
        3,
        "tire",
        "--go",
        f"--policy={POLICY}",
        "--steps=5",
        f"--state={tmp_path / 'no' / 'such'}",
    )
    assert "No such file" in message


def frames_of(stream: Stream) -> list[dict[str, Any]]:
    """Each with its positions in m, a row a node."""
    frames = stream.all("frame")
    for frame in frames:
        assert set(frame) == {"type", *TireFrame.model_fields}
        TireFrame.model_validate(frame)
        units, _ = decode([frame["positions"]])
        frame["positions"] = np.cumsum(units.reshape(-1, 2), axis=0) * frame["unit_m"]
    return frames


def watch(engine: Path, count: int, *words: str) -> Stream:
    """The stream of a tire that somebody watches for so many frames and then stops."""
    with Live(engine, "tire", f"--policy={POLICY}", "--warm-up-ns=5000000", *words) as live:
        live.send("watch\ngo\n")
        while live.text.count(b'{"type":"frame",') < count:
            live.read_more()
        live.send("stop\n")
        return live.finish()


@pytest.mark.parametrize(
    "words",
    [("--period-ns=20000000",), ("--solver=semaphore", "--threads=2", "--period-ns=20000000"), ()],
    ids=["timed", "threads", "fast"],
)
def test_frames_show_the_tire_as_it_falls(engine: Path, words: tuple[str, ...]) -> None:
    model = Tire(40, height=1000, radius=0.5, floor=False, speed=1)
    stream = watch(engine, 5, *model.options, *words)
    frames = frames_of(stream)
    steps = [frame["step"] for frame in frames]
    assert steps == sorted(set(steps))
    assert steps[-1] <= values(stream)["steps"]
    for frame in frames:
        positions, step = frame["positions"], frame["step"]
        assert (frame["every"], len(positions)) == (1, 40)
        # The centre of mass is in free fall; explicit Euler, whose first step moves by the first velocity.
        centre = 1000.5 - 9.81 * STEP_S**2 * step * (step - 1) / 2
        assert np.allclose(
            positions.mean(axis=0), [STEP_S * step, centre], atol=frame["unit_m"] + 1e-6 * abs(centre)
        )
    if step < 1000:
        assert np.abs(positions - simulate(model, step)[:, :2]).max() < 2 * frame["unit_m"]


def test_frames_hold_some_of_many_nodes_and_fewer_if_short(engine: Path) -> None:
    for period_ns, most in ((20_000_000, 1024), (1_000_000, 250)):
        frame = frames_of(watch(engine, 1, "--nodes=4000", "--gravity-nm-s2=0", f"--period-ns={period_ns}"))[
            0
        ]
        assert len(frame["positions"]) == -(-4000 // frame["every"]) <= most < 2 * len(frame["positions"])
        assert (
            np.abs(np.linalg.norm(frame["positions"] - frame["positions"].mean(axis=0), axis=1) - 0.3).max()
            < 2 * frame["unit_m"]
        )


def test_frames_come_only_between_watch_and_unwatch(engine: Path) -> None:
    unwatched = tire(engine, "--nodes=400", f"--period-ns={PERIOD_NS}", "--duration-ns=200000000")
    assert not unwatched.all("frame")
    assert (values(unwatched)["frames"], values(unwatched)["frames_late"]) == (0, 0)
    with Live(engine, "tire", f"--policy={POLICY}", "--period-ns=5000000") as live:
        live.send("watch\ngo\n")
        live.read_until("frame")
        live.send("unwatch\n")
        while b'"window"' not in live.text.rpartition(b'{"type":"frame"')[2].partition(b"\n")[2]:
            live.read_more()
        live.send("stop\n")
        stream = live.finish()
    kinds = [line["type"] for line in stream.lines]
    assert stream.reason == "stopped"
    assert values(stream)["frames"] >= len(stream.all("frame"))
    assert "frame" not in kinds[len(kinds) - kinds[::-1].index("window") :]


def test_frames_change_no_result(engine: Path, tmp_path: Path) -> None:
    """A step more or less would be another state; one that is read while it is computed would be no
    circle.
    """
    expected = state_after(engine, tmp_path, 100_000, "--nodes=40", "--threads=2")
    with Live(
        engine,
        "tire",
        "--steps=100000",
        "--nodes=40",
        "--threads=2",
        f"--policy={POLICY}",
        f"--state={tmp_path / 'watched'}",
    ) as live:
        live.send("watch\ngo\n")
        stream = live.finish()
    assert stream.reason == "count"
    assert (tmp_path / "watched").read_bytes() == expected
