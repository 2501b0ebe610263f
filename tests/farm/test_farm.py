# SPDX-License-Identifier: MIT
"""A farm: three guests of the lab are labgrid's boards, and a fleet writes to a PostgreSQL server with a password.

The tests follow one another: a night that is killed in the middle, nights with another kernel command line on
one board, and gates. Each guest's clock counts its instructions and it never halts, so that the host does not
show in its latencies.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ext.lab.tests.fake_lab import stock_kernel
from ext.labgrid.tests.labgrid import BIN, Labgrid
from tests.e2e.processes import alive, family
from tests.support.cli import COMMAND, CommandResult, environment, good, rtgauge, wait_until
from tests.support.machine import free_port
from tests.support.postgresql import PostgreSQL

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.timeout(3600)]
CALM = "idle=poll"
TRACED = (
    f"{CALM} ftrace=function ftrace_filter=hrtimer_wakeup,try_to_wake_up,hrtimer_interrupt "
    "trace_options=func_stack_trace"
)
"""What a kernel's builder may leave behind: a stack trace at each wake-up by a timer."""
BOARDS = ("farm1", "farm2", "farm3")
PASSWORD = "-".join(("staple", "battery", "40d1"))
RIGHTS = Path(__file__).parents[2] / "packaging" / "postgresql" / "rights.sql"
SHORT = ("--load", "idle", "--duration", "200ms", "--set", "warm-up=50ms")
PAIRS = (
    *SHORT,
    "--set",
    "interval=1ms",
    "--quantile",
    "p50",
    "--larger-than",
    "10%",
    "--seed",
    "1",
    "--max-pairs",
    "6",
)
NIGHTS = 2
GATE_S, FLEET_S = 1500, 1500


class Farm:
    """Guests that the power switch boots with the words in `append`; their store is `store`."""

    def __init__(self, folder: Path, server: PostgreSQL) -> None:
        self.folder = folder
        self.server = server
        self.lab: dict[str, str | None] = {"XDG_DATA_HOME": str(folder / "lab")}
        self.ports = {name: free_port() for name in BOARDS}
        self.append = dict.fromkeys(BOARDS, CALM)
        self.labgrid: Labgrid
        self.store = server.database()

    def add_guests(self) -> None:
        good(rtgauge("lab", "build", "debian", env=self.lab, timeout=900))
        kept = stock_kernel()
        kernel = next(kept.glob("vmlinuz-*"))
        for name in BOARDS:
            good(rtgauge("lab", "add", name, "--kernel", kernel, "--modules", kept, env=self.lab))
            good(rtgauge("lab", "build", name, env=self.lab, timeout=900))
        client = self.folder / "client"
        client.mkdir()
        (client / "config").write_text(
            f"IdentityFile {self.folder}/lab/rtgauge/lab/key\nStrictHostKeyChecking no\n"
            "UserKnownHostsFile /dev/null\nLogLevel ERROR\nIdentityAgent none\n"
        )
        (client / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {client}/config "$@"\n')
        (client / "ssh").chmod(0o755)

    @property
    def environment(self) -> dict[str, str | None]:
        return {
            "LG_COORDINATOR": self.labgrid.address,
            "XDG_STATE_HOME": str(self.folder / "state"),
            "PATH": f"{self.folder}/client:{BIN}:{os.environ['PATH']}",
            "PGPASSWORD": PASSWORD,
        }

    def switch(self, name: str, *, on: bool) -> None:
        """What the power switch does; a board that boots answers when it is up."""
        words = ["lab", "boot", name, "--accel", "tcg", "--icount", "--append", self.append[name]]
        words += ["--port", str(self.ports[name])]
        command = [*COMMAND, *(words if on else ["lab", "stop", name])]
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(command, env=environment(**self.lab), stdout=log, stderr=log)
        if not on:
            process.wait()

    def rtgauge(self, *words: object, timeout: float = 300) -> CommandResult:
        return rtgauge(*words, env=self.environment, timeout=timeout)

    def store_json(self, *words: object) -> dict[str, Any]:
        return json.loads(good(self.rtgauge(*words, "--store", self.store, "--json")).stdout)

    def plan(self, name: str, boards: tuple[str, ...], image: str, jobs: int) -> Path:
        path = self.folder / f"{name}.toml"
        parts = [f'store = "{self.store}"', "at-once = 3", f'site = "{self.folder}/site"']
        parts += [f'[[images]]\nname = "{image}"\nkernel = "6.*-amd64"']
        parts += [f'[[boards]]\nname = "{b}"\ntarget = "labgrid:{b}"\nimage = "{image}"' for b in boards]
        parts += [f'[[jobs]]\nname = "job{n}"\nload = "idle"\nduration = "2s"' for n in range(jobs)]
        path.write_text("\n".join(parts) + "\n")
        return path

    def nothing_is_held(self) -> bool:
        journals = list((self.folder / "state").glob("rtgauge/labgrid/*"))
        return self.labgrid.holders() == [] and journals == []


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    server = PostgreSQL(PASSWORD)
    made = Farm(tmp_path_factory.mktemp("farm"), server)
    made.add_guests()

    class Power(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, name, value = self.path.split("/")
            made.switch(name, on=value == "1")
            self.send_response(200)
            self.end_headers()

        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Stay silent."""

    power = ThreadingHTTPServer(("127.0.0.1", 0), Power)
    threading.Thread(target=power.serve_forever, daemon=True).start()
    try:
        with Labgrid(made.folder, made.ports, power.server_port) as made.labgrid:
            yield made
    finally:
        for name in BOARDS:
            made.switch(name, on=False)
        power.shutdown()
        server.stop()


def test_a_fleet_that_is_killed_loses_nothing_and_holds_nothing(farm: Farm) -> None:
    plan = farm.plan("first", BOARDS, "plain", 2)
    killed = subprocess.Popen(
        [*COMMAND, "fleet", str(plan)],
        env=environment(**farm.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert killed.stdout is not None
        first = killed.stdout.readline()
        assert "measured; nothing was required" in first, first
        wait_until(lambda: len(farm.labgrid.holders()) > 0, "another job")
        below = family(killed.pid)
    finally:
        killed.kill()
        killed.wait()
    completed = good(farm.rtgauge("fleet", plan, timeout=FLEET_S))
    assert "6 of 6 jobs done on 3 boards" in completed.stdout
    assert alive(below) == []
    wait_until(farm.nothing_is_held, "every place to be free")
    records = farm.store_json("store", "list", "--last", "0")["records"]
    assert sorted(row["machines"][0] for row in records) == sorted(2 * [f"name:{name}" for name in BOARDS])
    assert len({row["record"] for row in records}) == 6
    assert PASSWORD not in completed.stdout + "".join(
        path.read_text(errors="replace") for path in (farm.folder / "first").rglob("*") if path.is_file()
    )


def test_each_role_does_what_it_is_for(farm: Farm) -> None:
    farm.server.execute(RIGHTS.read_text(), farm.store)
    name = farm.store.split("/")[3].split("?", maxsplit=1)[0]
    for role in ("writer", "reader"):
        farm.server.execute(
            f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}' IN ROLE rtgauge_{role}", farm.store
        )
    assert farm.rtgauge("store", "list", "--store", farm.server.url(name, "reader")).returncode == 0
    record = next((farm.folder / "first" / "farm1" / "job0").glob("*/run.json")).parent
    refused = farm.rtgauge("store", "rm", record, "--store", farm.server.url(name, "reader"))
    assert (refused.returncode, "rights.sql" in refused.stderr) == (2, True)
    farm.store = farm.server.url(name, "writer")


def test_history_shows_a_change_made_on_purpose(farm: Farm) -> None:
    for image, words in (("plain", CALM), ("traced", TRACED)):
        farm.append["farm1"] = words
        for night in range(NIGHTS):
            farm.switch("farm1", on=False)
            plan = farm.plan(f"{image}{night}", ("farm1",), image, 1)
            good(farm.rtgauge("fleet", plan, timeout=FLEET_S))
    words = ("wakeup/latency/idle/as-is", "--machine", "farm1", "--by", "label:image", "--quantile", "p50")
    (history,) = farm.store_json("store", "history", *words)["histories"]
    before, after = history["groups"]
    assert (before["group"], after["group"]) == ("plain", "traced")
    assert after["runs"] == NIGHTS
    assert after["quantiles_ns"]["p50"] > 1.1 * before["quantiles_ns"]["p50"]
    assert "wakeup/latency/idle" in (farm.folder / "site" / "index.html").read_text()


@pytest.mark.parametrize(("other", "outcome", "status"), [("farm3", "not worse", 0), ("farm1", "worse", 1)])
def test_the_gate_catches_it_and_is_silent_without_it(
    farm: Farm, tmp_path: Path, other: str, outcome: str, status: int
) -> None:
    """farm1 still has the change; farm2 and farm3 are as they were."""
    sides = ("--baseline", "labgrid:farm2", "--candidate", f"labgrid:{other}")
    completed = farm.rtgauge("gate", *sides, *PAIRS, "--out", tmp_path, "--json", timeout=GATE_S)
    assert json.loads(good(completed, status).stdout)["outcome"] == outcome
    wait_until(farm.nothing_is_held, "both places to be free")
