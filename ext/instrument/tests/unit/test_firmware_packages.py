# SPDX-License-Identifier: MIT
"""The packages that the firmware's tests install are locked."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[4]


def test_packages_of_the_firmware_tests_are_locked_with_hashes():
    folder = ROOT / "ext/instrument/firmware/test"
    packages = {
        name: package
        for name, package in json.loads((folder / "package-lock.json").read_text())["packages"].items()
        if name
    }
    expected = json.loads((folder / "package.json").read_text())["dependencies"]
    assert {name: packages[f"node_modules/{name}"]["version"] for name in expected} == expected
    assert all(
        package["integrity"].startswith("sha512-") and "resolved" not in package
        for package in packages.values()
    )
    makefile = (ROOT / "Makefile").read_text()
    assert "npm ci" in makefile
    assert "npm install" not in makefile
