# SPDX-License-Identifier: MIT
"""Makes the UF2 file of an image of the RP2040's flash: `uf2.py IMAGE UF2`.

Writes the checksum of the second stage that the boot ROM wants.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

FLASH_START = 0x1000_0000
FAMILY_RP2040 = 0xE48B_FF56
PAGE = 256
BOOT2_CODE = 252


def boot2_checksum(code: bytes) -> int:
    """CRC-32 as the boot ROM computes it (RP2040 datasheet 2.8.1.3.1): polynomial 04c11db7, begun with ones,
    bits not reversed.
    """
    crc = 0xFFFF_FFFF
    for byte in code:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ 0x04C1_1DB7 if crc & 0x8000_0000 else crc << 1) & 0xFFFF_FFFF
    return crc


def with_checksum(image: bytes) -> bytes:
    """The image with the checksum of its first 252 bytes behind them."""
    code = image[:BOOT2_CODE].ljust(BOOT2_CODE, b"\0")
    return code + struct.pack("<I", boot2_checksum(code)) + image[PAGE:]


def uf2(image: bytes) -> bytes:
    """Blocks of 512 bytes with 256 of the image each."""
    pages = [image[i : i + PAGE].ljust(PAGE, b"\0") for i in range(0, len(image), PAGE)]
    blocks: list[bytes] = []
    for number, page in enumerate(pages):
        header = struct.pack(
            "<8I",
            0x0A32_4655,
            0x9E5D_5157,
            0x2000,
            FLASH_START + number * PAGE,
            PAGE,
            number,
            len(pages),
            FAMILY_RP2040,
        )
        blocks.append(header + page.ljust(476, b"\0") + struct.pack("<I", 0x0AB1_6F30))
    return b"".join(blocks)


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(uf2(with_checksum(Path(sys.argv[1]).read_bytes())))
