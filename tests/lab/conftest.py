# SPDX-License-Identifier: MIT
"""Guests for the tests: built once into the user's cache, booted with a home of their own, one at a time."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.cli import Done, good, rtgauge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NEEDED = ("qemu-system-x86_64", "qemu-system-aarch64", "mmdebstrap", "mke2fs", "ssh")
BUILD_S, BOOT_S = 900, 240


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.lab)
            item.add_marker(pytest.mark.timeout(1200))
            item.add_marker(pytest.mark.xdist_group(_guest_of(item)))


def _guest_of(item: pytest.Item) -> str:
    """What boots once for several tests, which stay on one worker: a guest, or what a file boots."""
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    guest = next((str(parameters[key]) for key in ("name", "guest") if key in parameters), "")
    return f"{item.path.stem} {guest}"


class Lab:
    """The command `rtgauge lab`; what its guests keep is in `home`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {"XDG_DATA_HOME": str(home)}
        self.up: str | None = None
        self.append = ""
        self.smp: str | None = None
        self.others: list[str] = []

    def boot_beside(self, name: str) -> None:
        """Boot one more guest, until `stop`."""
        self.others.append(name)
        self._boot(name, "")

    def _boot(self, name: str, append: str, smp: str | None = None) -> None:
        good(rtgauge("lab", "build", name, env=self.env, timeout=BUILD_S))
        words = ("lab", "boot", name, "--accel", "tcg", "--append", append, *(("--smp", smp) if smp is not None else ()))
        done = rtgauge(*words, env=self.env, timeout=BOOT_S)
        if done.returncode and "did not come up within" in done.stderr:
            # Where something else takes nearly all of this machine, an emulated kernel's timers fall behind for good.
            done = rtgauge(*words, env=self.env, timeout=BOOT_S)
        good(done)

    def boot(self, name: str, append: str = "", smp: str | None = None) -> None:
        """Make sure that just this guest runs, with these words on its kernel's command line, and so many CPUs (`rtgauge lab boot --smp`)."""
        if (self.up, self.append, self.smp) == (name, append, smp) and not self.others:
            return
        self.stop()
        self._boot(name, append, smp)
        self.up, self.append, self.smp = name, append, smp

    def stop(self) -> None:
        for name in [*([self.up] if self.up is not None else []), *self.others]:
            good(rtgauge("lab", "stop", name, env=self.env, timeout=60))
        self.up = None
        self.others.clear()

    def command(self, *words: object, status: int = 0) -> Done:
        """A command of rtgauge's on the guest that is up."""
        return good(rtgauge(*words, "--target", f"lab:{self.up}", env=self.env, timeout=300), status)

    def run_in(self, *words: str) -> str:
        """What a command in the guest prints."""
        assert self.up is not None
        return good(rtgauge("lab", "shell", self.up, *words, env=self.env, timeout=60)).stdout

    def listed(self, name: str) -> dict[str, Any]:
        guests: list[dict[str, Any]] = json.loads(good(rtgauge("lab", "list", "--json", env=self.env)).stdout)
        return next(guest for guest in guests if guest["name"] == name)


def _share_key(home: Path, base: Path) -> None:
    """All workers' guests let in the same key: it is part of their images, which are built once for all."""
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "lab-key"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "key.pub").exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", shared / "key"], check=True, stdin=subprocess.DEVNULL)
    place = home / "rtgauge/lab"
    place.mkdir(parents=True, mode=0o700)
    for name in ("key", "key.pub"):
        shutil.copy(shared / name, place)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    missing = [program for program in NEEDED if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]
    assert not missing, f"the lab's tests need {', '.join(missing)}: sh tools/packages.sh lab"
    one = Lab(tmp_path_factory.mktemp("lab"))
    _share_key(one.home, tmp_path_factory.getbasetemp())
    try:
        yield one
    finally:
        one.stop()


@pytest.fixture
def measured(lab: Lab, tmp_path: Path) -> Callable[..., tuple[dict[str, Any], Path]]:
    """Runs a plan on the guest that is up; gives the JSON document and the record's folder."""

    def run(*words: object, status: int = 0) -> tuple[dict[str, Any], Path]:
        out = tmp_path / "records"
        done = rtgauge("run", "--target", f"lab:{lab.up}", "--json", "--out", out, *words, env=lab.env, timeout=300)
        good(done, status)
        document: dict[str, Any] = json.loads(done.stdout)
        return document, max(out.iterdir(), key=lambda path: path.stat().st_mtime_ns)

    return run
