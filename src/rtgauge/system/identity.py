# SPDX-License-Identifier: MIT
"""What identifies a machine over boots, kernels and host names.

A serial number of the board, or the UUID that its firmware has, is hashed with a fixed, public salt: the same
machine has the same identity everywhere, and nobody reads the number off it.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from rtgauge.record.facts import Identity

if TYPE_CHECKING:
    from rtgauge.system.file_batch import Files

SALT = b"rtgauge machine identity 1\0"
SOURCES = {
    "dmi": "/sys/class/dmi/id/product_uuid",
    "device-tree": "/proc/device-tree/serial-number",
    "soc": "/sys/devices/soc0/serial_number",
    "machine-id": "/etc/machine-id",
}
"""The best first. Only root can read the first; the last is a file that copies of one image share."""
PATHS = list(SOURCES.values())
SHARED = "machine-id"
LEAST_DIGITS = 4
EXAMPLES = {"03000200040005000006000700080009", "12345678123456781234567812345678"}
"""UUIDs that makers of boards left as their tools had them."""


def is_serial(text: str) -> bool:
    """Whether it can be the number of one machine: not all zeros or one digit again and again, no known
    example, not words such as "To be filled by O.E.M.".
    """
    digits = re.sub(r"[^0-9a-z]", "", text.lower())
    return (
        len(digits) >= LEAST_DIGITS
        and len(set(digits)) > 2
        and digits not in EXAMPLES
        and any(digit.isdigit() for digit in digits)
    )


def facts(files: Files) -> Identity:
    """The best number of the machine, hashed; unknown if it has none that this user may read."""
    for source, path in SOURCES.items():
        text = files.text(path)
        if text is not None and is_serial(text):
            number = f"{source}:{text.strip().lower()}".encode(errors="replace")
            return Identity(source=source, hash=hashlib.sha256(SALT + number).hexdigest()[:32])
    return Identity(source=None, hash=None)
