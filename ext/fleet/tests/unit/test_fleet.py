# SPDX-License-Identifier: MIT
"""A fleet with a stand-in for the command on the boards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.messages import missing

from rtgauge.cli.main import main
from rtgauge.errors import InputError, MeasureError
from rtgauge.record.own_folder import OwnFolder
from rtgauge.record.reader import Record
from rtgauge.verdict.gate_result import GateResult
from rtgauge_ext.fleet.fleet import COMMAND, FLEET_LOCK, Fleet
from rtgauge_ext.fleet.fleet_plan import FleetPlan
from rtgauge_ext.store import queries
from rtgauge_ext.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[4]
STAND_IN = (sys.executable, "-m", "ext.fleet.tests.stand_in")
JOBS = """
[[jobs]]
name = "idle"
[[jobs]]
name = "loaded"
plan = "standard"
"""

ONE_JOB = JOBS[: JOBS.index("[[jobs]]", 10)]
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from rtgauge_ext.fleet.fleet import Fleet
from rtgauge_ext.fleet.fleet_plan import FleetPlan
path = Path(sys.argv[1])
Fleet(FleetPlan.read(path), path.with_suffix(''), lambda x: print(x, flush=True), sys.argv[2:]).run()
"""
DAMAGED_STATES = [
    b"", b"{", b"[]", b"null", b"{}", b'{"status": "0", "said": "x"}', b'{"status": 7, "said": "x"}',
    b'{"status": 0}', b'{"status": 0, "said": 5}', b"\xff", b'{"status": 0, "said": "x"',
    b"[" * 100_000,
]  # fmt: skip


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("GO", str(tmp_path / "go"))


def write_plan(folder: Path, boards: Iterable[str], jobs: str = JOBS) -> Path:
    text = f'store = "{folder}/store.sqlite"\nat-once = 3\n'
    text += "".join(f'[[boards]]\nname = "{name}"\ntarget = "ssh://{name}"\n' for name in boards)
    path = folder / "plan.toml"
    path.write_text(text + jobs)
    return path


def fleet(path: Path) -> tuple[Fleet, list[str]]:
    reported: list[str] = []
    return Fleet(FleetPlan.read(path), path.with_suffix(""), reported.append, STAND_IN), reported


def calls(folder: Path) -> list[str]:
    return sorted((folder / "calls").read_text().splitlines())


def stored(folder: Path) -> list[str]:
    rows = queries.records(Store.open(folder / "store.sqlite"), queries.RecordFilter())
    return sorted(machine for row in rows for machine in row.machines)


def test_a_job_runs_no_python_code_of_the_present_folder(tmp_path: Path) -> None:
    for name in ("rtgauge", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('foreign code')")
    completed = subprocess.run(
        [*COMMAND, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "foreign code" not in completed.stderr
    assert completed.returncode == 0


@pytest.mark.parametrize("words", ["--load cpu", "--budget 1h"])
def test_resume_refuses_options_with_what_the_fleet_does(
    tmp_path: Path, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_plan(tmp_path, ["a", "b"])
    monkeypatch.setattr(sys, "argv", ["rtgauge", "resume", str(path), *words.split()])
    monkeypatch.setattr("rtgauge.cli.main.make_patient", lambda: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert not missing(capsys.readouterr().err, "the jobs idle, loaded", "2 boards")


def test_an_archive_is_answered_with_the_way_to_collect_records(tmp_path: Path) -> None:
    path = write_plan(tmp_path, ["a"])
    path.write_text(f'archive = "/srv/records"\n{path.read_text()}')
    with pytest.raises(InputError, match=r"archive no longer exists.*rsync"):
        FleetPlan.read(path)


def test_every_board_does_every_job_once(tmp_path: Path) -> None:
    path = write_plan(tmp_path, ["b1", "b2", "b3", "b4"])
    first, printed = fleet(path)
    assert first.run() == 0
    assert len(printed) == 8
    assert printed[-1].startswith("[8/8] ")
    names = sorted(f"name:b{n}" for n in (1, 2, 3, 4) for _ in range(2))
    assert stored(tmp_path) == names
    before = calls(tmp_path)
    again, _ = fleet(path)
    assert again.run() == 0
    assert calls(tmp_path) == before
    assert stored(tmp_path) == names


def test_a_board_that_keeps_failing_is_put_aside_alone(tmp_path: Path) -> None:
    path = write_plan(tmp_path, ["b1", "broken", "b2"])
    first, printed = fleet(path)
    assert first.run() == 3
    assert list(first.aside) == ["broken"]
    assert not missing(first.aside["broken"], "idle", "the board does not answer")  # as the job says
    assert sum("broken idle: failed" in line for line in printed) == 3
    assert stored(tmp_path) == ["name:b1", "name:b1", "name:b2", "name:b2"]
    again, _ = fleet(path)
    assert again.run() == 3
    assert calls(tmp_path).count("ssh://broken quick") == 3


def test_a_run_that_measured_nothing_says_why(tmp_path: Path) -> None:
    first, printed = fleet(write_plan(tmp_path, ["doubtful"], '[[jobs]]\nname = "idle"\n'))
    assert first.run() == 3
    assert "no value was measured" in first.aside["doubtful"]
    assert not any("page" in line for line in printed)


def test_a_requirement_that_fails_is_no_fault_of_the_board(tmp_path: Path) -> None:
    first, printed = fleet(write_plan(tmp_path, ["fails", "b1"]))
    assert first.run() == 1
    assert not first.aside
    assert any("fails idle: fails" in line for line in printed)


def test_a_run_without_a_requirement_does_not_hold(tmp_path: Path) -> None:
    path = write_plan(tmp_path, ["unasked"])
    first, printed = fleet(path)
    assert first.run() == 0
    assert not missing(printed[0], "unasked idle: measured", "nothing was required", "load network")
    again, said_again = fleet(path)
    assert again.run() == 0
    assert sorted(line.split(" (about ")[0] for line in printed) == sorted(said_again)


def test_a_store_that_is_away_is_filled_by_the_next_start(tmp_path: Path) -> None:
    path = write_plan(tmp_path, ["b1"])
    (tmp_path / "store.sqlite").mkdir()
    first, printed = fleet(path)
    assert first.run() == 3
    assert "not in the store" in printed[0]
    assert not first.aside
    (tmp_path / "store.sqlite").rmdir()
    before = calls(tmp_path)
    assert fleet(path)[0].run() == 0
    assert stored(tmp_path) == ["name:b1", "name:b1"]
    assert calls(tmp_path) == before


def test_a_killed_fleet_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    path = write_plan(tmp_path, ["b1", "slow"], ONE_JOB)
    killed = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path), *STAND_IN], stdout=subprocess.PIPE, text=True
    )
    assert killed.stdout is not None
    assert "b1 idle: holds" in killed.stdout.readline()
    with (tmp_path / "go").open("wb") as go:  # opens when the slow board measures
        killed.kill()
        killed.wait()
        go.write(b"go")
    again, _ = fleet(path)
    assert again.run() == 0
    assert stored(tmp_path) == ["name:b1", "name:slow"]
    assert calls(tmp_path) == ["ssh://b1 quick", "ssh://slow quick"]


@pytest.fixture
def finished_fleet(tmp_path: Path) -> Path:
    """The plan of a fleet whose only job has ended."""
    path = write_plan(tmp_path, ["b1"], ONE_JOB)
    assert fleet(path)[0].run() == 0
    return path


@pytest.mark.parametrize("content", DAMAGED_STATES)
def test_a_damaged_state_is_read_from_the_record(
    tmp_path: Path, finished_fleet: Path, content: bytes
) -> None:
    (tmp_path / "plan/b1/idle/state.json").write_bytes(content)
    again, printed = fleet(finished_fleet)
    assert again.run() == 0
    assert "state.json is damaged" in printed[0]
    assert "b1 idle: holds" in printed[1]
    assert calls(tmp_path) == ["ssh://b1 quick"]
    assert fleet(finished_fleet)[0].run() == 0, "the state is whole again"


def test_a_damaged_record_is_put_away_and_measured_again(tmp_path: Path, finished_fleet: Path) -> None:
    job = tmp_path / "plan/b1/idle"
    (record,) = job.glob("*Z-*")
    (record / "run.json").write_text("{")
    (job / "state.json").unlink()
    again, printed = fleet(finished_fleet)
    assert again.run() == 0
    assert "failed (1 of 3): " in printed[0]
    assert (job / "failed" / record.name).is_dir()
    assert calls(tmp_path) == ["ssh://b1 quick"] * 2


def place(path: Path, kind: str, victim: Path) -> None:
    """Put something there that no fleet makes."""
    match kind:
        case "link":
            path.symlink_to(victim)
        case "second name":
            path.hardlink_to(victim)
        case "FIFO":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.write_text("x")
            path.chmod(0o666)


@pytest.mark.parametrize("kind", ["link", "second name", "FIFO", "folder", "writable"])
@pytest.mark.parametrize("name", ["idle/lock", "idle/log.txt", "idle/state.json", "put-aside.txt"])
def test_what_others_may_have_made_is_left_alone(tmp_path: Path, name: str, kind: str) -> None:
    path = write_plan(tmp_path, ["b1", "b2"], ONE_JOB)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    at = tmp_path / "plan/b1" / name
    at.parent.mkdir(parents=True)
    place(at, kind, victim)
    for again in (False, True):
        running, printed = fleet(path)
        running.again = again
        assert running.run() == 3
        assert victim.read_text() == "precious"
        assert at.exists()
        assert list(running.aside) == ["b1"]
        assert "its folder" in running.aside["b1"]
        assert any("b2 idle: holds" in line for line in printed)
    assert calls(tmp_path) == ["ssh://b2 quick"]


@pytest.mark.root
@pytest.mark.parametrize("name", ["", "b1", "b1/idle", "b1/idle/RECORD"])
def test_a_folder_of_another_user_is_not_used(tmp_path: Path, finished_fleet: Path, name: str) -> None:
    (record,) = (tmp_path / "plan/b1/idle").glob("*Z-*")
    os.chown(tmp_path / "plan" / name.replace("RECORD", record.name), 65534, 65534)
    (tmp_path / "plan/b1/idle/state.json").unlink()
    again, _ = fleet(finished_fleet)
    if name:
        assert again.run() == 3
        assert "it belongs to another user" in again.aside["b1"]
    else:
        with pytest.raises(PermissionError, match="it belongs to another user"):
            again.run()
    assert calls(tmp_path) == ["ssh://b1 quick"]


def test_a_second_fleet_in_the_folder_says_so(finished_fleet: Path) -> None:
    with (
        OwnFolder.made(finished_fleet.with_suffix("")).lock(FLEET_LOCK),
        pytest.raises(MeasureError, match=r"another fleet is running in .*/plan: wait"),
    ):
        fleet(finished_fleet)[0].run()


def test_a_fleet_that_waits_for_a_run_ends_on_ctrl_c(tmp_path: Path) -> None:
    """Another thread takes the signal, so it does not wake the main thread, which may be about to wait."""
    waiting, printed = fleet(write_plan(tmp_path, ["b1"], ONE_JOB))

    def say(text: str) -> None:
        printed.append(text)
        signal.raise_signal(signal.SIGINT)

    waiting.notify = say
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with (
            OwnFolder.made(tmp_path / "plan/b1/idle").lock("lock"),
            pytest.raises(KeyboardInterrupt),
        ):
            waiting.run()
    finally:
        signal.signal(signal.SIGINT, before)
    assert "earlier rtgauge fleet" in printed[0]
    assert not (tmp_path / "calls").exists()


def test_a_fleet_interrupted_while_threads_start_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = fleet(write_plan(tmp_path, ["b1"], ONE_JOB))
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with (
        OwnFolder.made(tmp_path / "plan/b1/idle").lock("lock"),
        pytest.raises(KeyboardInterrupt),
    ):
        first.run()
    assert not (tmp_path / "calls").exists()


def test_a_gate_that_could_not_measure_says_why(tmp_path: Path) -> None:
    path = write_plan(tmp_path, ["gate"], '[[jobs]]\nname = "g"\nbaseline = "M"\ncandidate = "MI"\n')
    first, _ = fleet(path)
    assert first.run() == 3
    record = next((tmp_path / "plan/gate/g/failed").iterdir())
    assert first.aside["gate"] == f"g: {GateResult.final(Record.open(record)).conclusion}"


IMAGES = """
[[images]]
name = "old"
[[images]]
name = "new"
kernel = "6.1.*-amd64"
[[images]]
name = "wrong"
kernel = "6.12*-rt-*"
"""


def test_a_board_does_its_jobs_with_each_image(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        f'store = "{tmp_path}/store.sqlite"\ntries = 1\n{IMAGES}'
        '[[boards]]\nname = "guest"\ntarget = "ssh://{image}"\n'
        '[[boards]]\nname = "fixed"\ntarget = "ssh://fixed"\nimage = "new"\n'
        '[[jobs]]\nname = "all"\nimages = ["old", "new"]\n'
        '[[jobs]]\nname = "one"\nimages = ["wrong"]\n'
    )
    first, printed = fleet(path)
    assert [(task.board.name, task.name) for task in first.tasks] == [
        ("guest", "all-old"), ("guest", "all-new"), ("guest", "one-wrong"), ("fixed", "all"),
    ]  # fmt: skip
    assert first.run() == 3
    assert calls(tmp_path) == ["ssh://fixed quick", "ssh://new quick", "ssh://old quick", "ssh://wrong quick"]
    rows = queries.records(Store.open(tmp_path / "store.sqlite"), queries.RecordFilter())
    assert sorted((row.machines[0], row.labels["image"]) for row in rows) == [
        ("name:fixed", "new"), ("name:guest", "new"), ("name:guest", "old"),
    ]  # fmt: skip
    assert list(first.aside) == ["guest"]
    assert not missing(
        first.aside["guest"], "one-wrong", "kernel 6.1.0-18-amd64", "image wrong", "6.12*-rt-*"
    )
    assert any("left)" in line for line in printed)


@pytest.mark.parametrize(
    ("jobs", "expected_text"),
    [
        ("", "jobs"),
        ('[[jobs]]\nname = "a"\nbaseline = "M"\n', "baseline and candidate"),
        ('[[jobs]]\nname = "a"\ntags = ["arm"]\n', "none of the boards has the tags arm"),
        ('[[jobs]]\nname = "a"\n[[jobs]]\nname = "a"\n', "two jobs are called a"),
        ('[[jobs]]\nname = "put-aside.txt"\n', "has a job put-aside.txt"),
        (
            '[[boards]]\nname = "c"\ntarget = "lab:{image}"\n[[jobs]]\nname = "put"\n[[images]]\nname = "aside.txt"\n',
            "has a job put-aside.txt",
        ),
        ('[[jobs]]\nname = "../a"\n', "name"),
        ('[[jobs]]\nname = "a"\nplan = "--out=/"\n', "plan"),
        ('[[jobs]]\nname = "a"\nprogram = "sh"\n', "program"),
        (
            '[[jobs]]\nname = "a"\nboot-between = true\n',
            'boot-between no longer exists; write boot = "each-run"',
        ),
        ('[[jobs]]\nname = "a"\nboot = "each-deployment"\n', "is not one of 'each-run'"),
        ('[[jobs]]\nname = "a"\nimages = ["x"]\n', "the image x, which the plan does not list"),
        (
            '[[jobs]]\nname = "a"\nimages = ["x"]\n[[images]]\nname = "x"\n',
            "none of the boards has the images x",
        ),
        ('[[jobs]]\nname = "a"\n[[boards]]\nname = "c"\ntarget = "lab:{image}"\n', "stands for each image"),
        (
            '[[jobs]]\nname = "a"\n[[boards]]\nname = "c"\ntarget = "local"\nimage = "x"\n',
            "the image x, which the plan does not list",
        ),
    ],
)
def test_a_wrong_plan_is_refused(tmp_path: Path, jobs: str, expected_text: str) -> None:
    with pytest.raises(InputError, match=expected_text):
        FleetPlan.read(write_plan(tmp_path, ["b1"], jobs))


def test_jobs_choose_boards_by_their_tags_and_become_commands(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        '[[boards]]\nname = "a"\ntarget = "lab:debian"\ntags = ["x86"]\n'
        '[[boards]]\nname = "b"\ntarget = "ssh://b"\n'
        '[[jobs]]\nname = "new"\ntags = ["x86"]\nbaseline = "M"\ncandidate = "MI"\nmax-pairs = 6\n'
        'boot = "each-run"\npause-between = "1min"\n'
    )
    made, _ = fleet(path)
    (task,) = made.tasks
    assert task.board.name == "a"
    assert task.words == [
        "gate", "quick", "--target=lab:debian", "--baseline=M", "--candidate=MI", "--max-pairs=6",
        "--pause-between=1min", "--boot=each-run",
    ]  # fmt: skip
