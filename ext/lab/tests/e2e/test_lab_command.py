# SPDX-License-Identifier: MIT
"""`rtgauge lab` where it cannot do what is asked; QEMU is a script here, real guests are in tests/lab."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.support.cli import COMMAND, PATIENCE_S, environment, error_line, good, invoke, wait_until

from ext.lab.tests.fake_lab import fake_lab
from rtgauge_ext.lab import paths

if TYPE_CHECKING:
    from pathlib import Path

KEY = "ssh-ed25519 " + "A" * 68


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str | None]:
    return fake_lab(tmp_path, monkeypatch)


def fake_kernel(folder: Path) -> Path:
    """What begins as a bzImage does."""
    kernel = folder / "bzImage"
    kernel.write_bytes(bytes(0x202) + b"HdrS" + bytes(1000))
    return kernel


def boot(lab: dict[str, str | None], reported: str, *words: object, status: int = 3) -> str:
    return error_line(
        invoke("lab", "boot", "debian", "--accel", "tcg", *words, env={**lab, "FAKE_SAYS": reported}), status
    )


def test_a_running_guest_is_listed_not_started_twice_and_stopped(
    lab: dict[str, str | None],
) -> None:
    env = {**lab, "FAKE_SAYS": f"rtgauge-lab: ready {KEY}"}
    good(invoke("lab", "boot", "debian", "--accel", "tcg", "--append", "isolcpus=1", env=env))
    (debian,) = [
        guest
        for guest in json.loads(good(invoke("lab", "list", "--json", env=env)).stdout)
        if guest["name"] == "debian"
    ]
    assert (debian["kernel"], debian["running"]["append"], debian["running"]["accelerator"]) == (
        "6.12-fake",
        "isolcpus=1",
        "tcg",
    )
    assert "already running" in error_line(invoke("lab", "boot", "debian", env=env), 2)
    assert "is running" in error_line(invoke("lab", "rm", "debian", env=env), 2)
    assert (paths.home() / "machines/debian/known_hosts").read_text() == f"rtgauge-lab-debian {KEY}\n"
    assert "is off" in good(invoke("lab", "stop", "debian", env=env)).stderr
    assert "was not running" in good(invoke("lab", "stop", "debian", env=env)).stderr
    assert "removed its image, its disk" in good(invoke("lab", "rm", "debian", env=env)).stderr


def test_a_kernel_panic_is_reported_with_the_consoles_end(lab: dict[str, str | None]) -> None:
    line = boot(lab, "Kernel panic - not syncing: no \x1b[31minit")
    assert "panicked" in line
    assert "rtgauge lab build debian --fresh" in line
    assert "no init" in line
    assert "console.log" in line
    assert not (paths.home() / "machines/debian/running.json").exists()


def test_a_qemu_that_ends_is_retried_once_then_reported(lab: dict[str, str | None]) -> None:
    completed = invoke("lab", "boot", "debian", "--accel", "tcg", env={**lab, "FAKE_SAYS": "ends"})
    assert "once more" in completed.stderr
    assert "QEMU was killed" in error_line(completed, 3)


def test_the_error_has_the_text_of_qemu_and_a_remedy(lab: dict[str, str | None]) -> None:
    line = boot(
        lab, "error:qemu: warning: x\nqemu: cannot set up guest memory 'pc.ram': Cannot allocate memory"
    )
    assert "cannot set up guest memory" in line
    assert "rtgauge lab boot debian --memory 512" in line
    assert "qemu: no such machine" in boot(lab, "error:qemu: warning: x\nqemu: no such machine")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        reported = f"error:qemu: Could not set up host forwarding rule 'tcp:127.0.0.1:{port}-:22'"
        assert f"port {port} is in use" in boot(lab, reported, "--port", port)


def test_what_cannot_be_is_refused(lab: dict[str, str | None], tmp_path: Path) -> None:
    line = boot(lab, "", "--memory", 1 << 20)
    assert "not enough memory" in line
    assert "rtgauge lab boot debian --memory 512" in line
    assert "--smp" in boot(lab, "", "--smp", "4;reboot", status=2)
    assert "kernel parameters" in boot(lab, "", "--append", "a\nb", status=2)
    assert "--accel" in error_line(invoke("lab", "boot", "debian", "--accel", "xen", env=lab), 2)
    assert "leave out --accel kvm" in error_line(
        invoke("lab", "boot", "debian", "--accel", "kvm", "--icount", env=lab), 2
    )
    assert "did you mean 'debian-rt'" in error_line(invoke("lab", "boot", "debian-tr", env=lab), 2)
    assert "is not running" in error_line(invoke("lab", "shell", "debian", env=lab), 2)
    assert "is not built" in error_line(invoke("probe", "wakeup", "--target", "lab:debian-rt", env=lab), 2)
    assert "not a guest" in error_line(
        invoke("audit", "--facts", "--target", "lab:-oProxyCommand=x", env=lab), 2
    )
    for words in (("debian",), ("Upper",), ("a" * 33,), ("../x",)):
        assert "name" in error_line(invoke("lab", "add", *words, "--kernel", sys.executable, env=lab), 2)
    assert "is not a file" in error_line(
        invoke("lab", "add", "own", "--kernel", tmp_path / "missing", env=lab), 2
    )
    kernel = fake_kernel(tmp_path)
    assert "is not a folder" in error_line(
        invoke("lab", "add", "own", "--kernel", kernel, "--modules", kernel, env=lab), 2
    )
    assert "for x86-64: leave out --arm64" in error_line(
        invoke("lab", "add", "own", "--kernel", kernel, "--arm64", env=lab), 2
    )
    for hidden in ("usr/xenomai", "var/lib", "tmp/x"):
        overlay = tmp_path / hidden.replace("/", "-")
        (overlay / hidden).mkdir(parents=True)
        refused = error_line(
            invoke("lab", "add", "own", "--kernel", kernel, "--overlay", overlay, env=lab), 2
        )
        assert f"{overlay / hidden.partition('/')[0]} would be hidden" in refused
    kernel.write_bytes(b"")
    assert "is not a bootable kernel" in error_line(
        invoke("lab", "add", "own", "--kernel", kernel, env=lab), 2
    )


def test_missing_programs_are_named_with_their_package(lab: dict[str, str | None], tmp_path: Path) -> None:
    few = tmp_path / "few"
    few.mkdir()
    for program in ("ssh-keygen", "mke2fs"):
        actual = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        assert actual is not None
        (few / program).symlink_to(actual)
    env = {**lab, "PATH": str(few)}
    assert "apt-get install qemu-system-x86" in error_line(
        invoke("lab", "boot", "debian", "--accel", "tcg", env=env), 3
    )
    assert "apt-get install mmdebstrap" in error_line(invoke("lab", "build", "debian-rt", env=env), 3)


def test_a_build_that_fails_leaves_nothing(lab: dict[str, str | None], tmp_path: Path) -> None:
    fake = tmp_path / "bin/mmdebstrap"
    fake.write_text(
        "#!/bin/sh\necho 'I: downloading packages with apt...' >&2\necho 'E: no such suite' >&2\nexit 1\n"
    )
    fake.chmod(0o755)
    before = sorted(paths.cache().rglob("*"))
    (paths.cache() / "images/.build-dead").mkdir()
    completed = invoke("lab", "build", "debian-rt", env=lab)
    assert "downloading packages" in completed.stderr
    assert "no such suite" in error_line(completed, 3)
    assert [path for path in sorted(paths.cache().rglob("*")) if path.name != ".lock"] == before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_build_that_is_cut_off_is_begun_anew(
    lab: dict[str, str | None], tmp_path: Path, number: signal.Signals
) -> None:
    fake = tmp_path / "bin/mmdebstrap"
    fake.write_text("#!/bin/sh\necho 'I: downloading packages with apt...' >&2\nexec sleep 30\n")
    fake.chmod(0o755)
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [*COMMAND, "lab", "build", "debian-rt"], env=environment(**lab), stderr=log
        )
    wait_until(lambda: "downloading" in (tmp_path / "log").read_text(), "the build to begin")
    process.send_signal(number)
    assert process.wait(PATIENCE_S) == (130 if number == signal.SIGINT else -number)
    fake.write_text("#!/bin/sh\necho 'E: no such suite' >&2\nexit 1\n")
    # nothing of it is in the way, and nothing of it is left
    assert "no such suite" in error_line(invoke("lab", "build", "debian-rt", env=lab), 3)
    assert not list(paths.cache().rglob(".build-*"))
    assert not list(paths.cache().glob("images/debian-rt-*"))


def test_a_build_waits_for_another_one(lab: dict[str, str | None], tmp_path: Path) -> None:
    fake = tmp_path / "bin/mmdebstrap"
    fake.write_text("#!/bin/sh\necho 'E: no such suite' >&2\nexit 1\n")
    fake.chmod(0o755)
    with (paths.cache() / "images/.lock").open("w") as lock, (tmp_path / "log").open("w") as log:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen(
            [*COMMAND, "lab", "build", "debian-rt"], env=environment(**lab), stderr=log
        )
        wait_until(
            lambda: (
                "another image is being built; waiting until it is finished" in (tmp_path / "log").read_text()
            ),
            "the build to wait",
        )
        assert process.poll() is None
    assert process.wait(PATIENCE_S) == 3
    assert "no such suite" in (tmp_path / "log").read_text()


def test_qemu_is_missing_or_cannot_as_a_run_boots_its_guest(
    lab: dict[str, str | None], tmp_path: Path
) -> None:
    """There is nothing to keep then."""
    words = (
        "run",
        "--target",
        "lab:debian",
        "--load",
        "idle",
        "--duration",
        "300ms",
        "--out",
        tmp_path / "out",
    )
    assert "QEMU cannot start lab:debian: qemu: no" in error_line(
        invoke(*words, env={**lab, "FAKE_SAYS": "error:qemu: no"}), 3
    )
    few = tmp_path / "few"
    few.mkdir()
    ssh_keygen = shutil.which("ssh-keygen")
    assert ssh_keygen is not None
    (few / "ssh-keygen").symlink_to(ssh_keygen)
    assert "apt-get install qemu-system-x86" in error_line(invoke(*words, env={**lab, "PATH": str(few)}), 3)
    assert not (tmp_path / "out").exists()


def test_deployments_by_boot_are_for_guests(lab: dict[str, str | None]) -> None:
    assert "guests of the lab" in error_line(
        invoke("run", "--boot", "each-deployment", "--deployment", "M", env=lab), 2
    )
    assert "give each-run or each-deployment" in error_line(
        invoke("run", "--target", "lab:debian", "--boot", "magic", env=lab), 2
    )


def test_an_added_guest_is_kept_until_it_is_removed(lab: dict[str, str | None], tmp_path: Path) -> None:
    kernel = fake_kernel(tmp_path)
    good(invoke("lab", "add", "own", "--kernel", kernel, "--append", "quiet", env=lab))
    assert "own" in [
        guest["name"] for guest in json.loads(good(invoke("lab", "list", "--json", env=lab)).stdout)
    ]
    good(invoke("lab", "rm", "own", env=lab))
    assert "own" not in [
        guest["name"] for guest in json.loads(good(invoke("lab", "list", "--json", env=lab)).stdout)
    ]
    (paths.home() / "guests/bad.json").write_text("{}")
    assert "damaged" in error_line(invoke("lab", "list", env=lab), 3)
