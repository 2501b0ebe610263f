# SPDX-License-Identifier: MIT
"""Boards of labgrid that have only a serial console and a power switch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.e2e.processes import all_pids, command_line
from tests.support.cli import COMMAND, CommandResult, environment, error_line, good, rtgauge, wait_until
from tests.support.machine import Machine
from tests.support.real_record import document

from ext.labgrid.tests.console import SerialConsole
from ext.labgrid.tests.labgrid import BIN, Labgrid

pytestmark = [pytest.mark.engine, pytest.mark.root]
QUICK = ("--load", "idle", "--set", "warm-up=100ms", "--duration", "500ms")
PASSWORD = "-".join(("staple", "battery", "40d1"))
SHELL = "exec env PS1='board# ' sh -i"
LOGIN = f"""
while printf 'board login: ' && read -r name; do
    [ "$name" = root ] && printf 'Password: ' && stty -echo && read -r word
    stty echo
    [ "$word" = {PASSWORD} ] && env PS1='board# ' sh -i
done
"""


class Bench:
    """The places `raw` and `adapter`, whose consoles are a shell, and `login`, which asks for a password."""

    def __init__(self, folder: Path, labgrid: Labgrid, shell: SerialConsole, login: SerialConsole) -> None:
        self.folder, self.labgrid, self.shell, self.login = folder, labgrid, shell, login

    @property
    def environment(self) -> dict[str, str | None]:
        return {
            "LG_COORDINATOR": self.labgrid.address,
            "XDG_STATE_HOME": str(self.folder / "state"),
            "PATH": f"{BIN}:{os.environ['PATH']}",
        }

    def rtgauge(self, *words: object, **more: str) -> CommandResult:
        return rtgauge(*words, env=self.environment | more)

    def journals(self) -> list[Path]:
        return list((self.folder / "state").glob("rtgauge/labgrid/*"))

    def is_free(self) -> bool:
        return self.labgrid.holders() == [] and self.journals() == []


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("bench")

    class Power(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Stay silent."""

    power = ThreadingHTTPServer(("127.0.0.1", 0), Power)
    threading.Thread(target=power.serve_forever, daemon=True).start()
    with (
        Machine(folder, busybox=False) as machine,
        SerialConsole([*machine.inside, "sh", "-c", SHELL]) as shell,
        SerialConsole([*machine.inside, "sh", "-c", LOGIN]) as login,
    ):
        network = "NetworkSerialPort: {{host: 127.0.0.1, port: {}, protocol: raw}}"
        boards = {
            "raw": network.format(shell.port),
            "adapter": f"RawSerialPort: {{port: {shell.adapter}}}",
            "login": network.format(login.port),
        }
        with Labgrid(folder, boards, power.server_port) as labgrid:
            yield Bench(folder, labgrid, shell, login)
    power.shutdown()


@pytest.fixture(autouse=True)
def nothing_left(bench: Bench) -> Iterator[None]:
    yield
    wait_until(bench.is_free, "every place to be free")
    assert bench.shell.is_usable()
    assert bench.login.is_usable()


@pytest.mark.parametrize("place", ["raw", "adapter"])
def test_a_board_is_measured_over_its_console(bench: Bench, tmp_path: Path, place: str) -> None:
    """Over TCP, and over an adapter that the exporter serves with ser2net (RFC 2217)."""
    good(bench.rtgauge("run", *QUICK, "--target", f"labgrid:{place}", "--out", tmp_path))
    (record,) = tmp_path.iterdir()
    shown = document(good(bench.rtgauge("show", record, "--json")).stdout)
    assert [facts["host"] for facts in shown["systems"].values()] == ["board"]
    bench.shell.said.clear()
    bench.shell.type('echo it" "works\n')
    wait_until(lambda: b"it works" in bench.shell.said, "the shell")
    assert b'echo it" "works' in bench.shell.said


def test_root_logs_in_with_a_password_and_out_again(bench: Bench) -> None:
    refused = bench.rtgauge("audit", "--facts", "--target", "labgrid:login")
    assert "RTGAUGE_CONSOLE_PASSWORD" in error_line(refused, 3)
    shown = good(
        bench.rtgauge("audit", "--facts", "--target", "labgrid:login", RTGAUGE_CONSOLE_PASSWORD=PASSWORD)
    )
    assert "board" in shown.stdout
    wait_until(lambda: bench.login.said.endswith(b"board login: "), "the prompt")


@pytest.mark.parametrize("everything", [False, True], ids=["", "with all that it started"])
def test_a_killed_command_leaves_the_console_usable(bench: Bench, *, everything: bool) -> None:
    words = ("probe", "wakeup", "--duration", "60s", "--target", "labgrid:raw")
    running = subprocess.Popen(
        [*COMMAND, *words],
        env=environment(**bench.environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    wait_until(lambda: not bench.shell.is_usable(), "the server on the console")
    (journal,) = bench.journals()
    folder = json.loads(journal.read_text())["folder"]
    running.kill()
    if everything:
        for each in all_pids():
            if folder in command_line(each) or str(journal) in command_line(each):
                os.kill(each, signal.SIGKILL)
    running.wait()
    wait_until(bench.shell.is_usable, "the shell")
    if not everything:
        # The guard frees the place; if it was killed too, the next command does.
        wait_until(bench.is_free, "the place to be free")
    good(bench.rtgauge("audit", "--facts", "--target", "labgrid:raw"))
