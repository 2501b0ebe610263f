# SPDX-License-Identifier: MIT
"""Guests of the user's own lab: a test whose guest was not added (`rtgauge lab add NAME`), or has no modules,
is skipped by its name.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.support.cli import good, rtgauge

from rtgauge.units import parse_cpu_list

ADD = "rtgauge lab add {name} --kernel bzImage --overlay DIR"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.lab)
            item.add_marker(pytest.mark.timeout(1200))


def guest(name: str, *options: str) -> str:
    """`lab:NAME`, booted with `options` if it does not run. Skips the test where there is no such guest."""
    listed = json.loads(good(rtgauge("lab", "list", "--json")).stdout)
    running = {entry["name"]: entry["running"] for entry in listed}
    if name not in running:
        pytest.skip(f"there is no guest {name}: {ADD.format(name=name)} (ext/cokernel/README.md)")
    if not running[name]:
        good(rtgauge("lab", "boot", name, *options, timeout=600))
    return f"lab:{name}"


@pytest.fixture(scope="session")
def xenomai() -> str:
    """A guest with Xenomai 3 and its libraries."""
    return guest("xenomai")


@pytest.fixture(scope="session")
def xenomai_modules(xenomai: str) -> str:
    """The same, with kernel modules that were built for its kernel: nobody else has its headers."""
    if "RTGAUGE_KMOD" not in os.environ:
        pytest.skip(
            "RTGAUGE_KMOD names no folder of modules for the kernel of the guest xenomai (docs/kmod.md)"
        )
    return xenomai


@pytest.fixture(scope="session")
def rtai_modules(rtai: str) -> str:
    """The same, with rtgauge's kernel modules for its kernel."""
    if "RTGAUGE_KMOD" not in os.environ:
        pytest.skip("RTGAUGE_KMOD names no folder of modules for the kernel of the guest rtai (docs/kmod.md)")
    return rtai


@pytest.fixture(scope="session")
def rtai() -> str:
    """A guest with RTAI installed, whose modules are not loaded.

    Its clock counts instructions: otherwise a task set has no time to finish if this machine has others to
    serve.
    """
    return guest("rtai", "--icount")


@pytest.fixture(scope="session")
def rtai_cpus(rtai: str) -> list[int]:
    """The CPUs of that guest."""
    return parse_cpu_list(
        json.loads(good(rtgauge("audit", "--facts", "--target", rtai, "--json", timeout=600)).stdout)["cpu"][
            "online"
        ]
    )
