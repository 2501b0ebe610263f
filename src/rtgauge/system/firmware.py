# SPDX-License-Identifier: MIT
"""Firmware, microcode and mitigations of CPU vulnerabilities."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rtgauge.record.facts import Firmware

if TYPE_CHECKING:
    from rtgauge.system.file_batch import Files

CPU = "/sys/devices/system/cpu"
DMI = "/sys/class/dmi/id"
VULNERABILITIES = f"{CPU}/vulnerabilities"
PATHS = [
    *(
        f"{DMI}/{name}"
        for name in ("bios_vendor", "bios_version", "bios_date", "sys_vendor", "product_name", "board_name")
    ),
    "/proc/device-tree/chosen/u-boot,version",
    f"{CPU}/cpu[0-9]*/microcode/version",
    f"{VULNERABILITIES}/*",
]


def microcode(files: Files) -> list[str] | None:
    """Every microcode version that a CPU runs."""
    versions = {text for _, text in files.matching(rf"{CPU}/cpu[0-9]{{1,5}}/microcode/version")}
    versions |= set(
        re.findall(r"^microcode\s*: (0x[0-9a-f]{1,16})$", files.text("/proc/cpuinfo") or "", re.MULTILINE)
    )
    return sorted(versions) or None


def facts(files: Files) -> Firmware:
    """Firmware vendor, version and date, board name, microcode, and vulnerability -> mitigation."""
    vulnerabilities = {
        match[1]: text for match, text in files.matching(rf"{VULNERABILITIES}/([a-z0-9_]{{1,64}})")
    }
    return Firmware(
        vendor=files.text(f"{DMI}/bios_vendor"),
        version=files.text(f"{DMI}/bios_version") or files.text("/proc/device-tree/chosen/u-boot,version"),
        date=files.text(f"{DMI}/bios_date"),
        system=files.text(f"{DMI}/product_name") or files.text("/proc/device-tree/model"),
        board=files.text(f"{DMI}/board_name"),
        microcode=microcode(files),
        mitigations=vulnerabilities or None,
        mitigated=sorted(name for name, text in vulnerabilities.items() if text.startswith("Mitigation"))
        if vulnerabilities
        else None,
    )
