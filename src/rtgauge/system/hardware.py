# SPDX-License-Identifier: MIT
"""Finds a machine's identity and firmware, and whether the machine is virtual or emulated."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from rtgauge.record.facts import Firmware, Identity, Virtualization

if TYPE_CHECKING:
    from rtgauge.target.file_batch import Files


SALT = b"rtgauge machine identity 1\0"
SOURCES = {
    "dmi": "/sys/class/dmi/id/product_uuid",
    "device-tree": "/proc/device-tree/serial-number",
    "soc": "/sys/devices/soc0/serial_number",
    "machine-id": "/etc/machine-id",
}
"""Sources of a serial number, the best first.

Only root can read the first. The last is a file, which all copies of a disk image share.
"""
IDENTITY_PATHS = list(SOURCES.values())
SHARED = "machine-id"
LEAST_DIGITS = 4
EXAMPLES = {"03000200040005000006000700080009", "12345678123456781234567812345678"}
"""UUIDs that are defaults of board makers' tools, and that some makers forgot to change."""


def is_serial(text: str) -> bool:
    """Return whether the text can be a machine's serial number. It must have a digit and at least three
    different characters, and not be a known example. "To be filled by O.E.M." fails.
    """
    digits = re.sub(r"[^0-9a-z]", "", text.lower())
    return (
        len(digits) >= LEAST_DIGITS
        and len(set(digits)) > 2
        and digits not in EXAMPLES
        and any(digit.isdigit() for digit in digits)
    )


def identity(files: Files) -> Identity:
    """Return the machine's best serial number, hashed; unknown if this user can read none."""
    for source, path in SOURCES.items():
        text = files.text(path)
        if text is not None and is_serial(text):
            number = f"{source}:{text.strip().lower()}".encode(errors="replace")
            return Identity(source=source, hash=hashlib.sha256(SALT + number).hexdigest()[:32])
    return Identity(source=None, hash=None)


CPU = "/sys/devices/system/cpu"
DMI = "/sys/class/dmi/id"
VULNERABILITIES = f"{CPU}/vulnerabilities"
FIRMWARE_PATHS = [
    *(
        f"{DMI}/{name}"
        for name in ("bios_vendor", "bios_version", "bios_date", "sys_vendor", "product_name", "board_name")
    ),
    "/proc/device-tree/chosen/u-boot,version",
    f"{CPU}/cpu[0-9]*/microcode/version",
    f"{VULNERABILITIES}/*",
]


def microcode(files: Files) -> list[str] | None:
    """Return every version of microcode that a CPU runs."""
    versions = {text for _, text in files.matching(rf"{CPU}/cpu[0-9]{{1,5}}/microcode/version")}
    cpuinfo = files.text("/proc/cpuinfo") or ""
    versions.update(re.findall(r"^microcode\s*: (0x[0-9a-f]{1,16})$", cpuinfo, re.MULTILINE))
    return sorted(versions) or None


def firmware(files: Files) -> Firmware:
    """Return the firmware's vendor, version and date, the board's name, the microcode, and mitigations."""
    reported = files.matching(rf"{VULNERABILITIES}/([a-z0-9_]{{1,64}})")
    vulnerabilities = {match[1]: text for match, text in reported}
    mitigated = sorted(name for name, text in vulnerabilities.items() if text.startswith("Mitigation"))
    return Firmware(
        vendor=files.text(f"{DMI}/bios_vendor"),
        version=files.text(f"{DMI}/bios_version") or files.text("/proc/device-tree/chosen/u-boot,version"),
        date=files.text(f"{DMI}/bios_date"),
        system=files.text(f"{DMI}/product_name") or files.text("/proc/device-tree/model"),
        board=files.text(f"{DMI}/board_name"),
        microcode=microcode(files),
        mitigations=vulnerabilities or None,
        mitigated=mitigated if vulnerabilities else None,
    )


CLOCKS = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
VIRTUAL_PATHS = [
    *(f"{DMI}/{name}" for name in ("sys_vendor", "product_name", "bios_vendor", "board_name")),
    "/proc/device-tree/compatible",
    "/proc/device-tree/hypervisor/compatible",
    "/sys/hypervisor/type",
    CLOCKS,
    "/proc/cpuinfo",
    "/proc/cmdline",
]
# Patterns in the DMI vendor and product strings of virtual machines.
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
RISCV_QEMU = re.compile(r"^marchid\s*:\s*(0x2a|0x(?:[0-9a-f]{5,6}))\nmimpid\s*:\s*(?:0x0|\1)$", re.MULTILINE)
"""QEMU's emulated RISC-V processor: architecture 42, or before QEMU 10 its version in both numbers."""
MOST_ICOUNT_SHIFT = 10
"""The largest shift that QEMU accepts."""
CLOCK_HYPERVISORS = {"kvm-clock": "kvm", "hyperv_clocksource_tsc_page": "hyper-v", "xen": "xen"}


def virtualization(files: Files) -> Virtualization:
    """Return whether the machine is virtual or emulated, with the evidence."""
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
    made_up = re.search(r"\b(?:linux,dummy-virt|riscv-virtio)\b", tree)  # QEMU's boards for Arm and RISC-V
    if made_up:
        evidence.append(f"/proc/device-tree/compatible: {made_up[0]}")
        hypervisors.append("qemu")

    real_processor = flags is not None or product != "" or (tree != "" and "virt" not in tree)
    virtual = True if evidence else False if real_processor else None
    assisted = any(clock in CLOCK_HYPERVISORS for clock in clocks)
    emulated = _emulated(cpuinfo, virtual=virtual, hardware_assisted=assisted, evidence=evidence)
    return Virtualization(
        virtual=virtual,
        hypervisor=hypervisors[0] if hypervisors else "none" if virtual is False else None,
        emulated=emulated,
        evidence=evidence,
        instruction_ns=_instruction_ns(files.text("/proc/cmdline"), emulated=emulated),
    )


def _instruction_ns(command_line: str | None, *, emulated: bool | None) -> int | None:
    """Return the ns per emulated instruction, from a boot parameter that the lab sets; None if unknown."""
    shift = re.search(r"(?:^|\s)rtgauge\.icount=([0-9]{1,2})(?:\s|$)", command_line or "")
    if emulated is False:
        return 0
    return 1 << int(shift[1]) if shift is not None and int(shift[1]) <= MOST_ICOUNT_SHIFT else None


def _emulated(
    cpuinfo: str, *, virtual: bool | None, hardware_assisted: bool, evidence: list[str]
) -> bool | None:
    """Detect QEMU's emulation (TCG) by the processor's name. An emulated one has no paravirtual clock."""
    if virtual is False or hardware_assisted:
        return False
    name = re.search(r"^model name\s*:\s*(QEMU (?:Virtual|TCG) CPU[^\n]{0,64})", cpuinfo, re.MULTILINE)
    # QEMU's `max` processor for Arm has implementer 0 and part 0x51.
    arm = re.search(r"^CPU implementer\s*:\s*0x00$", cpuinfo, re.MULTILINE) and re.search(
        r"^CPU part\s*:\s*0x051$", cpuinfo, re.MULTILINE
    )
    riscv = re.search(r"^mvendorid\s*:\s*0x0$", cpuinfo, re.MULTILINE) and RISCV_QEMU.search(cpuinfo)
    if name or arm:
        evidence.append(f"/proc/cpuinfo: {name[1] if name else 'implementer 0x00, part 0x051 (QEMU max)'}")
    elif riscv:
        evidence.append(f"/proc/cpuinfo: mvendorid 0x0, marchid {riscv[1]} (QEMU)")
    return True if name or arm or riscv else None
