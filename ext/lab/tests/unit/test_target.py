# SPDX-License-Identifier: MIT
"""What the lab says and does for its guests as targets, and that nobody else can change its files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from rtgauge.errors import InputError, MeasureError
from rtgauge.record.facts import Facts
from rtgauge.runner.step_loop import machine_marks
from rtgauge.system.loadable_modules import NoModules
from rtgauge.target.address import parse_address, target_name
from rtgauge.target.ssh_address import SshAddress
from rtgauge.target.ssh_errors import explain_ssh
from rtgauge.user_cache import cache_folder, private_folder
from rtgauge_ext.lab import headers, paths
from rtgauge_ext.lab.guest import SUITE, BootedGuest
from rtgauge_ext.lab.headers import headers_tree
from rtgauge_ext.lab.lab_target import LAB
from rtgauge_ext.lab.running_guests import keep

CHANGED = """@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
Host key verification failed.
"""
RUNNING = BootedGuest(
    name="g", pid=1, port=1, accelerator="tcg", append="", smp="1", release="6", boot_s=1.0, memory_mib=64
)


def test_a_guest_of_the_lab_has_a_name_and_no_host_yet() -> None:
    address = parse_address("lab:debian-rt")
    assert address is not None
    assert (address.own_name, address.host, address.name) == ("debian-rt", "", "lab:debian-rt")
    assert target_name("lab:debian-rt") == "lab:debian-rt"


@pytest.mark.parametrize(
    "text",
    ["lab:", "lab:-x", "lab:A", "lab:a/b", "lab:a b", "lab:../x", "lab:" + "a" * 33, "lab:a\n", "lab:ä"],
)
def test_what_names_no_guest_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a guest of the lab"):
        parse_address(text)


@pytest.mark.parametrize(
    ("reported", "words"),
    [
        (CHANGED, ["host key", "boot it again: rtgauge lab stop debian"]),
        (
            "ssh: connect to host 127.0.0.1 port 2222: Connection refused\n",
            ["Connection refused", "rtgauge lab stop debian"],
        ),
        (
            "kex_exchange_identification: Connection closed by remote host\n",
            ["cannot be reached: Connection closed; ", "rtgauge lab stop debian"],
        ),
        (
            "kex_exchange_identification: read: Connection reset by peer\n",
            ["cannot be reached: Connection reset; ", "rtgauge lab stop debian"],
        ),
        ("something new\n", ["something new", "rtgauge lab shell debian"]),
    ],
)
def test_of_a_guest_the_labs_commands_are_named(reported: str, words: list[str]) -> None:
    message = str(
        explain_ssh(reported, SshAddress("127.0.0.1", "root", 2222, scheme="lab", own_name="debian"))
    )
    assert all(word in message for word in words), message
    assert message.startswith("lab:debian")
    assert "ssh-keygen" not in message


def test_a_step_on_this_machine_with_guests_is_doubtful(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert machine_marks("local", Facts()) == []
    monkeypatch.setattr(
        "rtgauge_ext.lab.running_guests.all_running", lambda: [SimpleNamespace(name="debian")]
    )
    (mark,) = machine_marks("local", Facts())
    assert (mark.name, mark.severity) == ("guests-running", "doubtful")
    assert "debian" in mark.detail
    assert machine_marks("ssh://board", Facts()) == []


def test_a_guest_with_its_own_kernel_is_refused_without_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian has none for it, and to fetch its others takes minutes."""
    monkeypatch.setattr(headers, "find_guest", lambda _: SimpleNamespace(architecture="x86_64"))
    monkeypatch.setattr(headers, "headers_tree", lambda *_, **__: pytest.fail("it fetches headers"))
    with pytest.raises(NoModules, match=r"headers for the kernel 6.12.1-own.*RTGAUGE_KMOD=DIR"):
        LAB.build_modules("own", "6.12.1-own", tmp_path, tmp_path, lambda _: None)


def test_the_lab_writes_through_no_link(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = private_folder(paths.folder_of("g"))
    for link in ("running.json", "running.new", "lock"):
        (folder / link).symlink_to(victim)
    keep(RUNNING)
    with pytest.raises(OSError, match="symbolic links"):
        paths.open_lock(folder / "lock")
    assert victim.read_text() == "precious"
    assert not (folder / "running.json").is_symlink()


def test_headers_that_others_could_have_changed_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    headers = private_folder(cache_folder("lab") / "headers" / f"{SUITE}-x86_64")
    assert headers_tree("x86_64", print).folder == headers
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(MeasureError, match="others can write"):
        headers_tree("x86_64", print)
