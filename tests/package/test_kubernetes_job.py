# SPDX-License-Identifier: MIT
"""The Kubernetes job is what Kubernetes' own schemas allow, and its command is one of rtgauge's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.command_line import parse

JOB = Path(__file__).resolve().parents[2] / "packaging" / "job.yaml"
OLDEST = "1.29"


@pytest.mark.parametrize("version", [OLDEST, "1.37"])
def test_the_job_fits_the_schema(version: str) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "kubernetes_validate", "--strict", "-k", version, JOB],
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_a_wrong_key_would_be_noticed(tmp_path: Path) -> None:
    wrong = tmp_path / "job.yaml"
    wrong.write_text(JOB.read_text().replace("runAsUser", "runAsUsr"))
    completed = subprocess.run(
        [sys.executable, "-m", "kubernetes_validate", "--strict", wrong],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "runAsUsr" in completed.stdout
    assert completed.returncode != 0


def test_the_job_calls_rtgauge() -> None:
    (container,) = yaml.safe_load(JOB.read_text())["spec"]["template"]["spec"]["containers"]
    parse(container["args"])
