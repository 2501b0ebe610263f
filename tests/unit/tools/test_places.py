# SPDX-License-Identifier: MIT
"""The unit tests lie as the sources do, so that the tests of a part are found by its name."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]
TESTS = ROOT / "tests" / "unit"
SOURCES = ROOT / "src" / "rtgauge"
BESIDES = {"bench": ROOT / "bench", "support": ROOT / "tests" / "support", "tools": ROOT / "tools"}
"""Folders of tests of what is not part of the package."""


def test_each_folder_of_tests_is_one_of_the_sources() -> None:
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")} - {Path()}
    assert len(folders) > 10
    assert all((BESIDES.get(str(folder)) or SOURCES / folder).is_dir() for folder in folders)


def test_each_package_has_tests() -> None:
    packages = {path.parent.name for path in SOURCES.glob("*/__init__.py")}
    assert packages - {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py")} == set()


def test_what_lies_in_no_folder_tests_a_module_of_its_name() -> None:
    modules = {path.stem.strip("_") for path in SOURCES.glob("*.py")}
    assert {path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py")} <= modules
