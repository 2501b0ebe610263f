# SPDX-License-Identifier: MIT
"""The examples of jobs for others' CI: they fit the published schemas, and call what rtgauge has."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rtgauge.cli.shared_options import wait_s
from rtgauge.plan.make_plan import Overrides, load_plan
from rtgauge.runner.step_loop import expected_s
from tests.support.command_line import parse

JOBS = Path(__file__).resolve().parents[3] / "packaging" / "jobs"


@pytest.mark.parametrize(
    ("name", "schema"), [("github.yml", "vendor.github-workflows"), ("gitlab.yml", "vendor.gitlab-ci")]
)
def test_fits_the_schema(name: str, schema: str) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, JOBS / name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout


@pytest.mark.parametrize("path", sorted(JOBS.iterdir()), ids=lambda path: path.name)
def test_calls_run_and_export(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = re.findall(
        r"rtgauge ((?:run|export) .*?)(?: \|\| (?:true|status=\$\?))?'?$", path.read_text(), re.MULTILINE
    )
    assert [command.split()[0] for command in commands] == ["run", "export"]
    for command in commands:
        parse(shlex.split(command))


def limit_min(path: Path) -> int:
    """The time limit of the step that measures."""
    if path.name == "Jenkinsfile":
        (text,) = re.findall(r"timeout\(time: (\d+), unit: 'MINUTES'\)", path.read_text())
        return int(text)
    job = yaml.safe_load(path.read_text())
    if path.name == "github.yml":
        return job["jobs"]["latency"]["timeout-minutes"]
    if path.name == "gitlab.yml":
        hours, unit = job["latency"]["timeout"].split()
        assert unit == "hour"
        return 60 * int(hours)
    (test,) = [action["test"] for action in job["actions"] if "test" in action]
    assert test["timeout"]["minutes"] <= job["timeouts"]["job"]["minutes"]
    return test["timeout"]["minutes"]


@pytest.mark.parametrize("path", sorted(JOBS.iterdir()), ids=lambda path: path.name)
def test_the_plan_and_its_wait_end_within_the_limit(path: Path) -> None:
    (command,) = re.findall(
        r"rtgauge run (.*?)(?: \|\| (?:true|status=\$\?))?'?$", path.read_text(), re.MULTILINE
    )
    plan_name, *words = shlex.split(command)
    options = dict(zip(words[::2], words[1::2], strict=True))
    plan = load_plan(plan_name, Overrides(parameters={"duration": options["--duration"]}))
    planned_s = sum(expected_s(key, plan.load_warm_up_ns) for key in plan.steps)
    most_s = 1.25 * planned_s + wait_s(options.get("--wait", "0"))
    assert most_s <= 60 * limit_min(path)


@pytest.mark.parametrize("path", sorted(JOBS.iterdir()), ids=lambda path: path.name)
def test_only_the_records_of_the_job_are_kept(path: Path) -> None:
    """A runner keeps its workspace: a name with a wildcard finds the records of earlier jobs."""
    assert "rtgauge-*" not in path.read_text()


@pytest.mark.parametrize(("status", "result"), [(0, "pass"), (1, "fail"), (3, "fail")])
def test_the_steps_for_lava_give_the_result(tmp_path: Path, status: int, result: str) -> None:
    job = yaml.safe_load((JOBS / "lava.yaml").read_text())
    (test,) = [action["test"] for action in job["actions"] if "test" in action]
    steps = test["definitions"][0]["repository"]["run"]["steps"]
    stand_ins = [f"rtgauge() {{ test $1 = export || return {status}; }}", 'lava-test-case() { echo "$@"; }']
    completed = subprocess.run(
        ["bash", "-e", "-c", "\n".join([*stand_ins, *steps])],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout == f"real-time --result {result}\n"
