# SPDX-License-Identifier: MIT
"""Boards of a labgrid coordinator and exporter on the loopback; the board is an sshd behind a power switch."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.e2e.processes import find
from tests.support.cli import (
    COMMAND,
    PATIENCE_S,
    CommandResult,
    end,
    environment,
    error_line,
    good,
    rtgauge,
    wait_until,
)
from tests.support.machine import Machine, client, free_port
from tests.support.real_record import document

from ext.labgrid.tests.labgrid import BIN, Labgrid

pytestmark = [pytest.mark.engine, pytest.mark.root]
QUICK = ("--load", "idle", "--set", "warm-up=100ms", "--duration", "500ms")


class Farm:
    """A coordinator with the places `bench` (tag `soc=x86`) and `cart`: one board, which is off at first."""

    def __init__(self, folder: Path, machine: Machine, labgrid: Labgrid) -> None:
        self.folder, self.machine, self.labgrid = folder, machine, labgrid
        self.switched: list[str] = []

    @property
    def environment(self) -> dict[str, str | None]:
        return {
            "LG_COORDINATOR": self.labgrid.address,
            "XDG_STATE_HOME": str(self.folder / "state"),
            "PATH": f"{self.machine.client()}:{BIN}:{os.environ['PATH']}",
        }

    def journals(self) -> list[Path]:
        return list((self.folder / "state").glob("rtgauge/labgrid/*"))

    def rtgauge(self, *words: object) -> CommandResult:
        return rtgauge(*words, env=self.environment)


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    folder = tmp_path_factory.mktemp("farm")
    with Machine(folder) as machine:
        machine.stop_sshd()
        switched: list[str] = []

        class Power(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                switched.append(self.path)
                if self.path.endswith("1"):
                    machine.start_sshd()
                self.send_response(200)
                self.end_headers()

            def log_request(self, code: object = "-", size: object = "-") -> None:
                """Stay silent."""

        power = ThreadingHTTPServer(("127.0.0.1", 0), Power)
        threading.Thread(target=power.serve_forever, daemon=True).start()
        boards = {"bench": machine.port, "cart": machine.port}
        try:
            with Labgrid(folder, boards, power.server_port) as labgrid:
                labgrid.client("-p", "bench", "set-tags", "soc=x86")
                made = Farm(folder, machine, labgrid)
                made.switched = switched
                yield made
        finally:
            power.shutdown()


@pytest.fixture(autouse=True)
def nothing_left(farm: Farm) -> Iterator[None]:
    yield
    wait_until(lambda: farm.labgrid.holders() == [] and farm.journals() == [], "every place to be free")


def test_a_board_is_switched_on_measured_and_released(farm: Farm, tmp_path: Path) -> None:
    good(farm.rtgauge("run", *QUICK, "--target", "labgrid:bench", "--out", tmp_path))
    assert farm.switched == ["/bench/0", "/bench/1"]
    assert farm.labgrid.holders() == []
    (record,) = tmp_path.iterdir()
    shown = document(good(farm.rtgauge("show", record, "--json")).stdout)
    assert [facts["host"] for facts in shown["systems"].values()] == ["board"]
    assert shown["run"]["targets"] == ["labgrid:bench"]


def test_a_board_is_chosen_by_its_tags(farm: Farm) -> None:
    assert "board" in good(farm.rtgauge("audit", "--facts", "--target", "labgrid:soc=x86")).stdout
    assert "Reservation" not in farm.labgrid.client("reservations")
    refused = farm.rtgauge("audit", "--facts", "--target", "labgrid:soc=arm64")
    assert "soc=arm64" in error_line(refused, 3)


def test_a_place_of_others_stays_theirs(farm: Farm) -> None:
    farm.labgrid.client("-p", "bench", "acquire")
    try:
        for name, expected_text in (("bench", "is held"), ("soc=x86", "all are in use")):
            refused = farm.rtgauge("audit", "--facts", "--target", f"labgrid:{name}")
            assert expected_text in error_line(refused, 3)
            assert farm.labgrid.holders() == ["somebody"]
    finally:
        farm.labgrid.client("-p", "bench", "release")


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
        wait_until(lambda: len(farm.labgrid.holders()) == 1, "a place")
        (guard,) = find(running.pid, "rtgauge_ext.labgrid.places")
        if guard_too:
            os.kill(guard, signal.SIGKILL)
        running.kill()
        running.wait()
        if guard_too:
            assert len(farm.labgrid.holders()) == 1
            good(farm.rtgauge("audit", "--facts", "--target", "labgrid:bench"))
    finally:
        end(running)


def test_two_runs_never_wait_for_each_other(farm: Farm) -> None:
    program = (
        "import sys; from rtgauge_ext.labgrid.places import hold_places; hold_places(sys.argv[1:], 600); "
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
    ("name", "status", "expected_text"),
    [("nowhere", 3, "nowhere"), ("a b", 2, "not a place of labgrid"), ("-x", 2, "not a place of labgrid")],
)
def test_wrong_names_are_refused(farm: Farm, name: str, status: int, expected_text: str) -> None:
    refused = farm.rtgauge("audit", "--facts", "--target", f"labgrid:{name}")
    assert expected_text in error_line(refused, status)


def test_a_coordinator_that_is_away_is_named(farm: Farm, tmp_path: Path) -> None:
    changed = {"LG_COORDINATOR": f"127.0.0.1:{free_port()}", "XDG_STATE_HOME": str(tmp_path)}
    refused = rtgauge("audit", "--facts", "--target", "labgrid:bench", env=farm.environment | changed)
    assert "LG_COORDINATOR" in error_line(refused, 3)


def test_a_reservation_survives_a_restart_of_the_coordinator(farm: Farm, tmp_path: Path) -> None:
    """It waits in the queue behind another holder; the coordinator forgets that, and that the place was held."""
    farm.labgrid.client("-p", "bench", "acquire")
    words = ("run", *QUICK, "--target", "labgrid:soc=x86", "--out", str(tmp_path), "--wait", "10min")
    waiting = subprocess.Popen(
        [*COMMAND, *words],
        env=environment(**farm.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(
            lambda: waiting.poll() is not None or "waiting" in farm.labgrid.client("reservations"),
            "the reservation",
        )
        assert waiting.poll() is None
        farm.labgrid.stop()
        farm.labgrid.start()
        output = waiting.communicate(timeout=PATIENCE_S)
        assert waiting.returncode == 0, output
    finally:
        end(waiting)
    if "somebody" in farm.labgrid.holders():
        farm.labgrid.client("-p", "bench", "release")


def test_a_board_behind_its_exporter_is_reached_through_it(tmp_path: Path) -> None:
    """The exporter is isolated: what it exports has its host as a proxy."""
    with Machine(tmp_path) as board, Machine(tmp_path, "gate", busybox=False) as gate:
        alias = f"Host {socket.getfqdn()}\nHostName 127.0.0.1\nPort {gate.port}\nUser root\nHost *\n"
        known = client(tmp_path, [board, gate], alias)
        with Labgrid(tmp_path, {"bench": board.port}, free_port(), isolated=True) as labgrid:
            env = {
                "LG_COORDINATOR": labgrid.address,
                "XDG_STATE_HOME": str(tmp_path / "state"),
                "PATH": f"{known}:{BIN}:{os.environ['PATH']}",
            }
            completed = good(rtgauge("audit", "--facts", "--target", "labgrid:bench", env=env))
            wait_until(lambda: labgrid.holders() == [], "the place to be free")
        assert "board" in completed.stdout
        assert "Accepted publickey" in (tmp_path / "gate" / "sshd.log").read_text()
