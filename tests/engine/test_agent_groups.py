# SPDX-License-Identifier: MIT
"""Settings of threads and control groups, notes, gather and enter (docs/formats/agent.md)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.test_agent import PATIENCE_S, Agent, lines, rewrite, wait_gone

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.engine, pytest.mark.root]
SETTING = Path("/proc/sys/vm/stat_interval")
"""Not the one of test_agent, which may run beside."""


@pytest.fixture
def agent(engine: Path, tmp_path: Path) -> Agent:
    return Agent(engine, tmp_path)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "100"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def group() -> Iterator[Path]:
    """A group of our own, so that nothing of the machine is moved: version 2, or the freezer of version 1,
    which needs no settings.
    """
    roots = [Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup/freezer")]
    root = next(path for path in roots if (path / "cgroup.procs").exists())
    made = root / f"rtgauge-test-{uuid.uuid4()}"
    made.mkdir()
    yield made
    for below in made.iterdir():
        if below.is_dir():
            below.rmdir()
    for _ in range(100):
        try:
            made.rmdir()
            break
        except OSError:
            time.sleep(0.02)


def start_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def setting(process: subprocess.Popen[bytes], what: str) -> str:
    return f"thread:{process.pid}:{start_of(process.pid)}:{what}"


def policy(pid: int) -> tuple[int, int]:
    return os.sched_getscheduler(pid), os.sched_getparam(pid).sched_priority


def put_in(group: Path, pid: int) -> None:
    (group / "cgroup.procs").write_text(str(pid))


def members(group: Path) -> set[int]:
    return {int(pid) for pid in (group / "cgroup.procs").read_text().split()}


def test_a_threads_policy_and_affinity_are_set_and_put_back(
    agent: Agent, sleeper: subprocess.Popen[bytes]
) -> None:
    before = os.sched_getaffinity(sleeper.pid)
    cpu = min(before)
    status, report = agent.set(setting(sleeper, "policy"), "fifo 7", setting(sleeper, "affinity"), str(cpu))
    assert status == 0
    assert (report[0]["old"], report[0]["now"], report[0]["error"]) == ("other", "fifo 7", None)
    assert policy(sleeper.pid) == (os.SCHED_FIFO, 7)
    assert os.sched_getaffinity(sleeper.pid) == {cpu}
    status, report = agent.restore("--run", "r1")
    assert (status, report[-1]) == (0, {"type": "restored", "count": 2, "failed": 0})
    assert policy(sleeper.pid) == (os.SCHED_OTHER, 0)
    assert os.sched_getaffinity(sleeper.pid) == before


def test_a_stopped_process_continues_after_its_owners_death(
    agent: Agent, sleeper: subprocess.Popen[bytes]
) -> None:
    def state() -> str:
        return Path(f"/proc/{sleeper.pid}/stat").read_text().rpartition(")")[2].split()[0]

    with subprocess.Popen(["sleep", "1000"]) as owner:
        status, report = agent.set(
            setting(sleeper, "state"), "stopped", options=("--owner-pid", str(owner.pid))
        )
        assert (status, report[0]["old"], report[0]["now"]) == (0, "running", "stopped")
        assert state() == "T"
        owner.kill()
    status, report = agent.restore("--stale")
    assert (status, report[0]["action"], report[0]["now"]) == (0, "restored", "running")
    assert state() != "T"


@pytest.mark.parametrize(
    "words",
    ["fifo 1", "fifo 99", "rr 50", "batch", "idle", "other", "fifo 3 reset-on-fork", "batch reset-on-fork"],
)
def test_every_policy_is_read_back_as_it_was_written(
    agent: Agent, sleeper: subprocess.Popen[bytes], words: str
) -> None:
    status, report = agent.set(setting(sleeper, "policy"), words)
    assert (status, report[0]["now"]) == (0, words)
    assert agent.restore("--run", "r1")[0] == 0
    assert policy(sleeper.pid) == (os.SCHED_OTHER, 0)


def test_what_is_no_module_is_not_inserted_and_leaves_nothing(agent: Agent, tmp_path: Path) -> None:
    """That one is inserted and removed is for the lab."""
    file = tmp_path / "rtgauge_no_such.ko"
    file.write_text("no module")
    status, report = agent.set(f"module:{file}", "present")
    assert (status, report[0]["ok"]) == (3, False)
    assert report[0]["error"] in (
        {"ENOEXEC", "EPERM", "EKEYREJECTED"} if Path("/proc/modules").exists() else {"ENOSYS"}
    )
    assert agent.restore("--run", "r1")[0] == 0


@pytest.mark.parametrize(
    "words", ["fifo", "fifo 0", "fifo 100", "fifo -1", "other 5", "deadline", "", "fifo 5x", "FIFO 5"]
)
def test_no_policy_of_these_is_set(agent: Agent, sleeper: subprocess.Popen[bytes], words: str) -> None:
    status, report = agent.set(setting(sleeper, "policy"), words)
    assert (status, report[0]["ok"], report[0]["error"]) == (3, False, "EINVAL")
    assert policy(sleeper.pid) == (os.SCHED_OTHER, 0)


def test_another_thread_with_the_same_number_is_left_alone(
    agent: Agent, sleeper: subprocess.Popen[bytes]
) -> None:
    other = f"thread:{sleeper.pid}:{int(start_of(sleeper.pid)) + 1}:policy"
    status, report = agent.set(other, "fifo 7")
    assert (status, report[0]["error"]) == (3, "ESRCH")
    assert policy(sleeper.pid) == (os.SCHED_OTHER, 0)


def test_a_thread_that_ended_has_nothing_to_put_back(agent: Agent, sleeper: subprocess.Popen[bytes]) -> None:
    assert agent.set(setting(sleeper, "policy"), "fifo 7")[0] == 0
    sleeper.kill()
    sleeper.wait()
    status, report = agent.restore("--run", "r1")
    assert (status, report[0]["action"], report[0]["error"]) == (0, "gone", None)
    assert agent.file.read_text() == ""


def test_what_was_noted_is_put_back_whatever_stands_there(
    agent: Agent, sleeper: subprocess.Popen[bytes]
) -> None:
    before = SETTING.read_text().strip()
    everywhere = os.sched_getaffinity(sleeper.pid)
    try:
        status, report = agent.set(SETTING, setting(sleeper, "affinity"), options=("--note",))
        assert (status, [s["ok"] for s in report]) == (0, [True, True])
        assert SETTING.read_text().strip() == before
        SETTING.write_text(str(int(before) + 7))
        os.sched_setaffinity(sleeper.pid, {min(everywhere)})
        status, report = agent.restore("--run", "r1")
        assert [s["action"] for s in report[:-1]] == ["restored", "restored"]
        assert SETTING.read_text().strip() == before
        assert os.sched_getaffinity(sleeper.pid) == everywhere
    finally:
        SETTING.write_text(before)


def test_settings_on_top_of_a_note_return_to_the_noted_value(agent: Agent) -> None:
    before = SETTING.read_text().strip()
    try:
        assert agent.set(SETTING, options=("--note",))[0] == 0
        assert agent.set(SETTING, str(int(before) + 1))[0] == 0
        assert agent.restore("--run", "r1")[0] == 0
        assert SETTING.read_text().strip() == before
        assert agent.file.read_text() == ""
    finally:
        SETTING.write_text(before)


def test_kept_settings_stay_and_the_others_are_restored(
    agent: Agent, sleeper: subprocess.Popen[bytes]
) -> None:
    before = SETTING.read_text().strip()
    everywhere = os.sched_getaffinity(sleeper.pid)
    try:
        assert agent.set(SETTING, setting(sleeper, "affinity"), options=("--note",))[0] == 0
        SETTING.write_text(str(int(before) + 7))
        os.sched_setaffinity(sleeper.pid, {min(everywhere)})
        assert agent.set(SETTING, run="another", options=("--keep",)) == (
            0,
            [{"type": "keep", "path": str(SETTING), "count": 0, "error": None}],
        )
        assert agent.set(SETTING, options=("--keep",)) == (
            0,
            [{"type": "keep", "path": str(SETTING), "count": 1, "error": None}],
        )
        status, report = agent.restore("--run", "r1")
        assert (status, [line["path"] for line in report[:-1]]) == (0, [setting(sleeper, "affinity")])
        assert SETTING.read_text().strip() == str(int(before) + 7)
        assert os.sched_getaffinity(sleeper.pid) == everywhere
        assert agent.file.read_text() == ""
    finally:
        SETTING.write_text(before)


def test_a_group_is_made_filled_and_removed(
    agent: Agent, group: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    put_in(group, sleeper.pid)
    below = group / "below"
    assert agent.set(f"group:{below}", "present")[0] == 0
    assert below.is_dir()
    finished = agent.call("gather", "--run", "r1", "--journal", agent.journal, "--", below)
    assert lines(finished.stdout) == [
        {"type": "gather", "group": str(below), "moved": 1, "refused": 0, "refusals": []}
    ]
    assert (members(below), members(group)) == ({sleeper.pid}, set())
    status, report = agent.restore("--run", "r1")
    assert (status, report[0]["action"], report[0]["now"]) == (0, "restored", "absent")
    assert not below.exists()
    assert members(group) == {sleeper.pid}


def test_files_of_a_group_that_is_removed_go_with_it(agent: Agent, group: Path) -> None:
    below = group / "below"
    assert agent.set(f"group:{below}", "present")[0] == 0
    name = "cgroup.max.depth" if (below / "cgroup.max.depth").exists() else "notify_on_release"
    assert agent.set(below / name, "1")[0] == 0
    status, report = agent.restore("--run", "r1")
    assert (status, [s["action"] for s in report[:-1]]) == (0, ["gone", "restored"])
    assert not below.exists()


def test_a_group_that_was_there_is_not_removed(agent: Agent, group: Path) -> None:
    status, report = agent.set(f"group:{group}", "present")
    assert (status, report[0]["old"]) == (0, "present")
    assert agent.restore("--run", "r1")[0] == 0
    assert group.is_dir()


def test_only_a_group_of_the_same_run_is_filled(
    agent: Agent, group: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    put_in(group, sleeper.pid)
    below = group / "below"
    assert agent.set(f"group:{below}", "present", run="r2")[0] == 0
    completed = agent.call("gather", "--run", "r1", "--journal", agent.journal, "--", below)
    assert (completed.returncode, lines(completed.stdout)[0]["code"]) == (2, "usage")
    assert members(group) == {sleeper.pid}
    assert agent.restore("--run", "r2")[0] == 0


def test_no_folder_is_made_elsewhere(agent: Agent, tmp_path: Path) -> None:
    status, report = agent.set(f"group:{tmp_path}/new", "present")
    assert (status, report[0]["error"]) == (3, "EINVAL")
    assert not (tmp_path / "new").exists()
    status, report = agent.set(f"group:{tmp_path}", "absent")
    assert (status, report[0]["error"]) == (3, "EINVAL")
    assert tmp_path.is_dir()


def test_after_a_kill_of_the_owner_everything_is_put_back(
    agent: Agent, group: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    put_in(group, sleeper.pid)
    below = group / "below"
    guard = agent.guard("--restore")
    owner = str(guard.started()["guard"])
    assert (
        agent.set(
            f"group:{below}", "present", setting(sleeper, "policy"), "fifo 3", options=("--owner-pid", owner)
        )[0]
        == 0
    )
    assert agent.call("gather", "--run", "r1", "--journal", agent.journal, "--", below).returncode == 0
    guard.process.send_signal(signal.SIGKILL)
    guard.process.wait()
    wait_gone(int(owner))
    status, report = agent.restore()
    assert (status, report[-1]["count"]) == (0, 2)
    assert not below.exists()
    assert members(group) == {sleeper.pid}
    assert policy(sleeper.pid) == (os.SCHED_OTHER, 0)


def test_the_end_of_the_session_puts_everything_back(
    agent: Agent, group: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    below = group / "below"
    guard = agent.guard("--restore")
    owner = str(guard.started()["guard"])
    assert (
        agent.set(
            f"group:{below}", "present", setting(sleeper, "policy"), "fifo 3", options=("--owner-pid", owner)
        )[0]
        == 0
    )
    put_in(below, sleeper.pid)
    guard.close()  # as when the host is killed with -9
    assert guard.process.wait(PATIENCE_S) == 0
    assert not below.exists()
    assert policy(sleeper.pid) == (os.SCHED_OTHER, 0)


def test_after_a_power_cut_threads_and_groups_are_dropped(
    agent: Agent, group: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    assert agent.set(f"group:{group}/below", "present", setting(sleeper, "policy"), "fifo 3")[0] == 0
    rewrite(agent, boot="another-boot")
    status, report = agent.restore()
    assert (status, [s["action"] for s in report[:-1]]) == (0, ["dropped-after-reboot"] * 2)
    assert policy(sleeper.pid) == (
        os.SCHED_FIFO,
        3,
    )  # a reboot would have undone it: here it shows that nothing was touched


def test_a_newer_engines_kind_of_setting_is_kept(agent: Agent) -> None:
    before = SETTING.read_text().strip()
    try:
        assert agent.set(SETTING, str(int(before) + 1))[0] == 0
        rewrite(agent, path="quantum:7:spin")
        status, report = agent.restore("--run", "r1")
        assert (status, report[0]["action"], report[0]["error"]) == (3, "failed", "EINVAL")
        assert "quantum:7:spin" in agent.file.read_text()
        rewrite(agent, path=str(SETTING))
        assert agent.restore("--run", "r1")[0] == 0
        assert SETTING.read_text().strip() == before
    finally:
        SETTING.write_text(before)


def test_a_program_runs_in_its_group(agent: Agent, group: Path) -> None:
    completed = agent.call("enter", group, "cat", "/proc/self/cgroup")
    assert (completed.returncode, completed.stderr) == (0, "")
    assert f"/{group.name}\n" in completed.stdout


def test_a_program_runs_on_its_cpus(agent: Agent) -> None:
    cpu = min(os.sched_getaffinity(0))
    completed = agent.call("enter", f"cpus:{cpu}", "grep", "Cpus_allowed_list", "/proc/self/status")
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout.split()[1] == str(cpu)


def test_a_program_that_cannot_start_is_reported(agent: Agent, group: Path, tmp_path: Path) -> None:
    for words, code in (
        ((str(tmp_path), "true"), "group"),
        (("/no/such/group", "true"), "group"),
        ((str(group), "no-such-program"), "program"),
        ((str(group),), "usage"),
        (("group", "true"), "usage"),
        (("cpus:", "true"), "usage"),
        (("cpus:x", "true"), "usage"),
        (("cpus:99999999", "true"), "usage"),
        (("cpus:8191", "true"), "cpu-not-allowed"),
    ):
        completed = agent.call("enter", *words)
        assert lines(completed.stdout)[0]["code"] == code
        assert completed.returncode == lines(completed.stdout)[0]["status"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.builds(
        lambda kind, rest: kind + rest,
        st.sampled_from(["thread:", "group:", "controller:", "", "thread:1:", "group:/"]),
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30).filter(
            lambda text: not text.startswith("/")
        ),
    ),
    value=st.text("aofirpesnt 0123456789-", max_size=12),
)
def test_made_up_names_change_nothing(agent: Agent, name: str, value: str) -> None:
    before = set(Path("/sys/fs/cgroup").iterdir())
    completed = agent.call("set", "--run", "r1", "--journal", agent.journal, "--", name, value)
    reported = lines(completed.stdout)
    assert len(reported) == 1
    if reported[0].get("code") == "usage":
        assert completed.returncode == 2
    else:
        assert (completed.returncode, reported[0]["ok"]) == (3, False)
    assert set(Path("/sys/fs/cgroup").iterdir()) == before
    assert not agent.file.exists() or all(
        json.loads(line)["state"] == "o" for line in agent.file.read_text().splitlines()
    )
