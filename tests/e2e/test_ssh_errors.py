# SPDX-License-Identifier: MIT
"""What can be wrong with a target over SSH: one clear line each, and nothing left there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_ssh import left_on, over_ssh
from tests.support.cli import error_line, good, invoke, rtgauge
from tests.support.machine import Machine, client, free_port, make_key
from tests.support.messages import missing
from tests.support.real_record import document

pytestmark = [pytest.mark.engine, pytest.mark.root]
PROBE = ("probe", "wakeup", "--duration", "200ms", "--warm-up", "0s", "--target")


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with Machine(tmp_path_factory.mktemp("board")) as machine:
        yield machine
        assert left_on(machine) == ""


def test_the_host_key_has_changed(board: Machine, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other").with_suffix(".pub").read_text()
    place = client(tmp_path, [board])
    (place / "known_hosts").write_text(f"[127.0.0.1]:{board.port} {other}")
    line = error_line(invoke(*PROBE, board.target, env={"PATH": f"{place}:{os.environ['PATH']}"}), 3)
    assert "host key" in line
    assert f"ssh-keygen -R '[127.0.0.1]:{board.port}'" in line


def test_the_host_key_is_not_known(board: Machine, tmp_path: Path) -> None:
    place = client(tmp_path, [board])
    (place / "known_hosts").write_text("")
    line = error_line(invoke(*PROBE, board.target, env={"PATH": f"{place}:{os.environ['PATH']}"}), 3)
    assert "not known yet" in line


def test_a_user_who_is_not_let_in(board: Machine) -> None:
    assert "does not let this user in" in error_line(
        over_ssh(board, *PROBE, board.target.replace("root@", "nobody@")), 3
    )


def test_nobody_listens(board: Machine) -> None:
    line = error_line(over_ssh(board, *PROBE, f"ssh://root@127.0.0.1:{free_port()}"), 3)
    assert "Connection refused" in line


@pytest.mark.parametrize(
    ("route", "reason"),
    [("", "Network is unreachable"), ("ip route add unreachable 192.0.2.0/24;", "No route to host")],
)
def test_there_is_no_way_to_the_host(board: Machine, route: str, reason: str) -> None:
    """From a network of its own, in which there is no other machine."""
    alone = ("unshare", "--net", "sh", "-c", f'ip link set lo up; {route} exec "$@"', "sh")
    env = {"PATH": f"{board.client()}:{os.environ['PATH']}"}
    line = error_line(rtgauge(*PROBE, "ssh://root@192.0.2.1", env=env, before=alone), 3)
    assert not missing(line, "ssh://root@192.0.2.1 cannot be reached", reason, "network")


def test_there_is_no_such_host(board: Machine) -> None:
    assert "the host's name is unknown" in error_line(
        over_ssh(board, *PROBE, "ssh://no-such-host.invalid"), 3
    )


def test_there_is_no_ssh(tmp_path: Path) -> None:
    assert "openssh-client" in error_line(invoke(*PROBE, "ssh://board", env={"PATH": str(tmp_path)}), 3)


def test_not_root_on_the_target(tmp_path: Path) -> None:
    with Machine(
        tmp_path, busybox=False, become="setpriv --reuid 65534 --regid 65534 --clear-groups"
    ) as board:
        line = error_line(over_ssh(board, *PROBE, board.target), 3)
        assert f"{board.target}: real-time scheduling is refused" in line
        assert "run as root" in line
        assert "or raise rtprio" in line
        assert left_on(board) == ""


@pytest.mark.parametrize("tmp", ["size=64k", "size=16m,noexec", "size=16m,ro"])
def test_another_place_is_taken_where_tmp_will_not_do(tmp_path: Path, tmp: str) -> None:
    with Machine(tmp_path, tmp=tmp) as board:
        good(over_ssh(board, *PROBE, board.target))
        assert left_on(board) == ""


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("size=64k", "there is no room"),
        ("size=16m,noexec", "the folder does not allow programs to run"),
        ("size=16m,ro", "the folder cannot be created"),
    ],
)
def test_no_place_will_do(tmp_path: Path, options: str, reason: str) -> None:
    with Machine(tmp_path, tmp=options, others=options) as board:
        line = error_line(over_ssh(board, *PROBE, board.target), 3)
        assert line.count(reason) == 3
        assert all(f"{place}: {reason}" in line for place in ("/tmp", "/var/tmp"))
        assert "set TMPDIR on the target" in line
        assert left_on(board) == ""


def test_an_architecture_without_an_engine(tmp_path: Path) -> None:
    other = """printf '#!/bin/sh\\necho sparc64\\n' >"$1/uname"; chmod 755 "$1/uname"; mount --bind "$1/uname" "$(command -v uname)" """
    with Machine(tmp_path, busybox=False, script=other) as board:
        line = error_line(over_ssh(board, *PROBE, board.target), 3)
        assert f"{board.target}: the target's architecture is sparc64" in line
        assert "armhf" in line
        assert left_on(board) == ""


def test_an_engine_that_is_not_of_its_architecture(board: Machine, engine: Path, tmp_path: Path) -> None:
    content = bytearray(engine.read_bytes())
    content[18:20] = b"\xed\xfe"  # e_machine, which no kernel knows
    foreign = tmp_path / "engine"
    foreign.write_bytes(content)
    foreign.chmod(0o755)
    line = error_line(over_ssh(board, *PROBE, board.target, env={"RTGAUGE_ENGINE": str(foreign)}), 3)
    assert "does not run there" in line
    assert "unset RTGAUGE_ENGINE" in line


@pytest.mark.parametrize("reported", ["rtgauge-engine 9.9.9", "something else"])
def test_an_engine_of_another_version(board: Machine, tmp_path: Path, reported: str) -> None:
    engine = tmp_path / "engine"
    engine.write_text(f"#!/bin/sh\necho '{reported}'\n")
    engine.chmod(0o755)
    line = error_line(over_ssh(board, *PROBE, board.target, env={"RTGAUGE_ENGINE": str(engine)}), 3)
    assert "version" in line
    assert "RTGAUGE_ENGINE" in line


def test_a_record_of_another_version_is_not_resumed(record: Path) -> None:
    run = record / "run.json"
    text = run.read_text().replace('"state": "complete"', '"state": "interrupted"')
    version = document(text)["rtgauge"]
    run.write_text(text.replace(f'"rtgauge": "{version}"', '"rtgauge": "0.0.9"'))
    line = error_line(invoke("resume", record), 2)
    assert "0.0.9" in line
    assert version in line


def test_the_temporary_folder_has_a_long_name(board: Machine, tmp_path: Path) -> None:
    """A Unix socket's path is short: the connection's is elsewhere then."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    good(over_ssh(board, *PROBE, board.target, env={"TMPDIR": str(folder)}))
    assert not list(folder.glob("rtg-*"))
