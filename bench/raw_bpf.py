# SPDX-License-Identifier: MIT
"""The least that a BPF program can record at the kernel's raw tracepoints: the clock and one argument, 32
bytes each time, into an array of each CPU. Only event_cost.py uses it, to compare its cost with ftrace's.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

SYS_BPF = 321  # x86-64
MAP_CREATE, PROG_LOAD, RAW_TRACEPOINT_OPEN = 0, 5, 17
PERCPU_ARRAY, RAW_TRACEPOINT = 6, 17
LOOKUP, KTIME_GET_NS = 1, 5
RING_BYTES, RECORD_BYTES = 16 * 1024, 32
UNUSED = bytes(64)
"""The kernel takes a longer structure if the rest is zero."""


def _bpf(command: int, attributes: bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    text = attributes + UNUSED
    found = libc.syscall(SYS_BPF, command, ctypes.create_string_buffer(text, len(text)), len(text))
    if found < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"bpf command {command}: {os.strerror(error)}")
    return found


def _step(code: int, to: int = 0, of: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, to | of << 4, offset, value)


def _program(array: int) -> bytes:
    """r6: the arguments, r7: the array's value, whose first word counts the bytes so far."""
    return b"".join(
        [
            _step(0xBF, 6, 1),  # r6 = r1
            _step(0x62, 10, 0, -4, 0),  # the key 0, on the stack
            _step(0xBF, 2, 10),
            _step(0x07, 2, 0, 0, -4),
            _step(0x18, 1, 1, 0, array),
            _step(0),
            _step(0x85, value=LOOKUP),
            _step(0x15, 0, 0, 13, 0),  # to the end if there is none
            _step(0xBF, 7, 0),
            _step(0x85, value=KTIME_GET_NS),
            _step(0x79, 1, 7),  # r1: the bytes so far
            _step(0xBF, 2, 1),
            _step(0x57, 2, value=RING_BYTES - RECORD_BYTES),
            _step(0xBF, 3, 7),
            _step(0x0F, 3, 2),  # r3: where the record begins
            _step(0x7B, 3, 0, 16),  # the clock
            _step(0x79, 4, 6),
            _step(0x7B, 3, 4, 24),  # the argument, twice
            _step(0x7B, 3, 4, 32),
            _step(0x07, 1, value=RECORD_BYTES),
            _step(0x7B, 7, 1),
            _step(0xB7, 0),
            _step(0x95),
        ]
    )


class RawBpf:
    """A loaded program, which records while it is attached."""

    def __init__(self) -> None:
        array = _bpf(MAP_CREATE, struct.pack("<IIIII", PERCPU_ARRAY, 4, RING_BYTES + 64, 1, 0))
        code, licence = _program(array), ctypes.create_string_buffer(b"GPL")
        steps = ctypes.create_string_buffer(code, len(code))
        about = (RAW_TRACEPOINT, len(code) // 8, ctypes.addressof(steps), ctypes.addressof(licence))
        self.program = _bpf(PROG_LOAD, struct.pack("<IIQQ", *about))
        self.attached: list[int] = []

    def attach(self, names: Iterable[str]) -> None:
        """Record at these tracepoints. Raises OSError."""
        for name in names:
            text = ctypes.create_string_buffer(name.encode())
            attributes = struct.pack("<QII", ctypes.addressof(text), self.program, 0)
            self.attached.append(_bpf(RAW_TRACEPOINT_OPEN, attributes))

    def detach(self) -> None:
        """Record no longer."""
        for descriptor in self.attached:
            os.close(descriptor)
        self.attached = []
