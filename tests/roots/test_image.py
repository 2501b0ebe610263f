# SPDX-License-Identifier: MIT
"""The container image of the wheel in dist/ (or RTGAUGE_DIST), built by buildah on a minimal Debian of its own, since
a test needs no registry: `make test-packages`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

# The Debian and the libraries come over the network.
pytestmark = pytest.mark.timeout(3600)
ROOT = Path(__file__).resolve().parents[2]
DIST = Path(os.environ.get("RTGAUGE_DIST", ROOT / "dist"))
MEASURE = ["rtgauge", "probe", "wakeup", "--duration", "1s", "--wait", "10min", "--require"]
REQUIREMENT = "period=1ms latency<=50ms"
VERDICTS = {0: "HOLDS", 1: "FAILS", 4: "MARGINAL|CANNOT TELL"}

Buildah = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def buildah(tmp_path: Path) -> object:
    """Runs buildah with a storage of its own; a chroot isolates its containers, which needs no runtime."""

    def run(*arguments: str | Path, checked: bool = True) -> subprocess.CompletedProcess[str]:
        completed = subprocess.run(
            ["buildah", "--root", tmp_path / "store", "--runroot", tmp_path / "run", *arguments],
            env=os.environ | {"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert completed.returncode == 0 or not checked, (
            f"{arguments}: {completed.stdout[-2000:]}{completed.stderr[-4000:]}"
        )
        return completed

    yield run
    shutil.rmtree(tmp_path)


def test_the_image_measures_with_the_capability_or_names_it(buildah: Buildah, tmp_path: Path) -> None:
    debian = tmp_path / "debian.tar"
    subprocess.run(
        [
            "sh",
            ROOT / "tools" / "root.sh",
            "bookworm",
            debian,
            "--variant=minbase",
            "--include=ca-certificates",
        ],
        check=True,
    )
    empty = buildah("from", "scratch").stdout.strip()
    buildah("add", empty, debian, "/")
    buildah("commit", "--rm", empty, "localhost/debian")
    context = tmp_path / "context"
    (context / "dist").mkdir(parents=True)
    (wheel,) = DIST.glob("*.whl")
    shutil.copy(wheel, context / "dist")
    shutil.copy(ROOT / "Containerfile", context)
    buildah("build", "--build-arg", "BASE=localhost/debian", "--tag", "rtgauge", context)
    container = buildah("from", "rtgauge").stdout.strip()

    refused = buildah("run", container, "--", *MEASURE, REQUIREMENT, checked=False)
    assert refused.returncode == 3
    assert "no CAP_SYS_NICE" in refused.stderr

    # The machine's lock is the host's, so that nobody else measures meanwhile.
    Path("/run/rtgauge").mkdir(exist_ok=True)
    granted = [
        "--cap-add",
        "CAP_SYS_NICE",
        "--cap-add",
        "CAP_IPC_LOCK",
        "--volume",
        "/run/rtgauge:/run/rtgauge",
    ]
    measured = buildah("run", *granted, container, "--", *MEASURE, REQUIREMENT, checked=False)
    assert measured.returncode in VERDICTS, measured.stderr
    assert re.search(VERDICTS[measured.returncode], measured.stdout), measured.stdout
