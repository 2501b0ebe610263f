# SPDX-License-Identifier: MIT
"""Boards of a labgrid coordinator and exporter on the loopback; the board is an sshd behind a power switch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.e2e.cli import COMMAND, Done, end, environment, error_line, good, rtgauge, wait_until
from tests.e2e.conftest import document
from tests.e2e.processes import find
from tests.support.machine import Machine, free_port

pytestmark = [pytest.mark.engine, pytest.mark.root]
BIN = Path(sys.executable).parent
BOARD = """
{name}:
  NetworkService: {{address: 127.0.0.1, username: root, port: {port}}}
  NetworkPowerPort: {{model: simplerest, host: "http://127.0.0.1:{power}/{{index}}/{{value}}", index: 1}}
"""
QUICK = ("--load", "idle", "--set", "warm-up=100ms", "--duration", "500ms")


@dataclass
class Farm:
    """A coordinator with the place `bench` (tag `soc=x86`), which is off at first."""

    folder: Path
    machine: Machine
    port: int = field(default_factory=free_port)
    switched: list[str] = field(default_factory=list[str])

    @property
    def environment(self) -> dict[str, str | None]:
        return {
            "LG_COORDINATOR": f"127.0.0.1:{self.port}",
            "XDG_STATE_HOME": str(self.folder / "state"),
            "PATH": f"{self.machine.client()}:{BIN}:{os.environ['PATH']}",
        }

    def labgrid(self, *words: str, user: str = "somebody") -> str:
        own = {"LG_COORDINATOR": f"127.0.0.1:{self.port}", "LG_USERNAME": user, "LG_HOSTNAME": "desk"}
        done = subprocess.run(
            [BIN / "labgrid-client", *words],
            env=os.environ | own,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def holders(self) -> list[str]:
        return [line.split()[0] for line in self.labgrid("who").splitlines()[1:]]

    def journals(self) -> list[Path]:
        return list((self.folder / "state").glob("rtgauge/labgrid/*"))

    def rtgauge(self, *words: object) -> Done:
        return rtgauge(*words, env=self.environment)


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    folder = tmp_path_factory.mktemp("farm")
    with Machine(folder) as machine:
        machine.stop_sshd()
        made = Farm(folder, machine)

        class Power(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                made.switched.append(self.path)
                if self.path.endswith("1"):
                    machine.start_sshd()
                self.send_response(200)
                self.end_headers()

            def log_request(self, code: object = "-", size: object = "-") -> None:
                """Stay silent."""

        power = ThreadingHTTPServer(("127.0.0.1", 0), Power)
        threading.Thread(target=power.serve_forever, daemon=True).start()
        exported = folder / "boards.yaml"
        exported.write_text(
            "".join(
                BOARD.format(name=name, port=machine.port, power=power.server_port)
                for name in ("bench", "cart")
            )
        )
        address = f"127.0.0.1:{made.port}"
        log = (folder / "labgrid.log").open("wb")
        services = [
            subprocess.Popen([BIN / name, *words], cwd=folder, stdout=log, stderr=log)
            for name, words in (
                ("labgrid-coordinator", ("-l", address)),
                ("labgrid-exporter", ("-c", address, "-n", "desk", str(exported))),
            )
        ]
        try:
            wait_until(lambda: _exported(made), "the exporter")
            for name in ("bench", "cart"):
                made.labgrid("-p", name, "create")
                made.labgrid("-p", name, "add-match", f"*/{name}/*")
            made.labgrid("-p", "bench", "set-tags", "soc=x86")
            yield made
        finally:
            for service in services:
                service.kill()
                service.wait()
            power.shutdown()


def _exported(farm: Farm) -> bool:
    done = subprocess.run(
        [BIN / "labgrid-client", "resources"],
        env=os.environ | {"LG_COORDINATOR": f"127.0.0.1:{farm.port}"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.count("NetworkService") == 2


@pytest.fixture(autouse=True)
def nothing_left(farm: Farm) -> Iterator[None]:
    yield
    wait_until(lambda: farm.holders() == [] and farm.journals() == [], "every place to be free")


def test_a_board_is_switched_on_measured_and_released(farm: Farm, tmp_path: Path) -> None:
    good(farm.rtgauge("run", *QUICK, "--target", "labgrid:bench", "--out", tmp_path))
    assert farm.switched == ["/1/0", "/1/1"]
    assert farm.holders() == []
    (record,) = tmp_path.iterdir()
    shown = document(good(farm.rtgauge("show", record, "--json")).stdout)
    assert [facts["host"] for facts in shown["systems"].values()] == ["board"]
    assert shown["run"]["targets"] == ["labgrid:bench"]


def test_a_board_is_chosen_by_its_tags(farm: Farm) -> None:
    assert "board" in good(farm.rtgauge("system", "--target", "labgrid:soc=x86")).stdout
    assert "Reservation" not in farm.labgrid("reservations")
    refused = farm.rtgauge("system", "--target", "labgrid:soc=arm64")
    assert "no labgrid place with the tags soc=arm64 is free" in error_line(refused, 3)


def test_a_place_of_others_stays_theirs(farm: Farm) -> None:
    farm.labgrid("-p", "bench", "acquire")
    try:
        for name, says in (("bench", "is held"), ("soc=x86", "is free")):
            refused = farm.rtgauge("system", "--target", f"labgrid:{name}")
            assert says in error_line(refused, 3)
            assert farm.holders() == ["somebody"]
    finally:
        farm.labgrid("-p", "bench", "release")


@pytest.mark.parametrize("guard_too", [False, True], ids=["", "with its guard"])
def test_a_killed_command_leaves_no_place_taken(farm: Farm, *, guard_too: bool) -> None:
    words = ("probe", "wakeup", "--duration", "20s", "--target", "labgrid:bench")
    running = subprocess.Popen(
        [*COMMAND, *words],
        env=environment(**farm.environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        wait_until(lambda: len(farm.holders()) == 1, "a place")
        (guard,) = find(running.pid, "rtgauge.target.labgrid")
        if guard_too:
            os.kill(guard, signal.SIGKILL)
        running.kill()
        running.wait()
        if guard_too:
            assert len(farm.holders()) == 1
            good(farm.rtgauge("system", "--target", "labgrid:bench"))
    finally:
        end(running)


def test_two_runs_never_wait_for_each_other(farm: Farm) -> None:
    program = (
        "import sys; from rtgauge.target.labgrid import hold_places; hold_places(sys.argv[1:], 600); "
        "print('held')"
    )
    both = [
        subprocess.Popen(
            [sys.executable, "-c", program, *names],
            env={name: value for name, value in (os.environ | farm.environment).items() if value},
            stdout=subprocess.PIPE,
            text=True,
        )
        for names in (("bench", "cart"), ("cart", "bench"))
    ]
    assert [process.communicate()[0] for process in both] == ["held\n", "held\n"]


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [("nowhere", 3, "nowhere"), ("a b", 2, "not a place of labgrid"), ("-x", 2, "not a place of labgrid")],
)
def test_wrong_names_are_refused(farm: Farm, name: str, status: int, says: str) -> None:
    refused = farm.rtgauge("system", "--target", f"labgrid:{name}")
    assert says in error_line(refused, status)


def test_a_coordinator_that_is_away_is_named(farm: Farm, tmp_path: Path) -> None:
    changed = {"LG_COORDINATOR": f"127.0.0.1:{free_port()}", "XDG_STATE_HOME": str(tmp_path)}
    refused = rtgauge("system", "--target", "labgrid:bench", env=farm.environment | changed)
    assert "LG_COORDINATOR" in error_line(refused, 3)
