# SPDX-License-Identifier: MIT
"""Which modules a kernel can load, and what is said if it refuses one.

No module is loaded: that is for the lab.
"""

from __future__ import annotations

import pytest

from rtgauge.system.loadable_modules import ModuleKernel, refusal
from tests.support.kernel_board import PLAIN, RELEASE, Board


@pytest.mark.parametrize(
    ("error", "signed_only", "expected_text"),
    [
        ("EKEYREJECTED", False, "only modules that are signed"),
        ("EPERM", True, "only modules that are signed"),
        ("EPERM", False, "run as root"),
        ("ENOEXEC", False, f"a kernel other than {RELEASE} (vermagic)"),
        ("ENOENT", False, "lacks a function"),
        ("EIO", False, "refuses rtgauge_wire (EIO); find the reason with dmesg"),
    ],
)
def test_what_the_kernel_refuses_is_explained(error: str, signed_only: bool, expected_text: str) -> None:
    kernel = ModuleKernel(RELEASE, "", "x86_64", signed_only=signed_only)
    text = str(refusal(error, "module:/tmp/x/rtgauge_wire.ko", kernel))
    assert expected_text in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("lockdown", "enforced", "signed"),
    [("[integrity]", "N", True), ("[none] integrity", "Y", True), ("[none] integrity", "N", False)],
)
def test_who_loads_signed_modules_only(lockdown: str, enforced: str, signed: bool) -> None:
    files = {"/sys/kernel/security/lockdown": lockdown, "/sys/module/module/parameters/sig_enforce": enforced}
    assert ModuleKernel.of(Board({**PLAIN, **files})).signed_only is signed  # pyright: ignore[reportArgumentType]
