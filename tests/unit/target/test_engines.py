# SPDX-License-Identifier: MIT
"""The engine of other architectures: found or built once, started by QEMU's user emulation; else the command
is named.
"""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path

import pytest

import rtgauge
from rtgauge.errors import MeasureError
from rtgauge.target import engine_path as module
from rtgauge.target.engine_path import engine_for, engine_path
from tests.support.patience import PATIENCE_S

FOREIGN, EMULATOR = "armv7l", "qemu-arm-static"
"""`make test-engine` runs the engines of all architectures."""
ENGINE_LIMIT_BYTES = int(1.6 * 2**20)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.slow
def test_an_engine_is_built_once_and_runs_there(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if platform.machine() == FOREIGN:
        pytest.skip("this machine's own engine is tested everywhere else")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    path = engine_for(FOREIGN)
    built = path.stat().st_mtime_ns
    assert engine_for(FOREIGN) == path
    assert path.stat().st_mtime_ns == built
    assert path.stat().st_size < ENGINE_LIMIT_BYTES
    run = subprocess.run(
        [EMULATOR, path, "version"], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert run.stdout == f"rtgauge-engine {rtgauge.__version__}\n"
    read = subprocess.run(
        [EMULATOR, path, "read", "/proc/sys/kernel/ostype"],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    answer = json.loads(read.stdout)
    assert answer["files"]["/proc/sys/kernel/ostype"] == {"text": "Linux\n"}
    assert answer["time_ns"] > 0
    assert answer["realtime_ns"] > 1_600_000_000 * 10**9, "64-bit time also on 32-bit machines"


def test_this_machines_own_engine_keeps_the_limit() -> None:
    assert engine_path().stat().st_size < ENGINE_LIMIT_BYTES


@pytest.mark.slow
def test_it_measures_there(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if platform.machine() == FOREIGN:
        pytest.skip("this machine's own engine is tested everywhere else")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    options = [
        "--policy=other",
        "--interval-ns=10000000",
        "--count=20",
        "--warm-up-ns=0",
        "--dma-latency-us=-1",
        "--memory-lock=off",
        "--cpu=0",
    ]
    command = [EMULATOR, engine_for(FOREIGN), "wakeup", *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdin is not None
        assert engine.stdout is not None
        engine.stdin.write("go\n")
        engine.stdin.flush()
        # its standard input stays open: the end of it would be the end of the measurement
        lines = [json.loads(line) for line in engine.stdout]
    (summary,) = [line for line in lines if line["type"] == "summary"]
    assert summary["count"] + summary["missed"] == 20
    assert lines[-1]["reason"] == "count"


def test_one_that_the_package_holds_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = "aarch64" if platform.machine() == "x86_64" else "x86_64"
    shipped = tmp_path / "bin" / f"rtgauge-engine-{other}"
    shipped.parent.mkdir()
    shipped.touch(mode=0o755)
    monkeypatch.setattr(module, "PACKAGE", tmp_path)
    assert engine_for(other) == shipped


def test_this_machine_has_its_own() -> None:
    assert engine_for(platform.machine()) == engine_path()


@pytest.mark.parametrize("machine", ["armv6l", "i686", "", "x\x1b[2J\n$(id)"])
def test_an_architecture_that_there_is_none_for_is_named(machine: str) -> None:
    with pytest.raises(MeasureError, match=r"architecture is .* engines only for") as caught:
        engine_for(machine)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("machine", "command"),
    [
        ("armv7l", r"apt-get install .*gcc-arm-linux-gnueabihf"),
        ("loongarch64", r"missing; run: (apt-get install .* && )?pip install ziglang$"),
    ],
)
def test_without_a_compiler_the_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, command: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(module.sys, "executable", str(tmp_path / "python"))
    with pytest.raises(MeasureError, match=command):
        engine_for(machine)


def test_missing_sources_of_the_engine_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKAGE", tmp_path / "a" / "b")
    with pytest.raises(MeasureError, match="nor the sources"):
        engine_for("armv7l")


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rtgauge").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MeasureError, match="XDG_CACHE_HOME"):
        engine_for("armv7l")


@pytest.mark.slow
def test_a_relative_cache_folder_is_not_taken(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    built = engine_for("armv7l")
    expected = tmp_path / ".cache" / built.relative_to(cache)
    expected.parent.mkdir(parents=True)
    expected.symlink_to(built)
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert engine_for("armv7l") == expected
    assert not (tmp_path / "cache").exists()
