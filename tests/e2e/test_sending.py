# SPDX-License-Identifier: MIT
"""Records that are sent to a folder, over SSH to a board that has only BusyBox, and by rsync."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from rtgauge.errors import InputError, RtgaugeError
from rtgauge.record.reader import read_run
from rtgauge.record.writer import RecordWriter
from rtgauge.store.sending import PUT, Parcel, Sent, destination, send
from tests.e2e.cli import COMMAND, environment, wait_until
from tests.support.machine import Machine, client, free_port
from tests.support.records import Shape, write_record
from tests.unit.store.stored import run

pytestmark = [pytest.mark.root]


def small(folder: Path, seed: int = 1, **changes: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    shape = Shape(seed=seed, seconds=2, loads=("idle",))
    for name, value in changes.items():
        setattr(shape, name, value)
    record = write_record(folder, shape)
    for step in (record / "steps").iterdir():
        about = json.loads((step / "step.json").read_text())
        about["checksums"] = {
            each.name: sha256(each.read_bytes()).hexdigest()
            for each in step.iterdir()
            if each.name != "step.json"
        }
        (step / "step.json").write_text(json.dumps(about))
    return summed(record)


def summed(record: Path) -> Path:
    """The same record with right checksums of its JSON files."""
    RecordWriter(record, record.name).write_run(read_run(record))
    return record


def said(*words: object) -> str:
    """What `rtgauge store ...` prints."""
    done = run("store", *words)
    assert done.exception is None, done.exception
    return done.stdout


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return small(tmp_path / "runs")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    """An rtgauge destination over SSH, its environment's PATH, and the same folder seen from here."""
    folder = tmp_path_factory.mktemp("server")
    with Machine(folder, "archive") as machine:
        yield (
            f"{machine.target}/records",
            f"{machine.client()}:{os.environ['PATH']}",
            folder / "archive/root/records",
        )


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """An rsync server: its URL and its folder."""
    folder = tmp_path_factory.mktemp("rsync")
    (folder / "records").mkdir(mode=0o777)
    port = free_port()
    (folder / "conf").write_text(
        f"port = {port}\naddress = 127.0.0.1\nuse chroot = no\nuid = {os.getuid()}\ngid = {os.getgid()}\n"
        f"[records]\npath = {folder}/records\nread only = no\n"
    )
    running = subprocess.Popen(
        ["rsync", "--daemon", "--no-detach", f"--config={folder}/conf"], stdin=subprocess.DEVNULL
    )
    url = f"rsync://127.0.0.1:{port}/records"
    wait_until(
        lambda: subprocess.run(["rsync", url], capture_output=True, check=False).returncode == 0,
        "the rsync server",
    )
    yield url, folder / "records"
    running.kill()
    running.wait()


@pytest.fixture(scope="module")
def over_ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    """A destination of rsync over SSH, the environment's PATH, and the same folder seen from here."""
    folder = tmp_path_factory.mktemp("over-ssh")
    (folder / "records").mkdir()
    with Machine(folder, "archive", busybox=False) as machine:
        alias = f"Host archive\nHostName 127.0.0.1\nPort {machine.port}\nHost *\n"
        path = f"{client(machine.folder, [machine], alias)}:{os.environ['PATH']}"
        yield f"root@archive:{folder}/records", path, folder / "records"


@pytest.fixture(params=["folder", "ssh", "rsync", "rsync over ssh"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, Path]:
    """A destination, and its folder seen from here."""
    if "ssh" in request.param:
        name = "server" if request.param == "ssh" else "over_ssh"
        url, path, folder = request.getfixturevalue(name)
        monkeypatch.setenv("PATH", path)
    elif request.param == "rsync":
        url, folder = request.getfixturevalue("daemon")
    else:
        url, folder = str(tmp_path / "kept"), tmp_path / "kept"
    for each in folder.iterdir() if folder.exists() else []:
        shutil.rmtree(each)
    return url, folder


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_record_arrives_whole_once(place: tuple[str, Path], record: Path) -> None:
    url, folder = place
    assert said("send", record, "--to", url) == f"sent: {record.name}\n"
    assert [path.name for path in folder.iterdir()] == [record.name]
    assert tree(folder / record.name) == tree(record)
    assert said("send", record, "--to", url) == f"unchanged: {record.name}\n"
    store = folder.parent / "store.sqlite"
    assert said("add", folder, "--label", "a=b", "--store", store).startswith("added: ")
    assert send(record, destination(url))[1] is Sent.UNCHANGED, "a label is no other record"
    store.unlink()


def test_another_record_of_the_name_is_refused(place: tuple[str, Path], record: Path, tmp_path: Path) -> None:
    url, folder = place
    send(record, destination(url))
    before = tree(folder)
    other = small(tmp_path / "other", median_ns={"idle": 50_000.0})
    assert other.name == record.name
    with pytest.raises(InputError, match="has another record"):
        send(other, destination(url))
    assert tree(folder) == before


def test_a_damaged_record_is_not_sent_and_not_added(
    place: tuple[str, Path], record: Path, tmp_path: Path
) -> None:
    url, folder = place
    (step,) = (record / "steps").iterdir()
    for change in ("windows", "link", "name"):
        bad = tmp_path / change / record.name
        shutil.copytree(record, bad)
        if change == "windows":
            damaged = bad / "steps" / step.name / "windows.parquet"
            damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
        elif change == "link":
            (bad / "passwd").symlink_to("/etc/passwd")
        else:
            (bad / "a b").touch()
        with pytest.raises(RtgaugeError):
            send(bad, destination(url))
    assert not folder.exists() or list(folder.iterdir()) == []
    refused = run("store", "add", tmp_path / "windows" / record.name, "--store", tmp_path / "s.sqlite")
    assert "checksum" in str(refused.exception)


def test_a_file_that_only_its_checksum_covers_is_checked(record: Path, tmp_path: Path) -> None:
    """`store add` looks at every file of a record that came from elsewhere, not only at what it reads."""
    (step,) = (record / "steps").iterdir()
    (step / "stream.ndjson").write_text("{}\n")
    about = json.loads((step / "step.json").read_text())
    about["checksums"]["stream.ndjson"] = "0" * 64
    (step / "step.json").write_text(json.dumps(about))
    summed(record)
    refused = run("store", "add", record, "--store", tmp_path / "s.sqlite")
    assert "stream.ndjson does not match its checksum" in str(refused.exception)
    (step / "stream.ndjson").unlink()
    assert said("add", record, "--store", tmp_path / "s.sqlite").startswith("added: ")


@pytest.mark.parametrize("name", ["run.json", "step.json", "system.json"])
def test_a_changed_file_is_found_on_the_way_in(record: Path, tmp_path: Path, name: str) -> None:
    """It is still valid JSON of its model: only its checksum tells."""
    (file,) = record.rglob(name)
    file.write_text(file.read_text() + "\n")
    store = tmp_path / "s.sqlite"
    for words in (("add", record, "--store", store), ("send", record, "--to", tmp_path / "kept")):
        refused = run("store", *words)
        assert str(refused.exception).endswith(f"{name} does not match its checksum: the record is damaged")
    (record / "SHA256SUMS").unlink()
    assert said("add", record, "--store", store).startswith("added: "), "an older record has no checksums"


def test_a_cut_stream_leaves_nothing(record: Path, tmp_path: Path) -> None:
    """The shell gets the beginning of what a sender writes, cut in many places, and what was changed on the way."""
    whole = io.BytesIO()
    parcel = Parcel.of(record)
    parcel.write_tar(whole)
    data, to = whole.getvalue(), tmp_path / "kept"

    def put(stream: bytes) -> int:
        words = ["sh", "-c", PUT, "sh", str(to), parcel.name, "0"]
        return subprocess.run(words, input=stream, capture_output=True, check=False).returncode

    content = len(data.rstrip(b"\0"))
    for part in range(12):
        assert put(data[: content * part // 12])
        assert list(to.iterdir()) == []
    at = data.index(b"PAR1") + 100
    assert put(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    assert list(to.iterdir()) == []
    assert put(data) == 0
    assert tree(to / record.name) == tree(record)
    assert put(data), "it is there already"
    assert [path.name for path in to.iterdir()] == [record.name]


def test_a_killed_sender_leaves_nothing(server: tuple[str, str, Path], record: Path, tmp_path: Path) -> None:
    """It is killed while the server waits for the rest: its program for ssh passes only the first bytes on."""
    url, path, folder = server
    for each in folder.iterdir() if folder.exists() else []:
        shutil.rmtree(each)
    (slow := tmp_path / "bin").mkdir()
    (slow / "ssh").write_text(
        '#!/bin/sh\nPATH=${PATH#*:}\ncase "$*" in *tar*) ;; *) exec ssh "$@";; esac\n'
        f'(dd bs=512 count=8 iflag=fullblock 2>/dev/null; touch {tmp_path}/began; cat >/dev/null) | ssh "$@"\n'
    )
    (slow / "ssh").chmod(0o755)
    (record / "held.bin").write_bytes(bytes(64 << 20))
    sender = subprocess.Popen(
        [*COMMAND, "store", "send", str(record), "--to", url],
        env=environment(PATH=f"{slow}:{path}"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until((tmp_path / "began").exists, "the first bytes")
    finally:
        sender.send_signal(signal.SIGKILL)
        sender.wait()
    wait_until(lambda: folder.exists() and list(folder.iterdir()) == [], "the server to clean up")


@pytest.mark.parametrize("to", ["", "-x", "ssh://host", "ssh://a:b@host/x", "ssh://-oX=y/x", "a\nb"])
def test_a_wrong_place_is_refused(record: Path, to: str) -> None:
    with pytest.raises(InputError):
        destination(to)


def test_a_server_that_is_away_is_named(record: Path) -> None:
    port = free_port()
    away = f"ssh://root@127.0.0.1:{port}/srv", f"rsync://127.0.0.1:{port}/records", "nobody.invalid:/srv"
    for to in away:
        refused = run("store", "send", record, "--to", to)
        assert "try again" in str(refused.exception)
