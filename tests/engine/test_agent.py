# SPDX-License-Identifier: MIT
"""The engine's agent, driven as processes: read, set, restore, guard (docs/formats/agent.md)."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.engine.stream import CPUS, children
from tests.support.hog import hog
from tests.support.messages import missing
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.engine
SETTING = Path("/proc/sys/kernel/sched_rr_timeslice_ms")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def lines(text: str) -> list[dict[str, Any]]:
    """Lines end in a newline and nothing else: values may hold what str.splitlines takes for one."""
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.split("\n")[:-1]]


class Agent:
    """One journal and one lock of its own."""

    def __init__(self, engine: Path, folder: Path) -> None:
        self.engine = engine
        self.journal = folder / "journal"
        self.lock_dir = folder / "lock"

    @property
    def file(self) -> Path:
        return self.journal / "journal.ndjson"

    def call(self, *words: str | bytes | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.engine, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False, **options
        )

    def set(
        self, *pairs: str | Path, run: str = "r1", options: tuple[str, ...] = (), **more: Any
    ) -> tuple[int, list[dict[str, Any]]]:
        completed = self.call("set", "--run", run, "--journal", self.journal, *options, "--", *pairs, **more)
        assert completed.stderr == ""
        return completed.returncode, lines(completed.stdout)

    def restore(self, *options: str, **more: Any) -> tuple[int, list[dict[str, Any]]]:
        completed = self.call("restore", "--journal", self.journal, *options, **more)
        assert completed.stderr == ""
        return completed.returncode, lines(completed.stdout)

    def guard(
        self, *options: str | Path, program: list[str] | None = None, run: str = "r1", **more: Any
    ) -> Guard:
        return Guard(self, options, program, more, run)


class Guard:
    """A guard with its pipes, its events read from --status-fd."""

    def __init__(
        self,
        agent: Agent,
        options: tuple[str | Path, ...],
        program: list[str] | None,
        more: dict[str, Any],
        run: str,
    ) -> None:
        read, write = os.pipe()
        self.events = os.fdopen(read)
        words = [
            "guard",
            "--run",
            run,
            "--journal",
            agent.journal,
            "--lock-dir",
            agent.lock_dir,
            "--status-fd",
            str(write),
            *options,
        ]
        self.process = subprocess.Popen(
            [agent.engine, *words, *(["--", *program] if program else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[write],
            text=True,
            **more,
        )
        os.close(write)

    def event(self) -> dict[str, Any]:
        line = self.events.readline()
        assert line, "the guard ended without a word"
        return json.loads(line)

    def started(self) -> dict[str, Any]:
        while (event := self.event()).get("event") != "started":
            assert event["type"] in {"restore", "restored"}
        return event

    def ended(self) -> dict[str, Any]:
        while (event := self.event()).get("event") != "ended":
            pass
        assert event["status"] == self.process.wait(PATIENCE_S) or event["pid"] is None
        return event

    def send(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()

    def output(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()


@pytest.fixture
def agent(engine: Path, tmp_path: Path) -> Agent:
    return Agent(engine, tmp_path)


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def wait_until(condition: Any, what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited {PATIENCE_S} s for: {what}"
        time.sleep(0.01)


def wait_gone(*pids: int) -> None:
    wait_until(lambda: not any(is_alive(p) for p in pids), f"the end of {pids}")


def dead_owner() -> subprocess.Popen[bytes]:
    """A process that lives until it is killed and reaped by the test."""
    return subprocess.Popen(["sleep", "1000"])


def end(process: subprocess.Popen[Any]) -> None:
    process.kill()
    process.wait()


# A program that leaves the session and the group, forks twice, and does not listen to SIGTERM. It prints the
# pids of all.
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        os.write(write, b"%d\\n" % os.getpid())
        time.sleep(1000)
    os._exit(0)
os.wait()
print(os.getpid(), os.read(read, 20).decode().strip(), flush=True)
time.sleep(1000)
"""


# read


def read(agent: Agent, *patterns: str | bytes | Path, **more: Any) -> dict[str, Any]:
    completed = agent.call("read", *patterns, **more)
    assert (completed.returncode, completed.stderr) == (0, "")
    (answer,) = lines(completed.stdout)
    assert (answer["type"], answer["version"], answer["boot_id"]) == ("read", 1, BOOT_ID)
    return answer["files"]


def test_read_gives_texts_bytes_folders_links_and_errors(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text('ä "quoted"\n\0\t')
    (tmp_path / "b.bin").write_bytes(b"\xff\x00\x01")
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/x").touch()
    (tmp_path / "link").symlink_to("a.txt")
    (tmp_path / "dangling").symlink_to("nowhere")
    files = read(agent, "--", tmp_path / "*", tmp_path / "a.txt", tmp_path / "none*", "/nonexistent")
    assert files == {
        str(tmp_path / "a.txt"): {"text": 'ä "quoted"\n\0\t'},
        str(tmp_path / "b.bin"): {"base64": base64.b64encode(b"\xff\x00\x01").decode()},
        str(tmp_path / "empty"): {"text": ""},
        str(tmp_path / "folder"): {"directory": ["x"]},
        str(tmp_path / "link"): {"link": "a.txt", "text": 'ä "quoted"\n\0\t'},
        str(tmp_path / "dangling"): {"link": "nowhere", "error": "ENOENT"},
        str(tmp_path / "none*"): {"error": "ENOENT"},
        "/nonexistent": {"error": "ENOENT"},
    }


def test_read_gives_kernel_files_whole(agent: Agent) -> None:
    files = read(agent, "/proc/sys/kernel/os*", "/sys/devices/system/cpu/possible", "/proc/self/status")
    assert files["/proc/sys/kernel/ostype"] == {"text": "Linux\n"}
    assert (
        files["/sys/devices/system/cpu/possible"]["text"]
        == Path("/sys/devices/system/cpu/possible").read_text()
    )
    assert files["/proc/self/status"]["text"].endswith("\n")
    assert "nonvoluntary_ctxt_switches" in files["/proc/self/status"]["text"]


def test_read_never_opens_fifos_and_devices(agent: Agent, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(tmp_path / "sock"))
    files = read(agent, tmp_path / "*", "/dev/zero", "/dev/tty")
    assert [f["error"] for f in files.values()] == ["EINVAL"] * 4


def test_read_stops_at_one_mebibyte_at_a_whole_character(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "exact").write_text("x" * 2**20)
    (tmp_path / "long").write_text("y" + "ä" * 2**20)
    (tmp_path / "bytes").write_bytes(b"\xfe" * (2**20 + 1))
    files = read(agent, tmp_path / "*")
    assert files[str(tmp_path / "exact")] == {"text": "x" * 2**20}
    assert files[str(tmp_path / "long")] == {"text": "y" + "ä" * (2**19 - 1), "truncated": True}
    assert files[str(tmp_path / "bytes")]["truncated"] is True
    assert len(base64.b64decode(files[str(tmp_path / "bytes")]["base64"])) == 2**20


@pytest.mark.parametrize("separator", ["\0", "\n"])
def test_read_takes_patterns_from_standard_input(agent: Agent, tmp_path: Path, separator: str) -> None:
    names = [str(tmp_path / f"f{i}") for i in range(3000)]
    assert set(read(agent, "-", input=separator.join(names))) == set(names)


def test_a_name_that_is_not_utf8_reads_as_an_error(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff")).touch()
    assert list(read(agent, tmp_path / "*").values()) == [{"error": "EILSEQ"}]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60), max_size=4
    )
)
@example(["[", "[!", "\\", "*[", "[a-", "//", "/" * 5000])
def test_read_survives_any_pattern(agent: Agent, patterns: list[str]) -> None:
    patterns = [p for p in patterns if ("*" not in p and "?" not in p) or "/" not in p]
    completed = agent.call("read", "--", *patterns, cwd=agent.journal.parent)
    assert completed.returncode == (0 if patterns else 2)
    json.loads(completed.stdout)


# set and restore


def test_set_and_restore_of_files_byte_for_byte(agent: Agent, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("one\ntwo\n")
    b.write_text("no newline")
    status, report = agent.set(a, "new", b, "")
    assert status == 0
    assert report == [
        {
            "type": "set",
            "path": str(a),
            "old": "one\ntwo",
            "wanted": "new",
            "now": "new",
            "ok": True,
            "error": None,
        },
        {
            "type": "set",
            "path": str(b),
            "old": "no newline",
            "wanted": "",
            "now": "",
            "ok": True,
            "error": None,
        },
    ]
    assert (a.read_text(), b.read_text()) == ("new\n", "")
    status, report = agent.restore("--run", "r1")
    assert status == 0
    assert [(s["path"], s["action"], s["error"]) for s in report[:-1]] == [
        (str(b), "restored", None),
        (str(a), "restored", None),
    ]
    assert report[-1] == {"type": "restored", "count": 2, "failed": 0}
    assert (a.read_text(), b.read_text()) == ("one\ntwo\n", "no newline")
    assert agent.file.read_text() == ""
    assert agent.restore("--run", "r1") == (0, [{"type": "restored", "count": 0, "failed": 0}])


def test_the_newest_is_restored_first_and_the_oldest_remains(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("0\n")
    assert agent.set(path, "1", path, "2")[0] == 0
    assert agent.set(path, "3")[0] == 0
    status, report = agent.restore("--run", "r1")
    assert (status, report[-1]["failed"], path.read_text()) == (0, 0, "0\n")


def test_one_bad_item_does_not_stop_the_others(agent: Agent, tmp_path: Path) -> None:
    good = tmp_path / "good"
    good.write_text("0\n")
    status, report = agent.set(tmp_path / "none", "1", "/dev/null", "1", tmp_path, "1", good, "1")
    assert status == 3
    assert [(s["ok"], s["error"]) for s in report] == [
        (False, "ENOENT"),
        (False, "EINVAL"),
        (False, "EINVAL"),
        (True, None),
    ]
    assert good.read_text() == "1\n"


def test_restore_leaves_what_another_changed(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("0\n")
    agent.set(path, "1")
    path.write_text("7\n")
    status, report = agent.restore("--run", "r1")
    assert status == 0
    assert report[0] | {"path": None} == {
        "type": "restore",
        "path": None,
        "run": "r1",
        "owner": "run",
        "old": "0\n",
        "wanted": "1",
        "now": "7\n",
        "action": "left-changed-by-other",
        "error": None,
    }
    assert path.read_text() == "7\n"
    assert agent.restore("--run", "r1")[1][-1]["count"] == 0


def test_restore_affects_only_the_named_run(agent: Agent, tmp_path: Path) -> None:
    a, b, c = (tmp_path / n for n in "abc")
    for path in (a, b, c):
        path.write_text("0\n")
    agent.set(a, "1", run="r1")
    agent.set(b, "1", run="r2")
    agent.set(c, "1", run="r1", options=("--held",))
    assert agent.restore()[1][-1]["count"] == 0  # the owner, this process, lives
    assert agent.restore("--run", "r2")[1][-1]["count"] == 1
    assert (a.read_text(), b.read_text(), c.read_text()) == ("1\n", "0\n", "1\n")
    assert agent.restore("--run", "r1")[1][-1]["count"] == 1
    assert (a.read_text(), c.read_text()) == ("0\n", "1\n")
    assert agent.restore("--run", "r2", "--held")[1][-1]["count"] == 0
    assert agent.restore("--held")[1][-1]["count"] == 1
    assert c.read_text() == "0\n"


def test_a_dead_process_settings_are_restored_not_held_ones(agent: Agent, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("0\n")
    b.write_text("0\n")
    owner = dead_owner()
    agent.set(a, "1", options=("--owner-pid", str(owner.pid)))
    agent.set(b, "1", run="deploy", options=("--held", "--owner-pid", str(owner.pid)))
    assert agent.restore()[1][-1]["count"] == 0
    end(owner)
    assert agent.restore()[1][-1]["count"] == 1
    assert (a.read_text(), b.read_text()) == ("0\n", "1\n")
    status, report = agent.set(a, "1", options=("--owner-pid", str(owner.pid)))
    assert (status, report[0]["code"], a.read_text()) == (3, "owner-gone", "0\n")


def test_a_setting_under_that_of_a_living_run_waits(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("0\n")
    agent.set(path, "1", run="held", options=("--held",))
    agent.set(path, "2", run="r2")
    status, report = agent.restore("--run", "held", "--held")
    assert (status, report[0]["action"], report[-1]) == (
        0,
        "left-under-another",
        {"type": "restored", "count": 0, "failed": 0},
    )
    assert path.read_text() == "2\n"
    agent.restore("--run", "r2")
    assert path.read_text() == "1\n"
    agent.restore("--held")
    assert path.read_text() == "0\n"


def rewrite(agent: Agent, **changes: Any) -> None:
    """Gives the entries of the journal other members, with a right checksum."""
    import zlib

    result = ""
    for line in agent.file.read_text().splitlines():
        entry = json.loads(line) | changes
        del entry["crc"]
        text = json.dumps(entry, separators=(",", ":"), ensure_ascii=False)[:-1]
        result += f'{text},"crc":"{zlib.crc32(text[11:].encode()):08x}"}}\n'
    agent.file.write_text(result)


def test_after_a_reboot_only_files_are_restored(agent: Agent, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("0\n")
    b.write_text("0\n")
    agent.set(a, "1")
    rewrite(agent, boot="another-boot")
    kept = agent.file.read_text()
    agent.set(b, "1")
    rewrite(agent, boot="another-boot", volatile=True)
    agent.file.write_text(kept + agent.file.read_text().splitlines()[1] + "\n")
    status, report = agent.restore()
    assert status == 0
    assert [(s["path"], s["action"]) for s in report[:-1]] == [
        (str(b), "dropped-after-reboot"),
        (str(a), "restored"),
    ]
    assert (a.read_text(), b.read_text()) == ("0\n", "1\n")
    assert agent.file.read_text() == ""


def test_an_owner_with_the_same_number_but_another_start_is_dead(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("0\n")
    agent.set(path, "1")
    rewrite(agent, start=1)
    assert agent.restore()[1][-1]["count"] == 1


def test_a_setting_perhaps_not_made_is_restored_anyway(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("0\n")
    agent.set(path, "1")
    rewrite(agent, state="a")
    path.write_text("one, as the kernel might have written it\n")
    assert agent.restore("--run", "r1")[1][0]["action"] == "restored"
    assert path.read_text() == "0\n"


def test_what_cannot_be_put_back_stays_in_the_journal(agent: Agent, tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_text("0\n")
    other.write_text("0\n")
    agent.set(other, "1", path, "1")
    path.rename(tmp_path / "away")
    status, report = agent.restore("--run", "r1")
    assert (status, report[0]["action"], report[0]["error"], report[-1]) == (
        3,
        "failed",
        "ENOENT",
        {"type": "restored", "count": 1, "failed": 1},
    )
    assert other.read_text() == "0\n"
    (tmp_path / "away").rename(path)
    assert agent.restore("--run", "r1")[0] == 0
    assert path.read_text() == "0\n"


def test_torn_and_damaged_entries_are_reported_and_passed(agent: Agent, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("0\n")
    b.write_text("0\n")
    agent.set(a, "1")
    agent.set(b, "1")
    first, second = agent.file.read_bytes().splitlines(keepends=True)
    damaged = second.replace(b'"old":"0', b'"old":"9')
    agent.file.write_bytes(first + damaged + second[:50])
    status, report = agent.restore("--run", "r1")
    assert status == 3
    assert [(s["action"], s.get("line")) for s in report[:-1]] == [
        ("damaged", 2),
        ("damaged", 3),
        ("restored", None),
    ]
    assert report[0]["text"] == damaged.decode().rstrip("\n")
    assert report[-1] == {"type": "restored", "count": 1, "failed": 2}
    assert (a.read_text(), b.read_text()) == ("0\n", "1\n")
    assert agent.restore("--run", "r1") == (0, [{"type": "restored", "count": 0, "failed": 0}])


def test_set_goes_on_behind_a_torn_entry(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("0\n")
    agent.journal.mkdir()
    agent.file.touch(0o600)
    agent.file.write_text('{"state":"a","se')
    assert agent.set(path, "1")[0] == 0
    assert [s.get("action") for s in agent.restore("--run", "r1")[1]] == ["damaged", "restored", None]
    assert path.read_text() == "0\n"


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=4),
    kept=st.none() | st.integers(0, 2**16),
)
def test_a_changed_journal_never_writes_a_wrong_value(
    agent: Agent, changes: list[tuple[int, int]], kept: int | None
) -> None:
    path = agent.journal.parent / "a"
    path.write_text("0\n")
    agent.file.unlink(missing_ok=True)
    assert agent.set(path, "1")[0] == 0
    whole = bytearray(agent.file.read_bytes())
    for place, byte in changes:
        whole[place % len(whole)] = byte
    agent.file.write_bytes(whole if kept is None else whole[: kept % len(whole)])
    status, report = agent.restore("--run", "r1")
    assert status in {0, 3}
    assert report[-1]["type"] == "restored"
    assert path.read_text() in {"0\n", "1\n"}


COMMANDS_A_TERMINAL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    old=st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=50),
    new=st.text(max_size=50),
)
def test_any_text_goes_there_and_back(agent: Agent, old: str, new: str) -> None:
    path = agent.journal.parent / "a"
    path.write_bytes(old.encode())
    try:
        argument = new.encode()
    except UnicodeEncodeError:
        argument = new.encode("utf-8", "surrogatepass")
    if b"\0" in argument:
        return
    completed = agent.call("set", "--run", "r1", "--journal", agent.journal, "--", path, argument)
    assert completed.returncode in {0, 2}
    assert (completed.returncode == 0) == (COMMANDS_A_TERMINAL.search(new) is None)
    agent.restore("--run", "r1")
    if " ".join(old.split()) != " ".join(new.split()):
        assert path.read_bytes() == old.encode()


def test_concurrent_sets_and_restores_lose_nothing(agent: Agent, tmp_path: Path) -> None:
    files = [tmp_path / f"f{i}" for i in range(24)]
    for path in files:
        path.write_text("0\n")
    started = []
    for i, path in enumerate(files):
        words = [
            "set",
            "--run",
            f"r{i % 3}",
            "--journal",
            agent.journal,
            "--owner-pid",
            str(os.getpid()),
            "--",
            path,
            "1",
        ]
        started.append(subprocess.Popen([agent.engine, *words], stdout=subprocess.DEVNULL))
        if i % 6 == 5:
            started.append(
                subprocess.Popen(
                    [agent.engine, "restore", "--run", f"r{i % 3}", "--journal", agent.journal],
                    stdout=subprocess.DEVNULL,
                )
            )
    assert [p.wait(PATIENCE_S) for p in started] == [0] * len(started)
    for run in ("r0", "r1", "r2"):
        status, report = agent.restore("--run", run)
        assert (status, {s["action"] for s in report[:-1]} <= {"restored"}) == (0, True)
    assert {p.read_text() for p in files} == {"0\n"}


def test_a_journal_that_another_could_have_written_is_not_obeyed(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("0\n")
    agent.set(path, "1")
    agent.file.chmod(0o666)
    status, report = agent.restore("--run", "r1")
    assert (status, report[0]["action"], report[0]["error"], path.read_text()) == (
        3,
        "failed",
        "EPERM",
        "1\n",
    )
    assert agent.set(path, "2")[0] == 3
    assert path.read_text() == "1\n"


class TestKernelKnob:
    pytestmark = pytest.mark.root

    @pytest.fixture(autouse=True)
    def _keep(self) -> Any:
        before = SETTING.read_text()
        yield
        if SETTING.read_text() != before:
            SETTING.write_text(before)

    def test_there_and_back(self, agent: Agent) -> None:
        before = SETTING.read_text().strip()
        expected = "70" if before != "70" else "80"
        status, report = agent.set(SETTING, expected)
        assert (status, report[0]["old"], report[0]["now"], SETTING.read_text().strip()) == (
            0,
            before,
            expected,
            expected,
        )
        entry = json.loads(agent.file.read_text())
        assert (entry["volatile"], entry["boot"], entry["pid"], entry["owner"], entry["state"]) == (
            True,
            BOOT_ID,
            os.getpid(),
            "run",
            "s",
        )
        assert agent.restore("--run", "r1")[0] == 0
        assert SETTING.read_text().strip() == before

    def test_a_value_that_the_kernel_refuses(self, agent: Agent) -> None:
        before = SETTING.read_text()
        status, report = agent.set(SETTING, "rubbish")
        assert (status, report[0]["ok"], report[0]["error"], SETTING.read_text()) == (
            3,
            False,
            "EINVAL",
            before,
        )
        assert agent.restore("--run", "r1")[1][-1] == {"type": "restored", "count": 0, "failed": 0}

    def test_a_value_that_the_kernel_makes_another_of(self, agent: Agent) -> None:
        """0 means the default there: what is read back differs, and it is put back all the same."""
        before = SETTING.read_text().strip()
        odd = "80" if before != "80" else "90"
        SETTING.write_text(odd)
        status, report = agent.set(SETTING, "0")
        assert (status, report[0]["ok"], report[0]["error"]) == (3, False, "differs")
        assert report[0]["now"] == SETTING.read_text().strip() != odd
        assert agent.restore("--run", "r1")[1][0]["action"] == "restored"
        assert SETTING.read_text().strip() == odd

    def test_a_full_disk_refuses_the_setting_and_still_restores(self, agent: Agent, tmp_path: Path) -> None:
        disk = tmp_path / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
        try:
            before = SETTING.read_text().strip()
            expected, another = ("70", "80") if before not in {"70", "80"} else ("60", "90")
            agent.journal = disk / "journal"
            assert agent.set(SETTING, expected)[0] == 0
            with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
                while filler.write(b"x" * 4096):
                    pass
            big = "#" * 4000
            held = agent.file.read_text()
            status, report = agent.set(
                SETTING,
                another,
                *[word for i in range(4) for word in (str(tmp_path / f"none{i}"), big)],
                "/proc/sys/kernel/domainname",
                big,
            )
            assert (status, report[0]["type"], report[0]["code"]) == (3, "error", "output")
            assert "ENOSPC" in report[0]["message"]
            assert (SETTING.read_text().strip(), agent.file.read_text()) == (expected, held)
            assert agent.restore("--run", "r1")[0] == 0
            assert (SETTING.read_text().strip(), agent.file.read_text()) == (before, "")
        finally:
            subprocess.run(["umount", "-l", disk], check=True)

    @pytest.mark.skipif(
        not Path("/sys/kernel/mm/transparent_hugepage/defrag").exists(),
        reason="this kernel has no transparent huge pages",
    )
    def test_a_selector_is_put_back_by_its_word(self, agent: Agent) -> None:
        path = Path("/sys/kernel/mm/transparent_hugepage/defrag")
        before = path.read_text()
        word = before.partition("[")[2].partition("]")[0]
        expected = "never" if word != "never" else "always"
        status, report = agent.set(path, expected)
        assert (status, report[0]["old"], report[0]["now"], f"[{expected}]" in path.read_text()) == (
            0,
            word,
            expected,
            True,
        )
        assert agent.restore("--run", "r1")[0] == 0
        assert path.read_text() == before

    def test_another_user_gets_a_clear_no(self, agent: Agent, tmp_path: Path) -> None:
        tmp_path.chmod(0o777)
        for folder in (tmp_path, *tmp_path.parents):
            if Path(tempfile.gettempdir()) in folder.parents:
                folder.chmod(folder.stat().st_mode | 0o055)
        copy = tmp_path / "engine"
        copy.write_bytes(agent.engine.read_bytes())
        copy.chmod(0o755)
        before = SETTING.read_text()
        user = {
            "user": 65534,
            "group": 65534,
            "extra_groups": [],
            "env": {"XDG_STATE_HOME": str(tmp_path / "state")},
        }
        completed = subprocess.run(
            [copy, "set", "--run", "r1", "--", SETTING, "70"],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
            **user,
        )
        assert (completed.returncode, lines(completed.stdout)[0]["error"], SETTING.read_text()) == (
            3,
            "EACCES",
            before,
        )
        assert (tmp_path / "state/rtgauge/journal.ndjson").exists()
        completed = subprocess.run(
            [copy, "restore"], capture_output=True, text=True, check=False, timeout=PATIENCE_S, **user
        )
        assert (completed.returncode, completed.stdout) == (0, '{"type":"restored","count":0,"failed":0}\n')
        completed = subprocess.run(
            [copy, "set", "--run", "r1", "--", SETTING, "70"],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
            **(user | {"env": {}}),
        )
        assert (completed.returncode, lines(completed.stdout)[0]["code"]) == (2, "usage")


# wrong words

WRONG: list[list[str]] = [
    ["read"],
    ["read", "--"],
    ["read", "--nonsense", "/"],
    ["set"],
    ["set", "--run"],
    ["set", "--run", "r1", "--"],
    ["set", "--run", "r1", "--", "/tmp/x"],
    ["set", "--", "/tmp/x", "1"],
    ["set", "--run", "a b", "--", "/tmp/x", "1"],
    ["set", "--run", "r" * 129, "--", "/tmp/x", "1"],
    ["set", "--run", "r1", "--", "tmp/x", "1"],
    ["set", "--run", "r1", "--", "/" + "x" * 5000, "1"],
    ["set", "--run", "r1", "--", "/tmp/x", "1\n2"],
    ["set", "--run", "r1", "--", "/tmp/x", "x" * 5000],
    ["set", "--run", "r1", "--owner-pid", "0", "--", "/tmp/x", "1"],
    ["set", "--run", "r1", "--owner-pid", "-1", "--", "/tmp/x", "1"],
    ["set", "--run", "r1", "--owner-pid", "99999999999999999999", "--", "/tmp/x", "1"],
    ["set", "--run", "r1", "--journal", "", "--", "/tmp/x", "1"],
    ["restore", "word"],
    ["restore", "--run", ""],
    ["restore", "--held=1"],
    ["guard"],
    ["guard", "--run", "r1", "sleep"],
    ["guard", "--run", "r1", "--"],
    ["guard", "--run", "r1", "--lease-ns", "0"],
    ["guard", "--run", "r1", "--lease-ns", "1e9"],
    ["guard", "--run", "r1", "--lease-ns", "9223372036854775807"],
    ["guard", "--run", "r1", "--grace-ns", "-1"],
    ["guard", "--run", "r1", "--label", "a\nb"],
    ["guard", "--run", "r1", "--label", "x" * 257],
    ["guard", "--run", "r1", "--lock-dir", ""],
    ["guard", "--run", "r1", "--lock-dir", "x" * 2000],
    ["guard", "--run", "r1", "--wait-ns", "-1"],
    ["guard", "--run", "r1", "--status-fd", "77"],
    ["guard", "--run", "r1", "--status-fd", "2"],
    ["guard", "--run", "r1", "--status-fd", "x"],
]


@pytest.mark.parametrize("words", WRONG, ids=lambda w: " ".join(w)[:60].replace("\n", " "))
def test_wrong_words_give_one_line(agent: Agent, words: list[str]) -> None:
    completed = agent.call(*words, stdin=subprocess.DEVNULL)
    assert (completed.returncode, completed.stderr) == (2, "")
    (reported,) = lines(completed.stdout)
    assert (reported["type"], reported["code"], reported["detail"], reported["status"]) == (
        "error",
        "usage",
        {},
        2,
    )
    assert reported["message"]
    assert "\n" not in reported["message"]


# guard


@pytest.mark.parametrize(
    ("script", "status", "number"), [("exit 0", 0, None), ("exit 42", 42, None), ("kill -9 $$", 137, 9)]
)
def test_a_guard_ends_as_its_program_does(agent: Agent, script: str, status: int, number: int | None) -> None:
    guard = agent.guard(program=["sh", "-c", f"echo hello; {script}"])
    started = guard.started()
    assert started["guard"] == guard.process.pid
    ended = guard.ended()
    assert (guard.process.returncode, ended["status"], ended["signal"], ended["reason"], ended["killed"]) == (
        status,
        status,
        number,
        "exit",
        0,
    )
    assert guard.output() == "hello"


def test_lines_go_to_the_program_but_renew_does_not(agent: Agent) -> None:
    guard = agent.guard(program=["sh", "-c", 'read a; read b; echo "$a, $b"'])
    for line in ("renew", "go", "renew", "two words"):
        guard.send(line)
    assert guard.output() == "go, two words"
    assert guard.ended()["dropped_lines"] == 0


def test_a_program_that_does_not_listen_cannot_block_the_guard(agent: Agent) -> None:
    guard = agent.guard("--lease-ns", str(60 * 10**9), program=["sleep", "1000"])
    guard.started()
    for _ in range(100):
        guard.send("x" * 3000)
    guard.send("y" * 100_000)
    guard.close()
    ended = guard.ended()
    assert ended["reason"] == "eof"
    assert ended["dropped_lines"] > 50


def test_a_program_that_closed_its_input_does_not_end_the_guard(agent: Agent) -> None:
    guard = agent.guard(program=["sh", "-c", "exec <&-; echo closed; sleep 1; exit 5"])
    assert guard.output() == "closed"
    guard.send("go")
    ended = guard.ended()
    assert (ended["status"], ended["reason"], ended["dropped_lines"]) == (5, "exit", 1)


def test_end_of_input_ends_a_program_in_order(agent: Agent) -> None:
    guard = agent.guard(program=["sh", "-c", "echo ready; cat >/dev/null; echo in order"])
    assert guard.output() == "ready"
    guard.close()
    assert guard.output() == "in order"
    ended = guard.ended()
    assert (ended["reason"], ended["status"], ended["killed"]) == ("eof", 0, 0)


@pytest.mark.parametrize("how", ["eof", "lease", "signal", "exit"])
def test_nothing_outlives_the_guard(agent: Agent, tmp_path: Path, how: str) -> None:
    path = tmp_path / "setting"
    path.write_text("0\n")
    program = STUBBORN if how != "exit" else STUBBORN.removesuffix("time.sleep(1000)\n")
    guard = agent.guard(
        "--restore",
        "--grace-ns",
        "200000000",
        *(["--lease-ns", "300000000"] if how == "lease" else []),
        program=[sys.executable, "-c", program],
    )
    pids = [int(word) for word in guard.output().split()]
    if how != "exit":
        assert all(is_alive(p) for p in pids)
        agent.set(path, "1", options=("--owner-pid", str(guard.process.pid)))
    if how == "eof":
        guard.close()
    elif how == "signal":
        guard.process.terminate()
    ended = guard.ended()
    assert ended["reason"] == how
    assert ended["killed"] == (1 if how == "exit" else 2)
    assert (ended["restored"], ended["remaining"]) == (True, 0)
    assert not any(is_alive(p) for p in pids)
    assert path.read_text() == "0\n"


PINNED = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
print("ready", flush=True)
while True:
    pass
"""


@pytest.mark.real_time
@pytest.mark.skipif(len(CPUS) < 2, reason="with one CPU nobody could end it")
def test_a_program_whose_cpu_is_held_ends_too(agent: Agent) -> None:
    guard = agent.guard("--grace-ns", "200000000", program=[sys.executable, "-c", PINNED, str(CPUS[-1])])
    assert guard.output() == "ready"
    with hog(CPUS[-1]):
        guard.close()
        ended = guard.ended()
    assert ended["remaining"] == 0
    assert ended["signal"] in {signal.SIGTERM, signal.SIGKILL}


def test_a_stopped_program_ends_too(agent: Agent) -> None:
    guard = agent.guard(program=["sleep", "1000"])
    os.kill(guard.started()["pid"], signal.SIGSTOP)
    guard.close()
    ended = guard.ended()
    assert (ended["signal"], ended["killed"]) == (signal.SIGTERM, 0)


def test_a_second_signal_does_not_wait_for_the_grace(agent: Agent) -> None:
    guard = agent.guard("--grace-ns", str(3600 * 10**9), program=[sys.executable, "-c", STUBBORN])
    pids = [int(word) for word in guard.output().split()]
    # again and again: two signals that arrive before the first one is read are one
    wait_until(
        lambda: guard.process.poll() is not None or guard.process.terminate() is not None, "the guard to end"
    )
    assert guard.ended()["killed"] == 2
    assert not any(is_alive(p) for p in pids)


def test_a_lease_that_is_renewed_is_kept(agent: Agent) -> None:
    for _ in range(5):
        guard = agent.guard("--lease-ns", str(2 * 10**9), program=["sleep", "1000"])
        guard.started()
        renewed = [time.monotonic()]
        while renewed[-1] - renewed[0] < 3:
            guard.send("renew")
            renewed.append(time.monotonic())
            time.sleep(0.25)
        alive = guard.process.poll() is None
        assert guard.ended()["reason"] == "lease"
        # where this machine was too busy to renew in time, the lease was right to end: once more
        if max(later - earlier for earlier, later in itertools.pairwise(renewed)) < 1:
            break
    assert alive


def test_a_detached_program_outlives_the_end_of_input(agent: Agent, tmp_path: Path) -> None:
    finished = tmp_path / "done"
    guard = agent.guard(
        "--detach",
        program=["sh", "-c", f"read word; while ! test -e {finished}; do sleep 0.05; done; echo $word"],
    )
    guard.started()
    guard.send("go")
    guard.close()
    guard.process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert guard.process.poll() is None
    finished.touch()
    assert guard.output() == "go"
    assert guard.ended()["reason"] == "exit"


def test_a_detached_lease_ends(agent: Agent) -> None:
    guard = agent.guard("--detach", "--lease-ns", "500000000", program=["sleep", "1000"])
    guard.close()
    assert guard.ended()["reason"] == "lease"


def test_a_program_that_is_not_there(agent: Agent) -> None:
    guard = agent.guard(program=["rtgauge-no-such-program"])
    document = json.loads(guard.output())
    assert (document["type"], document["code"], document["status"]) == ("error", "program", 3)
    assert "ENOENT" in document["message"]
    ended = guard.event()
    assert (ended["event"], ended["reason"], guard.process.wait(PATIENCE_S)) == ("ended", "exec", 3)


def test_a_guard_killed_with_9_takes_its_program_along(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "setting"
    path.write_text("0\n")
    guard = agent.guard("--restore", "--lock", program=["sleep", "1000"])
    program = guard.started()["pid"]
    agent.set(path, "1", options=("--owner-pid", str(guard.process.pid)))
    assert agent.restore()[1][-1]["count"] == 0
    end(guard.process)
    wait_gone(program)
    assert path.read_text() == "1\n"
    assert agent.restore()[1][-1] == {"type": "restored", "count": 1, "failed": 0}
    assert path.read_text() == "0\n"


def test_the_next_run_puts_back_what_a_dead_one_left(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "setting"
    path.write_text("0\n")
    first = agent.guard("--lock")
    first.started()
    agent.set(path, "1", options=("--owner-pid", str(first.process.pid)))
    end(first.process)
    second = agent.guard("--lock")
    reported = second.event()
    assert (reported["type"], reported["action"], reported["path"]) == ("restore", "restored", str(path))
    assert second.event() == {"type": "restored", "count": 1, "failed": 0}
    assert second.event()["event"] == "started"
    assert path.read_text() == "0\n"
    second.close()
    second.process.wait(PATIENCE_S)


# While it lives, the kernel refuses whoever opens the setting for writing (a lease, fcntl(2)) and tells it with SIGIO. SIGTERM does not end it.
STAND_IN = """
import fcntl, os, signal, sys
setting = os.open(sys.argv[1], os.O_RDONLY)
log = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
signal.signal(signal.SIGTERM, lambda *_: os.write(log, b"SIGTERM at " + os.pread(setting, 9, 0)))
signal.signal(signal.SIGIO, lambda *_: os.write(log, b"written while this lives\\n"))
fcntl.fcntl(setting, fcntl.F_SETLEASE, fcntl.F_RDLCK)
print("up", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("how", ["lease", "stop", "signal", "restore", "next"])
def test_programs_end_before_their_runs_settings_are_put_back(agent: Agent, tmp_path: Path, how: str) -> None:
    path, log = tmp_path / "setting", tmp_path / "log"
    path.write_text("0\n")
    run = agent.guard("--lock", "--restore", *(["--lease-ns", str(5 * 10**9)] if how == "lease" else []))
    run.started()
    agent.set(path, "1", options=("--owner-pid", str(run.process.pid)))
    program = agent.guard(
        "--grace-ns",
        "100000000",
        "--lease-ns",
        str(3600 * 10**9),
        program=[sys.executable, "-c", STAND_IN, str(path), str(log)],
    )
    pid = program.started()["pid"]
    assert program.output() == "up"
    if how == "restore":
        report = agent.restore("--run", "r1")[1]
    elif how == "next":
        end(run.process)
        report = next_session(agent)
    else:
        if how == "stop":
            run.send("stop")
        elif how == "signal":
            run.process.terminate()
        report = [run.event(), run.event()]
    assert not is_alive(pid)
    assert log.read_text() == "SIGTERM at 1\n"
    assert [(line["path"].partition(":")[0], line["action"]) for line in report[:2]] == [
        ("program", "ended"),
        (str(path), "restored"),
    ]
    assert path.read_text() == "0\n"
    assert program.ended()["killed"] == 1
    run.close()
    run.process.wait(PATIENCE_S)
    assert agent.file.read_text() == ""


def next_session(agent: Agent) -> list[dict[str, Any]]:
    """What the next run says that holds the machine, and ends at once."""
    finished = session(agent, run="r2")
    return lines(finished.communicate(timeout=PATIENCE_S)[0])


def start_time(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def note_program(agent: Agent, pid: int, start: int) -> None:
    """The journal says of this process that a dead run had it under guard."""
    kept = agent.file.read_text()
    agent.file.write_text("")
    guard = agent.guard(program=["sleep", "1000"])
    program = guard.started()["pid"]
    end(guard.process)
    wait_gone(program)
    rewrite(agent, path=f"program:{pid}:{start}")
    agent.file.write_text(kept + agent.file.read_text())


def test_a_program_is_in_the_journal_for_its_whole_life(agent: Agent) -> None:
    guard = agent.guard(program=["cat", str(agent.file)])
    (entry,) = [json.loads(line) for line in guard.process.communicate(timeout=PATIENCE_S)[0].splitlines()]
    pid = guard.started()["pid"]
    assert entry["path"].startswith(f"program:{pid}:")
    assert (entry["run"], entry["pid"]) == ("r1", guard.process.pid)
    assert agent.file.read_text() == ""


def test_a_program_without_guard_ends_before_the_restoring(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "setting"
    path.write_text("0\n")
    owner = dead_owner()
    agent.set(path, "1", options=("--owner-pid", str(owner.pid)))
    with subprocess.Popen(
        [sys.executable, "-c", STAND_IN, path, tmp_path / "log"], stdout=subprocess.PIPE
    ) as program:
        assert program.stdout and program.stdout.readline() == b"up\n"
        note_program(agent, program.pid, start_time(program.pid))
        end(owner)
        report = agent.restore()[1]
        assert program.wait(PATIENCE_S) == -signal.SIGKILL
    assert [line.get("action") for line in report] == ["ended", "restored", None]
    assert (tmp_path / "log").read_text() == "SIGTERM at 1\n"


def test_another_process_with_a_programs_number_is_left_alone(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "setting"
    path.write_text("0\n")
    innocent, owner = dead_owner(), dead_owner()
    agent.set(path, "1", options=("--owner-pid", str(owner.pid)))
    note_program(agent, innocent.pid, start_time(innocent.pid) - 1)
    end(owner)
    status, report = agent.restore()
    assert (status, [line.get("action") for line in report]) == (0, ["restored", None])
    assert agent.file.read_text() == ""
    assert innocent.poll() is None
    end(innocent)


@pytest.mark.root
def test_what_an_unkillable_program_uses_is_not_restored(agent: Agent, tmp_path: Path) -> None:
    """The program is root's, the run an ordinary user's: as one that hangs in the kernel it cannot be ended."""
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        folder.chmod(folder.stat().st_mode | 0o55)
    agent.engine = Path(shutil.copy(agent.engine, tmp_path))
    path, module = tmp_path / "setting", "module:/nowhere/rtgauge_no_module.ko"
    path.write_text("0\n")
    stuck, owner = dead_owner(), dead_owner()
    agent.set(path, "1", options=("--owner-pid", str(owner.pid)))
    setting = agent.file.read_text()
    rewrite(agent, path=module, old="absent", wanted="present", volatile=True)
    agent.file.write_text(setting + agent.file.read_text())
    note_program(agent, stuck.pid, start_time(stuck.pid))
    end(owner)
    for place in (agent.journal, agent.file, path):
        os.chown(place, 65534, 65534)
    user: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}
    for _ in range(2):
        status, report = agent.restore(**user)
        assert status == 3
        assert [(line["path"], line["action"], line["error"]) for line in report[:2]] == [
            (f"program:{stuck.pid}:{start_time(stuck.pid)}", "failed", "EPERM"),
            (module, "left-in-use", "in-use"),
        ]
        assert (report[-1]["failed"], path.read_text(), stuck.poll()) == (2, "0\n", None)
    end(stuck)
    (report, _) = agent.restore(**user)[1]
    assert (report["path"], report["error"]) in {(module, None), (module, "ENOSYS")}, (
        "tried again; some kernels have no modules"
    )


HOST = """
import subprocess, sys, time
engine, journal, setting, program, lease = sys.argv[1:]
guard = subprocess.Popen([engine, "guard", "--run", "r1", "--restore", "--journal", journal, "--lease-ns", lease, "--grace-ns", "100000000",
                          "--", sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True)
if lease == "300000000":
    subprocess.Popen(["sleep", "20"], stdin=guard.stdin, pass_fds=[guard.stdin.fileno()])
    keep = True
pids = guard.stdout.readline().strip()
subprocess.run([engine, "set", "--run", "r1", "--journal", journal, "--owner-pid", str(guard.pid), "--", setting, "1"], check=True, stdout=subprocess.DEVNULL)
print(guard.pid, pids, flush=True)
while True:
    guard.stdin.write("renew\\n")
    guard.stdin.flush()
    time.sleep(0.05)
"""


@pytest.mark.parametrize(
    "lease_ns",
    [60 * 10**9, 300_000_000],
    ids=["by end of input", "by the lease: another process holds the pipe open"],
)
def test_a_host_killed_with_9_leaves_nothing_behind(agent: Agent, tmp_path: Path, lease_ns: int) -> None:
    path = tmp_path / "setting"
    path.write_text("0\n")
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, agent.engine, agent.journal, path, STUBBORN, str(lease_ns)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert host.stdout
    pids = [int(word) for word in host.stdout.readline().split()]
    try:
        assert len(pids) == 3
        assert path.read_text() == "1\n"
        host.kill()
        wait_gone(*pids)
        assert path.read_text() == "0\n"
        assert agent.file.read_text() == ""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(host.pid, signal.SIGKILL)
        host.wait()


# a session and the lock


def session(
    agent: Agent, *options: str, run: str = "r1", before: tuple[str, ...] = ()
) -> subprocess.Popen[str]:
    words = [
        "guard",
        "--run",
        run,
        "--lock",
        "--lock-dir",
        str(agent.lock_dir),
        "--journal",
        str(agent.journal),
        *options,
    ]
    return subprocess.Popen(
        [*before, agent.engine, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def begun(guard: subprocess.Popen[str]) -> dict[str, Any]:
    """The event `started` of a session."""
    assert guard.stdout
    while (document := json.loads(guard.stdout.readline()))["type"] != "guard":
        pass
    return document


def send_word(guard: subprocess.Popen[str], word: str) -> None:
    assert guard.stdin
    guard.stdin.write(f"{word}\n")
    guard.stdin.flush()


def refused_session(agent: Agent, *options: str, before: tuple[str, ...] = ()) -> dict[str, Any]:
    """The error of a session that does not begin."""
    guard = session(agent, *options, run="second-run", before=before)
    output, _ = guard.communicate(timeout=PATIENCE_S)
    (reported,) = lines(output)
    assert (reported["type"], reported["status"], guard.returncode) == ("error", 3, 3)
    return reported


def test_the_second_guard_names_the_first(agent: Agent) -> None:
    first = session(agent, "--label", 'quick on "here"', "--host-pid", str(os.getpid()), run="first-run")
    assert begun(first)["event"] == "started"
    error = refused_session(agent)
    assert error["code"] == "locked"
    assert "first-run" in error["message"]
    held = error["detail"]
    assert 0 < held.pop("lease_left_ns") <= 10 * 10**9
    known = {
        "lock": f"{agent.lock_dir}/lock",
        "run": "first-run",
        "label": 'quick on "here"',
        "pid": first.pid,
        "uid": os.geteuid(),
        "host_pid": os.getpid(),
    }
    assert held == known | {"silent_ns": None, "left_ns": None, "elsewhere": False}

    output, _ = first.communicate("stop\n", timeout=PATIENCE_S)
    assert (first.returncode, lines(output)[-1]["reason"]) == (0, "stop")
    third = session(agent)
    output, _ = third.communicate(timeout=PATIENCE_S)
    assert (third.returncode, lines(output)[-1]["reason"]) == (0, "eof")


def test_who_waits_has_the_lock_in_the_order_of_arrival(agent: Agent) -> None:
    first = session(agent, run="run-0")
    begun(first)
    waiting = []
    for number in (1, 2, 3):
        guard, reported = queued(agent, f"run-{number}")
        assert reported["run"] == "run-0"
        waiting.append(guard)
    holder = first
    for number, guard in enumerate(waiting, 1):
        assert guard.poll() is None
        end(holder) if number == 2 else holder.communicate("stop\n", timeout=PATIENCE_S)
        while (reported := begun(guard))["event"] == "waiting":
            pass
        assert reported["event"] == "started"
        assert refused_session(agent)["detail"]["run"] == f"run-{number}"
        holder = guard
    holder.communicate(timeout=PATIENCE_S)


def queued(agent: Agent, run: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """A session that waits for the lock in the kernel, and what it said first."""
    guard = session(agent, "--wait-ns", str(1000 * 10**9), run=run)
    reported = begun(guard)
    assert reported["event"] == "waiting"
    wait_until(lambda: any(is_in_flock(child) for child in children(guard.pid)), "it to wait")
    return guard, reported


def is_in_flock(pid: int) -> bool:
    """Whether a process waits for a lock: `-> FLOCK` in /proc/locks."""
    return any(
        "-> FLOCK" in line and f" {pid} " in line for line in Path("/proc/locks").read_text().splitlines()
    )


def test_a_waiter_learns_how_long_the_holder_needs(agent: Agent) -> None:
    first = session(agent, run="run-0")
    begun(first)
    send_word(first, f"expect {3600 * 10**9}")
    wait_until(lambda: refused_session(agent)["detail"]["left_ns"] is not None, "it to say how long it needs")
    (second, reported), (third, _) = queued(agent, "run-1"), queued(agent, "run-2")
    assert reported["run"] == "run-0"
    assert 0 < reported["left_ns"] <= 3600 * 10**9
    first.communicate("stop\n", timeout=PATIENCE_S)
    while begun(second)["event"] != "started":
        pass
    send_word(third, "renew")  # it looks at the holder then, and else every 2.5 s
    while (reported := begun(third))["run"] != "run-1":
        assert reported["event"] == "waiting"
    for guard in (second, third):
        guard.communicate("stop\n", timeout=PATIENCE_S)


@pytest.mark.parametrize("how", ["eof", "stop", "lease", "time"])
def test_who_waits_no_longer_leaves_the_queue(agent: Agent, how: str) -> None:
    first = session(agent)
    begun(first)
    second = session(
        agent,
        "--wait-ns",
        str(10**8 if how == "time" else 1000 * 10**9),
        *(["--lease-ns", str(10**8)] if how == "lease" else []),
    )
    assert begun(second)["event"] == "waiting"
    output, _ = (
        second.communicate("stop\n" if how == "stop" else None, timeout=PATIENCE_S)
        if how in {"eof", "stop"}
        else (wait_output(second), None)
    )
    assert lines(output)[-1]["code"] == "locked"
    assert not any(
        "-> FLOCK" in line and f" {second.pid} " in line
        for line in Path("/proc/locks").read_text().splitlines()
    )
    first.communicate(timeout=PATIENCE_S)


def wait_output(guard: subprocess.Popen[str]) -> str:
    """The rest of what it says, its input still open."""
    assert guard.stdout
    output = guard.stdout.read()
    assert guard.wait(PATIENCE_S) == 3
    return output


@pytest.mark.root
@pytest.mark.parametrize("space", ["--net", "--pid", "--ipc"])
def test_another_namespace_sees_the_same_lock(agent: Agent, space: str) -> None:
    first = session(agent, run="first-run")
    begun(first)
    error = refused_session(
        agent, before=("unshare", space, "--fork", "--mount-proc") if space == "--pid" else ("unshare", space)
    )
    assert (error["code"], error["detail"]["run"], error["detail"]["elsewhere"]) == (
        "locked",
        "first-run",
        space == "--pid",
    )
    first.communicate(timeout=PATIENCE_S)


@pytest.mark.root
@pytest.mark.parametrize(
    "what", ["link", "dangling", "folder", "fifo", "others", "hard", "writable", "dir-link", "dir-others"]
)
def test_a_lock_that_somebody_else_may_have_made_is_refused(agent: Agent, tmp_path: Path, what: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("")
    agent.lock_dir.mkdir()
    lock = agent.lock_dir / "lock"
    match what:
        case "link" | "dangling":
            lock.symlink_to(elsewhere if what == "link" else tmp_path / "nowhere")
        case "folder":
            lock.mkdir()
        case "fifo":
            os.mkfifo(lock)
        case "hard":
            lock.hardlink_to(elsewhere)
        case "others":
            lock.write_text("")
            os.chown(lock, 65534, 65534)
        case "writable":
            agent.lock_dir.chmod(0o777)
        case "dir-others":
            os.chown(agent.lock_dir, 65534, 65534)
        case _:
            agent.lock_dir.rename(tmp_path / "moved")
            agent.lock_dir.symlink_to(tmp_path / "moved")
    error = refused_session(agent)
    assert error["code"] == "lock"
    assert f"{agent.lock_dir}/lock" in error["message"]
    assert "remove it" in error["message"] or what == "dir-link"
    assert not (tmp_path / "nowhere").exists()
    assert elsewhere.read_text() == ""


USER = ("setpriv", "--reuid=65534", "--clear-groups")


@pytest.fixture(name="shared")
def a_lock_that_every_user_may_take(agent: Agent, engine: Path, tmp_path: Path) -> Agent:
    """Root's lock, and an engine and a journal that another user may use."""
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        folder.chmod(folder.stat().st_mode | 0o55)
    agent.engine = Path(shutil.copy(engine, tmp_path))
    session(agent).communicate(timeout=PATIENCE_S)
    file = agent.lock_dir / "lock"
    assert (file.stat().st_mode & 0o777, agent.lock_dir.stat().st_mode & 0o777) == (0o644, 0o755)
    return agent


def of_user(agent: Agent, folder: Path, run: str, *options: str) -> subprocess.Popen[str]:
    """A session of an ordinary user."""
    folder.mkdir(exist_ok=True)
    os.chown(folder, 65534, 65534)
    own = copy(agent)
    own.journal = folder
    return session(own, *options, run=run, before=USER)


@pytest.mark.root
def test_a_users_run_has_its_turn_between_runs_of_root(shared: Agent, tmp_path: Path) -> None:
    first = session(shared, run="root-1")
    begun(first)
    user = of_user(shared, tmp_path / "user", "user-1", "--wait-ns", str(1000 * 10**9))
    assert begun(user)["event"] == "waiting"
    wait_until(lambda: any(is_in_flock(child) for child in children(user.pid)), "the user to wait")
    last, _ = queued(shared, "root-2")
    first.communicate("stop\n", timeout=PATIENCE_S)
    assert begun(user)["event"] == "started"
    assert last.poll() is None
    user.communicate("stop\n", timeout=PATIENCE_S)
    while begun(last)["event"] == "waiting":
        pass
    last.communicate("stop\n", timeout=PATIENCE_S)


@pytest.mark.root
def test_root_learns_which_process_of_a_user_holds_the_lock(shared: Agent, tmp_path: Path) -> None:
    """A guard that was killed leaves its description, which is not the next holder's."""
    killed = session(shared, run="killed")
    begun(killed)
    end(killed)
    words = [*USER, "flock", "--nonblock", "--no-fork", shared.lock_dir / "lock", "sh", "-c", "echo; read a"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as user:
        assert user.stdin
        assert user.stdout
        user.stdout.readline()
        held = refused_session(shared)["detail"]
        assert (held["run"], held["pid"], held["uid"]) == (None, user.pid, 65534)
        (reported,) = lines(
            subprocess.run(
                [shared.engine, "release", "--lock-dir", shared.lock_dir],
                capture_output=True,
                text=True,
                check=False,
            ).stdout
        )
        assert reported["message"].endswith(f"end it with: kill {user.pid}")
        user.stdin.close()


OTHER_USER = """
set -eu
engine=$1 folder=$2 user="setpriv --reuid=65534 --regid=100 --clear-groups"
mkdir -p /run/rtgauge
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /tmp
chmod 777 "$folder"
mkfifo "$folder/input"
hold() {
    rm -f "$folder/said"
    "$@" guard --run held --lock --label a --host-pid $$ --journal "$folder/$#" <"$folder/input" >"$folder/said" &
    exec 3>"$folder/input"
    until grep -qs started "$folder/said"; do sleep 0.02; done
}
try() {
    "$@" guard --run tries --lock --journal "$folder/try-$#" </dev/null || true
}
leave() {
    echo stop >&3
    wait
}
hold "$engine"
try $user "$engine"
leave
hold $user "$engine"
try "$engine"
leave
chmod 600 /run/rtgauge/lock
hold "$engine"
try $user "$engine"
leave
try $user "$engine"
chgrp 100 /run/rtgauge/lock
chmod 660 /run/rtgauge/lock
hold $user "$engine"
try "$engine"
leave
"""


@pytest.mark.root
def test_root_and_users_see_runs_and_root_may_lock_out(engine: Path) -> None:
    """A folder below /var/tmp, because the test hides /tmp and /run."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        program = Path(shutil.copy(engine, folder))
        completed = subprocess.run(
            ["unshare", "--mount", "sh", "-c", OTHER_USER, "sh", program, folder],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
    reported = [line for line in lines(completed.stdout) if line["type"] in {"error", "guard"}]
    assert [line.get("event", line.get("code")) for line in reported] == [
        *("locked", "locked"),  # root holds, then a user
        *("locked", "started", "ended"),  # users may not lock, but see that root does
        "locked",  # a member of the group holds
    ]
    held = [line["detail"] for line in reported if line.get("code") == "locked"]
    assert [each["run"] for each in held] == ["held", "held", None, "held"]
    assert [each["uid"] for each in held] == [0, 65534, None, 65534]
    # A user may not name a process of root's as the one to end.
    assert [each["host_pid"] is not None for each in held] == [True, False, False, False]


FOREIGN_PLACE = """
set -eu
engine=$1 folder=$2
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=755 tmpfs /run
setpriv --reuid=1000 --clear-groups mkdir /tmp/rtgauge-65534
setpriv --reuid=65534 --regid=100 --clear-groups "$engine" guard --run a --lock --journal "$folder" </dev/null || true
"""


@pytest.mark.root
def test_a_lock_file_that_another_user_made_is_explained(engine: Path) -> None:
    """A folder below /var/tmp, because the test hides /tmp and /run."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o777)
        program = Path(shutil.copy(engine, folder))
        completed = subprocess.run(
            ["unshare", "--mount", "sh", "-c", FOREIGN_PLACE, "sh", program, folder / "journal"],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
    (reported,) = lines(completed.stdout)
    assert not missing(
        reported["message"], "/tmp/rtgauge-65534/lock", "another user", "remove it", "/run/user/65534"
    )


def test_a_holder_that_writes_nonsense_is_not_named(agent: Agent) -> None:
    first = session(agent, "--lease-ns", str(10**12))  # longer than a busy machine takes
    begun(first)
    for text in (b"", b"rubbish\n", b"\x1b[2J" * 1000, (agent.lock_dir / "lock").read_bytes()[:-3]):
        (agent.lock_dir / "lock").write_bytes(text)
        assert refused_session(agent)["detail"]["run"] is None
    first.communicate(timeout=PATIENCE_S)


def silence(agent: Agent) -> None:
    """Nothing was heard of the holder's host since the machine was booted."""
    with (agent.lock_dir / "lock").open("r+b") as lock:
        lock.write(b"%020d" % 1)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_run_without_host_ends_with_programs_and_settings(
    agent: Agent, tmp_path: Path, stopped: bool
) -> None:
    path = tmp_path / "setting"
    path.write_text("0\n")
    first = session(agent, "--restore", "--detach", run="dead-1")
    begun(first)
    program = agent.guard("--detach", program=["sleep", "1000"], run="dead-1")
    other = agent.guard(program=["sleep", "1000"], run="alive-1")
    program.started()
    other.started()
    agent.set(path, "1", run="dead-1", options=("--owner-pid", str(first.pid)))
    alive = agent.call("release", "--lock-dir", agent.lock_dir)
    assert (alive.returncode, json.loads(alive.stdout)["code"]) == (3, "release")
    assert "its host was heard from" in alive.stdout
    silence(agent)
    assert refused_session(agent)["detail"]["silent_ns"] > 8 * 10**9
    if stopped:
        first.send_signal(signal.SIGSTOP)
    completed = agent.call("release", "--lock-dir", agent.lock_dir)
    assert (completed.returncode, json.loads(completed.stdout)) == (0, {"type": "release", "run": "dead-1"})
    assert program.process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert path.read_text() == "0\n"
    assert other.process.poll() is None
    end(other.process)
    first.communicate(timeout=PATIENCE_S)
    assert json.loads(agent.call("release", "--lock-dir", agent.lock_dir).stdout) == {
        "type": "release",
        "run": None,
    }


def test_the_lock_ends_with_a_killed_guard_despite_children(agent: Agent) -> None:
    guard = agent.guard("--lock", program=["sh", "-c", "sleep 3 & echo up; wait"])
    assert guard.output() == "up"
    end(guard.process)
    second = session(agent)
    second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 0


@pytest.mark.root
@pytest.mark.alone
def test_a_full_or_read_only_folder(agent: Agent) -> None:
    agent.lock_dir.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=2,mode=755", "tmpfs", agent.lock_dir], check=True
    )
    try:
        (agent.lock_dir / "full").write_bytes(b"")
        assert "ENOSPC" in refused_session(agent)["message"]
        (agent.lock_dir / "full").unlink()
        (agent.lock_dir / "lock").write_bytes(b"")
        subprocess.run(["mount", "-o", "remount,ro", agent.lock_dir], check=True)
        first = session(agent)
        begun(first)
        assert refused_session(agent)["detail"]["run"] is None
        first.communicate(timeout=PATIENCE_S)
    finally:
        subprocess.run(["umount", agent.lock_dir], check=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_session_puts_back_at_any_end(agent: Agent, tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "setting"
    path.write_text("0\n")
    first = session(agent, "--restore")
    assert first.stdout
    first.stdout.readline()
    first.stdout.readline()
    agent.set(path, "1", options=("--owner-pid", str(first.pid)))
    first.send_signal(number)
    reported = lines(first.stdout.read())
    assert [s["type"] for s in reported] == ["restore", "restored", "guard"]
    assert (reported[-1]["reason"], reported[-1]["restored"], first.wait(PATIENCE_S)) == ("signal", True, 0)
    assert path.read_text() == "0\n"


def lock_is_free(agent: Agent) -> bool:
    """Whether a session begins, which then ends at once."""
    begun = session(agent)
    begun.communicate(timeout=PATIENCE_S)
    return begun.returncode == 0


def test_a_stuck_host_does_not_stop_the_restoring(agent: Agent, tmp_path: Path) -> None:
    """More lines than a pipe holds, and nobody who reads them; then nobody at all."""
    files = [tmp_path / f"f{i:03}" for i in range(300)]
    for stuck in (True, False):
        for path in files:
            path.write_text("0\n")
        first = session(agent, "--restore")
        assert first.stdout and first.stdin
        first.stdout.readline()
        first.stdout.readline()
        agent.set(
            *[word for path in files for word in (path, "1" * 300)], options=("--owner-pid", str(first.pid))
        )
        assert files[-1].read_text() == "1" * 300 + "\n"
        if not stuck:
            first.stdout.close()
        first.stdin.close()
        wait_until(lambda: {p.read_text() for p in files} == {"0\n"}, "all settings put back")
        # The last setting is back a moment before the lock is.
        wait_until(lambda: lock_is_free(agent), "the lock given up")
        if stuck:
            assert first.poll() is None
            assert json.loads(first.stdout.read().splitlines()[-1])["event"] == "ended"
        assert first.wait(PATIENCE_S) == 0
