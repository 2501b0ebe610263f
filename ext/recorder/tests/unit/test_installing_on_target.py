# SPDX-License-Identifier: MIT
"""What the service of a target runs, and what is refused before the target is asked."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from rtgauge.errors import InputError, MeasureError
from rtgauge.target.ssh_connection import CommandOutput
from rtgauge_ext.recorder import recorder_command, service_installation
from rtgauge_ext.recorder.folder import Settings
from rtgauge_ext.recorder.program import ProgramChoice
from rtgauge_ext.recorder.recorder import Options

if TYPE_CHECKING:
    from pathlib import Path

BOARD = "ssh://board"
SETTINGS = Settings(program="--unit control", keep_bytes=8 << 20, command=["rtgauge"], parameters={})


def test_the_engine_gets_what_it_does_not_choose_itself() -> None:
    options = Options(wanted=ProgramChoice(unit="control"), watch={"period": "1ms"}, for_ns=7)
    words = service_installation.service_command("flight", options, SETTINGS)
    assert words[0] == "/usr/local/lib/rtgauge/recorder-flight"
    assert {"--unit=control.service", "--for-ns=7", f"--keep-bytes={8 << 20}"} < set(words)
    after = words[words.index("--") + 1 :]
    assert "--period-ns=1000000" in after and "--keep-end" in after
    assert not [word for word in after if word.startswith(("--pid", "--trace-inst", "--drain"))]
    (settings,) = (word for word in words if word.startswith("--settings="))
    assert Settings.model_validate_json(settings.partition("=")[2]) == SETTINGS


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--program", "a", "--silent", "3", "--require", "period=1ms"], "no triggers"),
        (["--program", "a", "--on-trigger", "freeze"], "no triggers"),
        (["--program", "a", "--folder", "/tmp/x"], "--folder"),
        (["--program", "a", "--budget-cpu", "1%"], "--budget-cpu"),
        (["--pid", "1"], "--program or --unit"),
        (["--program", "a", "--keep", "2GiB"], "1024MiB or less"),
    ],
)
def test_what_an_engine_alone_cannot_do_is_refused(words: list[str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        recorder_command.install("flight", words, BOARD)


@pytest.mark.parametrize(
    ("status", "way_out"),
    [
        (service_installation.NOT_ROOT, "ssh://root@board"),
        (service_installation.NO_SYSTEMD, "rtgauge-engine record"),
        (service_installation.THERE, "recorder uninstall flight --target ssh://board"),
        (service_installation.NOT_ROOTS, "chmod go-w /etc/x"),
        (service_installation.CHANGED, "somebody has changed it"),
        (service_installation.NOTHING, "is not installed"),
        (service_installation.NOT_STARTED, "systemctl status"),
        (service_installation.NOT_WRITTEN, "disk full"),
        (127, "disk full"),
    ],
)
def test_every_refusal_of_the_target_names_its_way_out(status: int, way_out: str) -> None:
    with pytest.raises((InputError, MeasureError)) as refused:
        service_installation.check(CommandOutput(status, b"/etc/x", "disk full\n"), BOARD, "flight")
    assert way_out in str(refused.value)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The folders of a target on which systemd does not run."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "engine").write_text("engine")
    return tmp_path


def install_on(target: Path) -> tuple[int, str]:
    """Run the script that installs; return its status and what it says."""
    places = [str(target / name) for name in ("etc", "none", "usr/local/lib/rtgauge", "var/lib/rtgauge")]
    completed = subprocess.run(
        ["sh", "-c", service_installation.INSTALL, "sh", "x", *places, str(target / "engine")],
        input=b"unit",
        stdout=subprocess.PIPE,
        check=False,
    )
    return completed.returncode, completed.stdout.decode().strip()


@pytest.mark.root
def test_the_engine_is_copied_into_a_folder_of_root(target: Path) -> None:
    assert install_on(target) == (service_installation.NOT_BOOTED, "")
    engine = target / "usr/local/lib/rtgauge/recorder-x"
    assert engine.read_text() == "engine" and engine.stat().st_mode & 0o777 == 0o755
    assert (target / "etc/multi-user.target.wants/rtgauge-recorder-x.service").read_text() == "unit"
    status, place = install_on(target)
    assert (status, place) == (service_installation.THERE, f"{target}/etc/rtgauge-recorder-x.service")


@pytest.mark.root
@pytest.mark.parametrize(
    ("folder", "mode", "owner"),
    [
        ("usr/local/lib", 0o2775, 0),
        ("usr/local/lib", 0o757, 0),
        ("usr/local/lib", 0o755, 1000),
        ("usr/local/lib/rtgauge", 0o775, 0),
        ("usr/local/lib/rtgauge", 0o1777, 0),
        ("usr/local/lib/rtgauge", 0o700, 1000),
        ("usr", 0o777, 0),
    ],
)
def test_root_runs_no_engine_that_others_can_change(target: Path, folder: str, mode: int, owner: int) -> None:
    (target / folder).mkdir(parents=True)
    os.chown(target / folder, owner, 0)
    (target / folder).chmod(mode)
    assert install_on(target) == (service_installation.NOT_ROOTS, str(target / folder))
    assert not list((target / "etc").iterdir())
    assert not (target / "usr/local/lib/rtgauge/recorder-x").exists()


@pytest.mark.root
def test_a_link_to_a_folder_of_others_is_not_used(target: Path) -> None:
    (target / "home/lib").mkdir(parents=True)
    os.chown(target / "home", 1000, 0)
    (target / "usr/local").mkdir(parents=True)
    (target / "usr/local/lib").symlink_to(target / "home/lib")
    assert install_on(target) == (service_installation.NOT_ROOTS, f"{target}/home")
