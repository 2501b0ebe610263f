# SPDX-License-Identifier: MIT
"""What `make run` and `make test` install is locked: every requirement of pyproject.toml, with hashes, the
same versions in both.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS = PROJECT["dependency-groups"]
WANTED = {
    "run": [*PROJECT["project"]["dependencies"], *GROUPS["build"], *PROJECT["build-system"]["requires"]]
}
WANTED["test"] = [*WANTED["run"], *GROUPS["test"], *GROUPS["lint"], *GROUPS["docs"]]


def locked(name: str) -> dict[str, list[tuple[str, str, int]]]:
    """Package -> (version, marker, number of hashes), once for each version."""
    text = (ROOT / "tools/locks" / f"{name}.txt").read_text().replace("\\\n", " ")
    packages: dict[str, list[tuple[str, str, int]]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            requirement, *hashes = re.split(r"\s+--hash=sha256:", line.strip())
            assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in hashes)
            parsed = Requirement(requirement)
            (pin,) = parsed.specifier
            assert pin.operator == "=="
            packages.setdefault(canonicalize_name(parsed.name), []).append(
                (pin.version, str(parsed.marker), len(hashes))
            )
    return packages


@pytest.mark.parametrize("name", WANTED)
def test_every_requirement_is_locked_with_hashes(name):
    packages = locked(name)
    assert all(hashes for versions in packages.values() for _, _, hashes in versions)
    for text in WANTED[name]:
        expected = Requirement(text)
        versions = packages[canonicalize_name(expected.name)]
        assert versions, f"sh tools/lock.sh: {text} is missing"
        assert all(expected.specifier.contains(version) for version, _, _ in versions), (
            f"sh tools/lock.sh: {text}"
        )


def test_tests_run_with_the_versions_that_users_get():
    run, test = locked("run"), locked("test")
    assert {name: {version for version, _, _ in versions} for name, versions in run.items()} == {
        name: {version for version, _, _ in test.get(name, [])} for name in run
    }


@pytest.mark.parametrize("name", WANTED)
def test_a_lock_names_no_place(name):
    text = (ROOT / "tools/locks" / f"{name}.txt").read_text()
    assert not re.search(r"://|index-url|find-links|trusted-host", text)


def test_actions_of_the_workflow_are_named_by_their_commit():
    used = [
        line
        for file in (ROOT / ".github/workflows").iterdir()
        for line in re.findall(r"uses: *(.*)", file.read_text())
    ]
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[0-9.]+", line) for line in used)
