# SPDX-License-Identifier: MIT
"""The service: what its unit says, and that nothing stays of it. systemd is never started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from configparser import RawConfigParser
from typing import TYPE_CHECKING

import pytest
from tests.support.cli import invoke

from rtgauge.errors import InputError, MeasureError
from rtgauge_ext.last_boot import ring
from rtgauge_ext.recorder import actions, recorder_command, service_installation
from rtgauge_ext.recorder.service_installation import KEPT, install, uninstall
from rtgauge_ext.recorder.unit import unit_text

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = ["--program", "control", "--require", "period=1ms latency<=200us", "--on-trigger", '/bin/a%b$c"d']


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine's folders, without a running systemd."""
    monkeypatch.setattr(service_installation, "UNITS", tmp_path / "etc/systemd/system")
    monkeypatch.setattr(service_installation, "FOLDERS", tmp_path / "var/lib/rtgauge/recorder")
    monkeypatch.setattr(service_installation, "SYSTEMD", tmp_path / "no systemd")
    monkeypatch.setattr(service_installation, "_own_program", lambda: tmp_path / "usr/bin/rtgauge")
    monkeypatch.setattr(ring, "INFO", (str(tmp_path / "instances/boot_map/last_boot_info"),))
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    return tmp_path


def files(machine: Path) -> set[str]:
    return {
        str(path.relative_to(machine))
        for path in machine.rglob("*")
        if not path.is_dir() or path.is_symlink()
    }


def test_the_command_loads_no_probes() -> None:
    code = "import sys, rtgauge_ext.recorder.recorder_command; print('rtgauge.probe.watch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_installing_and_uninstalling_write_and_remove_the_unit(machine: Path) -> None:
    assert "starts at the next boot" in install("control", OPTIONS)[0]
    unit = "etc/systemd/system/rtgauge-recorder-control.service"
    link = "etc/systemd/system/multi-user.target.wants/rtgauge-recorder-control.service"
    assert files(machine) == {unit, link}
    assert (machine / link).read_text() == (machine / unit).read_text()
    assert (machine / unit).stat().st_mode & 0o777 == 0o644
    folder = machine / "var/lib/rtgauge/recorder/control"
    (folder / "moments").mkdir(parents=True)
    assert [line.split()[0] for line in uninstall("control")] == ["removed", "removed", str(folder)]
    assert folder.is_dir(), "what was recorded stays"
    uninstall("control", with_folder=True)
    assert files(machine) == set()
    assert not (machine / "var/lib/rtgauge").exists()


def test_the_unit_runs_the_recorder_with_every_word_as_given(machine: Path) -> None:
    install("control", OPTIONS)
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(machine / "etc/systemd/system/rtgauge-recorder-control.service")
    service = parser["Service"]
    assert service["ExecStart"] == (
        f'"{machine}/usr/bin/rtgauge" "recorder" "run" "--program" "control" "--require" '
        '"period=1ms latency<=200us" "--on-trigger" "/bin/a%%b$$c\\"d" "--folder" '
        f'"{machine}/var/lib/rtgauge/recorder/control"'
    )
    for name, value in {
        "NoNewPrivileges": "yes",
        "ProtectSystem": "strict",
        "PrivateNetwork": "yes",
        "StateDirectoryMode": "0700",
        "Restart": "on-failure",
        "RestartPreventExitStatus": "2",
    }.items():
        assert service[name] == value
    assert parser["Install"]["WantedBy"] == "multi-user.target"


def test_a_changed_unit_stays(machine: Path) -> None:
    install("control", OPTIONS)
    unit = machine / "etc/systemd/system/rtgauge-recorder-control.service"
    unit.write_text(unit.read_text().replace("Restart=on-failure", "Restart=no"))
    before = files(machine)
    with pytest.raises(InputError, match="stays"):
        uninstall("control")
    assert files(machine) == before


def test_a_kill_while_the_unit_is_written_leaves_nothing_that_stays(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = machine / "bin/sync"
    sync.parent.mkdir()
    sync.write_text("#!/bin/sh\nkill -9 $PPID\n")
    sync.chmod(0o755)
    with monkeypatch.context() as killing:
        killing.setenv("PATH", f"{sync.parent}:{os.environ['PATH']}")
        with pytest.raises(MeasureError, match="not changed"):
            install("control", OPTIONS)
    left = files(machine) - {"bin/sync"}
    assert left == {"etc/systemd/system/rtgauge-recorder-control.service.new"}, "systemd reads no such file"
    assert len(uninstall("control")) == 1
    assert files(machine) == {"bin/sync"}
    install("control", OPTIONS)
    assert len(files(machine)) == 3


def test_files_that_cannot_be_written_are_an_error_with_its_cause(machine: Path) -> None:
    (machine / "etc/systemd/system/multi-user.target.wants").write_text("no folder")
    with pytest.raises(MeasureError, match=r"cannot be written \(mkdir: .*multi-user.target.wants"):
        install("control", OPTIONS)
    assert files(machine) == {"etc/systemd/system/multi-user.target.wants"}


def test_a_file_that_is_there_already_stays(machine: Path) -> None:
    unit = machine / "etc/systemd/system/rtgauge-recorder-control.service"
    unit.write_text("mine")
    with pytest.raises(InputError, match="already exists"):
        install("control", OPTIONS)
    assert unit.read_text() == "mine" and len(files(machine)) == 1


@pytest.mark.parametrize("name", ["", "../x", "a b", "-x", "a/b", "x\n"])
def test_a_name_that_is_none_is_refused(machine: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name of a service"):
        install(name, OPTIONS)
    with pytest.raises(InputError, match="cannot be the name of a service"):
        uninstall(name)
    assert files(machine) == set()


def test_options_that_break_the_unit_are_refused(machine: Path) -> None:
    with pytest.raises(InputError, match="a unit cannot have"):
        install("control", ["--program", "x\nExecStart=/bin/evil"])
    with pytest.raises(InputError, match="leave out --folder"):
        install("control", ["--folder=/tmp/x"])
    assert files(machine) == set()


def test_restore_names_the_services_and_removes_them(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install("control", OPTIONS)
    install("x", OPTIONS)
    (machine / "etc/systemd/system/other.service").write_text("mine")
    assert [line.rpartition(": ")[2] for line in KEPT.kept()] == [
        "rtgauge recorder uninstall control",
        "rtgauge recorder uninstall x",
    ]
    assert not KEPT.undo(), "the journal is still to be restored"
    assert capsys.readouterr().out.count("removed") == 4
    assert KEPT.kept() == [] and files(machine) == {"etc/systemd/system/other.service"}


def test_what_is_not_installed_cannot_be_removed(machine: Path) -> None:
    with pytest.raises(InputError, match="installed recorders: none"):
        uninstall("control")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "rtgauge-recorder-control.service"
    unit.write_text(unit_text("control", ["/bin/true", *OPTIONS]))
    completed = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert unit.name not in completed.stderr and completed.returncode == 0, completed.stderr


def test_the_service_arms_the_ring_of_a_kernel_that_has_one(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "reserve_mem=20M:32M:trace trace_instance=boot_map@trace" in install("without", OPTIONS)[1]
    unit = machine / "etc/systemd/system/rtgauge-recorder-without.service"
    assert "ExecStartPre" not in unit.read_text()
    (machine / "instances/boot_map").mkdir(parents=True)
    (machine / "instances/boot_map/last_boot_info").touch()
    monkeypatch.setenv("RTGAUGE_ENGINE", "/bin/true")

    def engine(_path: Path) -> Path:
        return machine / "engine"

    monkeypatch.setattr(actions, "check_roots_file", engine)
    assert "rtgauge last-boot" in install("control", OPTIONS)[1]
    text = (machine / "etc/systemd/system/rtgauge-recorder-control.service").read_text().splitlines()
    assert f'ExecStartPre=-"{machine}/engine" "last-boot" "--arm"' in text
    assert "StateDirectory=rtgauge/recorder/control rtgauge/last-boot" in text


@pytest.mark.parametrize("words", [["--socket", "/run/control.trigger"], ["--socket=/tmp/trigger"]])
def test_a_socket_that_the_service_cannot_make_is_refused(machine: Path, words: list[str]) -> None:
    with pytest.raises(InputError, match="/run/rtgauge-recorder-control/trigger"):
        install("control", [*OPTIONS, *words])
    assert files(machine) == set()
    install("control", [*OPTIONS, "--socket", "/run/rtgauge-recorder-control/trigger"])
    unit = machine / "etc/systemd/system/rtgauge-recorder-control.service"
    assert "CAP_CHOWN" in unit.read_text(), "the socket belongs to the program's user"
    install("other", OPTIONS)
    assert "CAP_CHOWN" not in unit.with_name("rtgauge-recorder-other.service").read_text()


SYSTEMD_ANALYZE = shutil.which("systemd-analyze")


@pytest.mark.skipif(SYSTEMD_ANALYZE is None, reason="systemd-analyze is not installed")
def test_systemd_calls_the_service_no_worse_than_medium(machine: Path) -> None:
    install("control", ["--program", "control"])
    unit = machine / "etc/systemd/system/rtgauge-recorder-control.service"
    command = [str(SYSTEMD_ANALYZE), "security", "--offline=true", "--no-pager", str(unit)]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(completed.stdout.rsplit(": ", 1)[1].split()[0]) <= 5


def test_the_command_installs_and_refuses_what_run_would_refuse(machine: Path) -> None:
    completed = invoke("recorder", "install", "control", "--program", "control", "--keep", "50MiB")
    assert completed.returncode == 0, "with or without --"
    assert len(files(machine)) == 2
    for words, why in (
        (["--sneaky"], "No such option"),
        (["--program", "control", "--keep", "much"], "50MiB"),
        (["--keep", "50MiB"], "which program"),
    ):
        with pytest.raises(InputError, match=why):
            recorder_command.install("other", words)
    assert len(files(machine)) == 2
