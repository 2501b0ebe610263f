# SPDX-License-Identifier: MIT
"""A guest of the lab that does not come up, or does not answer, as a run begins: its console is kept with the
run, which can be gone on with.

QEMU is a script here, and what answers for the guest is an sshd of our own.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.test_ssh import left_on, over_ssh
from tests.support.cli import CommandResult, error_line, good, invoke, wait_until
from tests.support.machine import Machine, free_port
from tests.support.real_record import document

from ext.lab.tests.fake_lab import fake_lab
from rtgauge.record.reader import Record
from rtgauge.record.writer import RecordWriter
from rtgauge_ext.lab import paths
from rtgauge_ext.lab.running_guests import process_of

pytestmark = [pytest.mark.engine, pytest.mark.root]
FAILS, CANNOT_TELL = 1, 4
QUICK = ("--load", "idle", "--duration", "300ms", "--set", "warm-up=0s", "--set", "interval=10ms")
PANIC = "Linux version 6.12\nKernel panic - not syncing: no init"
# Guests are switched off by this word; here it would reach this machine's first process.
NO_POWER = 'rm "$1/root/bin/poweroff" "$1/root/bin/halt" "$1/root/bin/reboot"'


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with Machine(tmp_path_factory.mktemp("board"), script=NO_POWER) as item:
        yield item
        assert left_on(item) == ""


class Lab:
    """The guest `debian`, which says on its console what it is told to; where it comes up, `machine` answers
    for it.
    """

    def __init__(self, env: dict[str, str | None], machine: Machine, folder: Path) -> None:
        self.env, self.machine, self.out = env, machine, folder / "out"
        self.ready = "rtgauge-lab: ready " + " ".join(
            machine.host_key.with_suffix(".pub").read_text().split()[:2]
        )

    def rtgauge(self, reported: str, *words: object, port: int | None = None) -> CommandResult:
        """A command; `said` is what the guest says where it is booted."""
        return invoke(
            *words,
            env={
                **self.env,
                "FAKE_SAYS": reported,
                "FAKE_PORT": str(self.machine.port if port is None else port),
            },
        )

    def run(self, reported: str, *words: object, port: int | None = None) -> CommandResult:
        """A short run on the guest."""
        return self.rtgauge(
            reported, "run", "--target", "lab:debian", "--out", self.out, *QUICK, *words, port=port
        )

    @property
    def record(self) -> Path:
        """The one record."""
        (record,) = self.out.iterdir()
        return record

    def console(self) -> str:
        """What the record has of it."""
        return (self.record / "targets/lab-debian/console.log").read_text()

    def switch_off(self) -> None:
        pid = process_of("debian")
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: process_of("debian") is None, "the guest to be off")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine) -> Iterator[Lab]:
    item = Lab(fake_lab(tmp_path, monkeypatch, machine.key), machine, tmp_path)
    yield item
    item.switch_off()


@pytest.mark.slow
def test_the_console_is_kept_with_the_run_which_is_gone_on_with(lab: Lab) -> None:
    line = error_line(lab.run(PANIC, "--repeats", 2, "--seed", 5, "--require", "latency<=1s"), 3)
    assert "panicked" in line
    assert (
        f"its console output is in {lab.record}/targets/lab-debian/console.log and ends with: Linux version 6.12"
        in line
    )
    assert line.endswith(f"continue with: rtgauge resume {lab.record}")
    assert lab.console() == f"{PANIC}\n"
    begun = Record.open(lab.record).run
    assert (begun.state, len(begun.planned), begun.steps, [mark.name for mark in begun.marks]) == (
        "interrupted",
        2,
        [],
        ["guest-not-up"],
    )
    assert "targets/lab-debian/console.log" in good(invoke("show", lab.record)).stdout
    assert "0 of 2 planned steps" in good(invoke("show", lab.record)).stdout
    assert "interrupted" in good(invoke("list", lab.out)).stdout
    assert "a finished step" in error_line(invoke("compare", lab.record), 2)

    again = error_line(lab.rtgauge("Kernel panic - not syncing: again", "resume", "--out", lab.out), 3)
    assert f"rtgauge resume {lab.record}" in again
    assert lab.console().split("\n--- in a later session\n") == [
        f"{PANIC}\n",
        "Kernel panic - not syncing: again\n",
    ]

    # too short for a verdict, unless this machine stood still and missed activations
    completed = lab.rtgauge(lab.ready, "resume", "--out", lab.out, "--json")
    content = document(good(completed, FAILS if completed.returncode == FAILS else CANNOT_TELL).stdout)
    assert (content["run"]["state"], content["run"]["id"], content["run"]["seed"]) == (
        "complete",
        begun.id,
        5,
    )
    assert [step["key"] for step in content["steps"]] == [
        key.model_dump(mode="json") for key in begun.planned
    ]
    assert {verdict["word"] for verdict in content["run"]["verdicts"]} <= {"cannot tell", "fails"}
    assert "guest-not-up" not in [mark["name"] for mark in content["run"]["marks"]]
    assert lab.record.name == begun.id
    assert lab.ready in lab.console()


def test_one_that_came_up_and_does_not_answer(lab: Lab) -> None:
    line = error_line(lab.run(lab.ready, port=free_port()), 3)
    assert "rtgauge lab stop debian" in line
    assert (
        f"its console output is in {lab.record}/targets/lab-debian/console.log; continue with: "
        f"rtgauge resume {lab.record}" in line
    )
    assert lab.console() == f"{lab.ready}\n"


@pytest.mark.slow
def test_one_that_does_not_come_up_as_its_run_is_resumed(lab: Lab) -> None:
    good(lab.run(lab.ready, "--repeats", 2))
    lab.switch_off()
    run = Record.open(lab.record).run
    writer = RecordWriter(lab.record, run.id)
    writer.write_run(run.model_copy(update={"state": "interrupted", "steps": run.steps[:1]}))
    shutil.rmtree(lab.record / "steps" / run.steps[1])
    line = error_line(lab.rtgauge(PANIC, "resume", lab.record), 3)
    assert f"{lab.record}/targets/lab-debian/console.log" in line
    assert f"rtgauge resume {lab.record}" in line
    assert lab.console() == f"{lab.ready}\n\n--- in a later session\n{PANIC}\n"
    assert len(document(good(lab.rtgauge(lab.ready, "resume", lab.record, "--json")).stdout)["steps"]) == 2


def test_of_a_probe_nothing_is_kept(lab: Lab) -> None:
    line = error_line(
        lab.rtgauge(PANIC, "probe", "wakeup", "--target", "lab:debian", "--duration", "300ms"), 3
    )
    assert str(paths.home() / "machines/debian/console.log") in line
    assert "rtgauge resume" not in line


def test_the_folder_of_records_is_checked_before_a_boot(lab: Lab) -> None:
    lab.out.write_text("no folder")
    assert "--out" in error_line(lab.run(PANIC), 2)
    assert not (paths.home() / "machines/debian/console.log").exists()


@pytest.mark.parametrize("last", ["lab:debian", "ssh://root@127.0.0.1:{port}"])
def test_the_machines_that_were_held_by_then_are_free_at_once(lab: Lab, tmp_path: Path, last: str) -> None:
    words = ("run", "--out", tmp_path / "other", *QUICK, "--target", lab.machine.target)
    completed = over_ssh(
        lab.machine,
        *words,
        "--target",
        last.format(port=free_port()),
        env={"PATH": f"{lab.machine.client()}:{lab.env['PATH']}", "FAKE_SAYS": PANIC},
    )
    error_line(completed, 3)
    assert left_on(lab.machine) == ""
    good(over_ssh(lab.machine, *words, wait_for_lock=False))
