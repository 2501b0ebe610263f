# SPDX-License-Identifier: MIT
"""What is said of a guest that does not come up, and what is kept of its console."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rtgauge.user_cache import private_folder
from rtgauge_ext.lab import boot_guest
from rtgauge_ext.lab.boot_guest import BootError, QemuEndedError
from rtgauge_ext.lab.running_guests import MOST_CONSOLE_BYTES, console_of, end_of_console


@pytest.fixture
def console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The console of the guest `own`, whose machine is this process."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(boot_guest, "process_of", lambda name: os.getpid())
    file = console_of("own")
    private_folder(file.parent)
    return file


def not_up() -> BootError:
    with pytest.raises(BootError) as caught:
        boot_guest._wait_until_ready("own", 0.2)
    return caught.value


def test_one_that_says_something_else_for_too_long(console: Path) -> None:
    console.write_bytes(b"Linux version 6.12\r\nwaiting for \x1b[31mthe disk\r\n")
    error = not_up()
    assert str(error).startswith("lab:own did not come up within 0.2 s; ")
    assert "boot the guest again" in str(error)
    assert (
        f"its console output is in {console} and ends with: Linux version 6.12 | waiting for the disk"
        in str(error)
    )
    assert error.with_console(Path("kept")) == str(error).replace(str(console), "kept")
    assert (error.target, error.console) == ("lab:own", console.read_bytes())
    assert str(error).isprintable()


def test_one_that_says_nothing(console: Path) -> None:
    error = not_up()
    assert str(error).endswith(f"its console output is in {console} and ends with: nothing")
    assert error.console is None


def test_the_console_text_survives_the_next_boot(console: Path) -> None:
    console.write_bytes(b"Kernel panic - not syncing: no init\n")
    error = not_up()
    console.write_bytes(b"another boot\n")
    assert "the kernel of lab:own panicked" in error.with_console(Path("kept"))
    assert "no init" in error.with_console(Path("kept"))
    assert error.console == b"Kernel panic - not syncing: no init\n"


def test_one_whose_qemu_ended(console: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot_guest, "process_of", lambda name: None)
    error = not_up()
    assert isinstance(error, QemuEndedError)
    assert "boot the guest again" in str(error)


def test_of_a_long_console_the_end_is_kept(console: Path) -> None:
    console.write_bytes(b"a" * MOST_CONSOLE_BYTES + b"the end")
    kept = end_of_console("own")
    assert kept is not None
    assert len(kept) == MOST_CONSOLE_BYTES
    assert kept.endswith(b"the end")
