# SPDX-License-Identifier: MIT
"""What the service of a target runs, and what is refused before the target is asked."""

from __future__ import annotations

import pytest

from rtgauge.errors import InputError, MeasureError
from rtgauge.target.ssh_connection import CommandOutput
from rtgauge_ext.recorder import command, remote
from rtgauge_ext.recorder.folder import Settings
from rtgauge_ext.recorder.program import WantedProgram
from rtgauge_ext.recorder.recorder import Options

BOARD = "ssh://board"
SETTINGS = Settings(program="--unit control", keep_bytes=8 << 20, command=["rtgauge"], parameters={})


def test_the_engine_gets_what_it_does_not_choose_itself() -> None:
    options = Options(wanted=WantedProgram(unit="control"), watch={"period": "1ms"}, for_ns=7)
    words = remote.service_command("flight", options, SETTINGS)
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
        command.install("flight", words, BOARD)


@pytest.mark.parametrize(
    ("status", "way_out"),
    [
        (remote.NOT_ROOT, "ssh://root@board"),
        (remote.NO_SYSTEMD, "rtgauge-engine record"),
        (remote.THERE, "recorder uninstall flight --target ssh://board"),
        (remote.CHANGED, "somebody has changed it"),
        (remote.NOTHING, "is not installed"),
        (remote.NOT_STARTED, "systemctl status"),
        (remote.NOT_WRITTEN, "disk full"),
        (127, "disk full"),
    ],
)
def test_every_refusal_of_the_target_names_its_way_out(status: int, way_out: str) -> None:
    with pytest.raises((InputError, MeasureError)) as refused:
        remote.check(CommandOutput(status, b"/etc/x", "disk full\n"), BOARD, "flight")
    assert way_out in str(refused.value)
