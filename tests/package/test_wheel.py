# SPDX-License-Identifier: MIT
"""The wheel: the same bytes from two builds of a commit, for every Linux, and it measures."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import rtgauge

pytestmark = pytest.mark.timeout(1800)  # ten engines, and a C library for one of them

ROOT = Path(__file__).resolve().parents[2]
ENGINES = {
    f"rtgauge/bin/rtgauge-engine-{machine}"
    for machine in ("aarch64", "armhf", "loongarch64", "riscv64", "x86_64")
}
MOST_BYTES = 8 * 2**20
"""The most that all engines together may take, unpacked."""
NAME_MAX = 255
"""The most bytes of a file's name (limits.h)."""


def built(clone: Path, umask: int = 0o022) -> Path:
    """The folder `dist` of a clone of this checkout's commit, built there with this checkout's tools."""
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], umask=umask, check=True)
    (clone / ".venv").symlink_to(ROOT / ".venv")
    old = [word for made in (".ready", ".release") for word in ("-o", f".venv/{made}")]
    completed = subprocess.run(
        ["make", *old, "wheel"], cwd=clone, umask=umask, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return clone / "dist"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("first") / "rtgauge")


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (actual,) = dist.glob("*.whl")
    return actual


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which Python finds the wheel's package, not the one that the tests run with."""
    place = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", place, wheel], check=True
    )
    return {**os.environ, "PYTHONPATH": str(place)}


def test_two_builds_give_the_same_bytes(dist: Path, tmp_path: Path) -> None:
    again = built(tmp_path / "in-another-folder", umask=0o002)
    hashes = [
        {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
        for folder in (dist, again)
    ]
    assert len(hashes[0]) == 2
    assert hashes[0] == hashes[1]


def test_it_has_the_engines_of_all_architectures(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        programs = {name for name in archive.namelist() if name.startswith("rtgauge/bin/")}
        assert programs == ENGINES
        assert sum(archive.getinfo(name).file_size for name in programs) < MOST_BYTES
        assert all(archive.getinfo(name).external_attr >> 16 & 0o111 for name in programs)


def test_pip_takes_it_on_every_linux(wheel: Path) -> None:
    from packaging.tags import Tag
    from packaging.utils import parse_wheel_filename

    assert len(f"{wheel.name}.cdx.json") <= NAME_MAX
    tags = parse_wheel_filename(wheel.name)[3]
    for libc in ("manylinux_2_17", "musllinux_1_1"):
        for machine in ("x86_64", "aarch64", "armv7l", "riscv64"):
            assert Tag("py3", "none", f"{libc}_{machine}") in tags


def test_its_version_names_the_commit_and_the_engine(wheel: Path, installed: dict[str, str]) -> None:
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    with zipfile.ZipFile(wheel) as archive:
        engine = hashlib.sha256(archive.read(f"rtgauge/bin/rtgauge-engine-{os.uname().machine}")).hexdigest()
    completed = subprocess.run(
        [sys.executable, "-m", "rtgauge", "--version"],
        env=installed,
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout.splitlines() == [
        f"rtgauge {rtgauge.__version__}",
        f"commit {head[:12]}",
        f"engine sha256:{engine}",
    ]


def test_it_measures(installed: dict[str, str], tmp_path: Path) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "rtgauge", "probe", "calibrate", "--json", "--wait", "10min"],
        env=installed,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    assert "monotonic" in completed.stdout.lower()


def test_pages_need_no_package_that_draws_figure_files(installed: dict[str, str]) -> None:
    script = (
        "import sys; sys.modules['vl_convert'] = None\n"
        "from rtgauge.report.page_frame import drawing_code\n"
        "print('vegaEmbed' in drawing_code())\n"
        "from rtgauge.report.figures.figure_files import _converter\n"
        "_converter()"
    )
    completed = subprocess.run(
        [sys.executable, "-c", script], env=installed, capture_output=True, text=True, check=False
    )
    assert completed.stdout == "True\n"
    assert "pip install 'rtgauge[figures]'" in completed.stderr
