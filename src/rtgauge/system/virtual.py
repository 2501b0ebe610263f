# SPDX-License-Identifier: MIT
"""Whether a target is a virtual machine, and whether its processor is emulated."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rtgauge.record.facts import Virtualization

if TYPE_CHECKING:
    from rtgauge.system.file_batch import Files

DMI = "/sys/class/dmi/id"
CLOCKS = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
PATHS = [
    *(f"{DMI}/{name}" for name in ("sys_vendor", "product_name", "bios_vendor", "board_name")),
    "/proc/device-tree/compatible",
    "/proc/device-tree/hypervisor/compatible",
    "/sys/hypervisor/type",
    CLOCKS,
    "/proc/cpuinfo",
    "/proc/cmdline",
]
# patterns of the DMI vendor and product strings of virtual machines
MAKERS = {
    "qemu": r"\bQEMU\b|\bKVM\b|\bBochs\b|Standard PC \(",
    "vmware": r"\bVMware\b",
    "virtualbox": r"\bVirtualBox\b|innotek GmbH",
    "hyper-v": r"Microsoft Corporation.*Virtual Machine",
    "xen": r"\bXen\b",
    "google": r"Google Compute Engine",
    "parallels": r"\bParallels\b",
    "openstack": r"\bOpenStack\b",
    "digitalocean": r"\bDigitalOcean\b",
    "hetzner": r"Hetzner.*vServer",
    "apple": r"Apple Virtualization",
    "firecracker": r"\bFirecracker\b",
}
MOST_ICOUNT_SHIFT = 10
"""QEMU's greatest."""
CLOCK_HYPERVISORS = {"kvm-clock": "kvm", "hyperv_clocksource_tsc_page": "hyper-v", "xen": "xen"}


def facts(files: Files) -> Virtualization:
    """Whether the machine is virtual or emulated, and what shows it."""
    cpuinfo = files.text("/proc/cpuinfo") or ""
    flags = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    clocks = (files.text(CLOCKS) or "").split()
    product = " ".join(
        filter(None, (files.text(f"{DMI}/{name}") for name in ("sys_vendor", "product_name", "bios_vendor")))
    )
    tree = " ".join((files.text("/proc/device-tree/compatible") or "").split("\0"))
    evidence: list[str] = []
    hypervisors: list[str] = []
    if flags and "hypervisor" in flags[1].split():
        evidence.append("/proc/cpuinfo: flag hypervisor")
    for maker, pattern in MAKERS.items():
        if re.search(pattern, product):
            evidence.append(f"{DMI}: {product[:200]}")
            hypervisors.append(maker)
    for clock in clocks:
        if clock in CLOCK_HYPERVISORS:
            evidence.append(f"clock source {clock}")
            hypervisors.insert(0, CLOCK_HYPERVISORS[clock])
    kind = files.text("/sys/hypervisor/type")
    if kind:
        evidence.append(f"/sys/hypervisor/type: {kind[:64]}")
        hypervisors.insert(0, kind[:64])
    node = files.text("/proc/device-tree/hypervisor/compatible")
    if node:
        name = node.split("\0")[0][:64]
        evidence.append(f"/proc/device-tree/hypervisor: {name}")
        hypervisors.append(name)
    if re.search(r"\blinux,dummy-virt\b", tree):
        evidence.append("/proc/device-tree/compatible: linux,dummy-virt")
        hypervisors.append("qemu")

    real_processor = flags is not None or product != "" or (tree != "" and "virt" not in tree)
    virtual = True if evidence else False if real_processor else None
    emulated = _emulated(
        cpuinfo,
        virtual=virtual,
        hardware_assisted=bool(set(clocks) & set(CLOCK_HYPERVISORS)),
        evidence=evidence,
    )
    return Virtualization(
        virtual=virtual,
        hypervisor=hypervisors[0] if hypervisors else "none" if virtual is False else None,
        emulated=emulated,
        evidence=evidence,
        instruction_ns=_instruction_ns(files.text("/proc/cmdline"), emulated=emulated),
    )


def _instruction_ns(command_line: str | None, *, emulated: bool | None) -> int | None:
    """The lab says it in a parameter; of other emulators nothing is known."""
    shift = re.search(r"(?:^|\s)rtgauge\.icount=([0-9]{1,2})(?:\s|$)", command_line or "")
    if emulated is False:
        return 0
    return 1 << int(shift[1]) if shift is not None and int(shift[1]) <= MOST_ICOUNT_SHIFT else None


def _emulated(
    cpuinfo: str, *, virtual: bool | None, hardware_assisted: bool, evidence: list[str]
) -> bool | None:
    """QEMU's emulation (TCG) shows in the processor's name; only real ones have a paravirtual clock."""
    if virtual is False or hardware_assisted:
        return False
    name = re.search(r"^model name\s*:\s*(QEMU (?:Virtual|TCG) CPU[^\n]{0,64})", cpuinfo, re.MULTILINE)
    # QEMU's `max` processor for Arm has implementer 0 and part 0x51
    arm = re.search(r"^CPU implementer\s*:\s*0x00$", cpuinfo, re.MULTILINE) and re.search(
        r"^CPU part\s*:\s*0x051$", cpuinfo, re.MULTILINE
    )
    if name or arm:
        evidence.append(f"/proc/cpuinfo: {name[1] if name else 'implementer 0x00, part 0x051 (QEMU max)'}")
        return True
    return None
