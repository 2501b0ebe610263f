# SPDX-License-Identifier: MIT
"""Records that a fleet sends to a folder, and over SSH to a board that has only BusyBox."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from tests.support.cli import wait_until
from tests.support.machine import Machine, free_port
from tests.support.records import Shape, write_record

from ext.store.tests.stored import run
from rtgauge.errors import InputError, MeasureError, RecordError, RtgaugeError
from rtgauge.record.reader import read_run
from rtgauge.record.writer import RecordWriter
from rtgauge_ext.fleet.archive import PUT, Parcel, Sent, archive_of, send

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


def store_output(*words: object) -> str:
    """What `rtgauge store ...` prints."""
    completed = run("store", *words)
    assert completed.exception is None, completed.exception
    return completed.stdout


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return small(tmp_path / "runs")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    """An archive over SSH, its environment's PATH, and the same folder seen from here."""
    folder = tmp_path_factory.mktemp("server")
    with Machine(folder, "archive") as machine:
        yield (
            f"{machine.target}/records",
            f"{machine.client()}:{os.environ['PATH']}",
            folder / "archive/root/records",
        )


@pytest.fixture(params=["folder", "ssh"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, Path]:
    """An archive, and its folder seen from here."""
    if request.param == "ssh":
        url, path, folder = request.getfixturevalue("server")
        monkeypatch.setenv("PATH", path)
    else:
        url, folder = str(tmp_path / "kept"), tmp_path / "kept"
    for each in folder.iterdir() if folder.exists() else []:
        shutil.rmtree(each)
    return url, folder


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_record_arrives_whole_once(place: tuple[str, Path], record: Path) -> None:
    url, folder = place
    assert send(record, archive_of(url)) is Sent.SENT
    assert [path.name for path in folder.iterdir()] == [record.name]
    assert tree(folder / record.name) == tree(record)
    assert send(record, archive_of(url)) is Sent.UNCHANGED
    store = folder.parent / "store.sqlite"
    assert store_output("add", folder, "--label", "a=b", "--store", store).startswith("added: ")
    assert send(record, archive_of(url)) is Sent.UNCHANGED, "a label is no other record"
    store.unlink()


def test_another_record_of_the_name_is_refused(place: tuple[str, Path], record: Path, tmp_path: Path) -> None:
    url, folder = place
    send(record, archive_of(url))
    before = tree(folder)
    other = small(tmp_path / "other", median_ns={"idle": 50_000.0})
    assert other.name == record.name
    with pytest.raises(InputError, match="has another record"):
        send(other, archive_of(url))
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
            send(bad, archive_of(url))
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
    assert "stream.ndjson" in str(refused.exception)
    (step / "stream.ndjson").unlink()
    assert store_output("add", record, "--store", tmp_path / "s.sqlite").startswith("added: ")


@pytest.mark.parametrize("name", ["run.json", "step.json", "system.json"])
def test_a_changed_file_is_found_on_the_way_in(record: Path, tmp_path: Path, name: str) -> None:
    """It is still valid JSON of its model: only its checksum tells."""
    (file,) = record.rglob(name)
    file.write_text(file.read_text() + "\n")
    store = tmp_path / "s.sqlite"
    why = f"{name} does not match its checksum: the record is damaged"
    assert str(run("store", "add", record, "--store", store).exception).endswith(why)
    with pytest.raises(RecordError, match=f"{why}$"):
        send(record, archive_of(str(tmp_path / "kept")))
    (record / "SHA256SUMS").unlink()
    assert store_output("add", record, "--store", store).startswith("added: "), (
        "an older record has no checksums"
    )


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
    program = (
        "import sys; from pathlib import Path; from rtgauge_ext.fleet.archive import archive_of, send; "
        "send(Path(sys.argv[1]), archive_of(sys.argv[2]))"
    )
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
        [sys.executable, "-c", program, str(record), url],
        env={**os.environ, "PATH": f"{slow}:{path}", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until((tmp_path / "began").exists, "the first bytes")
    finally:
        sender.send_signal(signal.SIGKILL)
        sender.wait()
    wait_until(lambda: folder.exists() and list(folder.iterdir()) == [], "the server to clean up")


@pytest.mark.parametrize(
    "to",
    [
        "", "-x", "ssh://host", "ssh://a:b@host/x", "ssh://-oX=y/x", "a\nb", "rsync://host/records",
        "lab@host:/srv", "host:records",
    ],
)  # fmt: skip
def test_a_wrong_place_is_refused(to: str) -> None:
    with pytest.raises(InputError):
        archive_of(to)


def test_a_server_that_is_away_is_named(record: Path) -> None:
    with pytest.raises(MeasureError, match="try again"):
        send(record, archive_of(f"ssh://root@127.0.0.1:{free_port()}/srv"))


def test_what_is_not_of_the_sender_stays(record: Path, tmp_path: Path) -> None:
    """Another program's folder with the name of an unfinished one, however old; and what a link leads to."""
    kept = tmp_path / "kept"
    other = kept / ".backup.incoming"
    other.mkdir(parents=True)
    (other / "file").touch()
    os.utime(other, (0, 0))
    assert send(record, archive_of(str(kept))) is Sent.SENT
    assert (other / "file").exists()
    shutil.rmtree(kept / record.name)
    elsewhere = tmp_path / "elsewhere"
    for target in (elsewhere, tmp_path / "gone"):
        elsewhere.mkdir(exist_ok=True)
        (kept / record.name).symlink_to(target)
        with pytest.raises(InputError, match="has another record"):
            send(record, archive_of(str(kept)))
        assert list(elsewhere.iterdir()) == []
        (kept / record.name).unlink()
    (kept / record.name).mkdir()
    os.mkfifo(kept / record.name / "run.json")
    with pytest.raises(InputError, match="has another record"):
        send(record, archive_of(str(kept)))


def test_the_faster_of_two_senders_wins(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another record of the name comes between the last look and the rename."""
    (tmp_path / "bin").mkdir()
    move = tmp_path / "bin/mv"
    kept = tmp_path / "kept"
    move.write_text(
        f"#!/bin/sh\nmkdir -p {kept}/{record.name} && touch {kept}/{record.name}/run.json\n"
        f'exec {shutil.which("mv")} "$@"\n'
    )
    move.chmod(0o755)
    monkeypatch.setenv("PATH", f"{move.parent}:{os.environ['PATH']}")
    with pytest.raises(MeasureError, match="could not be sent"):
        send(record, archive_of(str(kept)))
    assert tree(kept) == {f"{record.name}/run.json": b""}


def test_what_a_killed_writer_left_is_not_sent(record: Path, tmp_path: Path) -> None:
    before = tree(record)
    (record / f".{'0a' * 16}.tmp").write_text("half")
    assert send(record, archive_of(str(tmp_path / "kept"))) is Sent.SENT
    assert tree(tmp_path / "kept" / record.name) == before
