# SPDX-License-Identifier: MIT
"""Formats and ring-buffer pages made by hand, for the tests that read them."""

from __future__ import annotations

import base64
import struct

HEADER_PAGE = (
    "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t "
    "commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char "
    "data;\toffset:16;\tsize:4080;\tsigned:0;\n"
)
HEADER_EVENT = (
    "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray      "
    " :   32 bits\n\n"
    "\tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\tdata max "
    "type_len  == 28\n"
)
_COMMON = (
    "format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\tfield:unsigned "
    "char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\tfield:int "
    "common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
)
WAKING = (
    f"name: sched_waking\nID: 371\n{_COMMON}\tfield:char "
    "comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:pid_t "
    "pid;\toffset:24;\tsize:4;\tsigned:1;\n"
    "\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\tfield:int "
    "target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\n"
    'print fmt: "comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu\n'
)
HANDLER = (
    f"name: irq_handler_entry\nID: 150\n{_COMMON}\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n\n"
    'print fmt: "irq=%d name=%s", REC->irq, __get_str(name)\n'
)


def formats(**changes: object) -> dict[str, object]:
    """`trace_formats` of a machine with two CPUs and two events."""
    events = {"sched/sched_waking": WAKING, "irq/irq_handler_entry": HANDLER}
    return {
        "type": "trace_formats",
        "clock": "mono",
        "cpus": 2,
        "page_bytes": 4096,
        "header_page": HEADER_PAGE,
        "header_event": HEADER_EVENT,
        "events": events,
    } | changes


def waking(pid: int) -> bytes:
    """The record of a wake-up by task 77."""
    return struct.pack("<HBBi16siii", 371, 1, 2, 77, b"task", pid, 19, 1)


def handler(irq: int, name: bytes) -> bytes:
    """The record of a handler's start."""
    text = name + b"\0" * (4 - len(name) % 4)
    return struct.pack("<HBBiiI", 150, 1, 0, 77, irq, 16 | len(text) << 16) + text


def event(delta: int, record: bytes) -> bytes:
    """An event of the ring, `delta` ns after the one before."""
    if len(record) <= 28 * 4:
        return struct.pack("<I", len(record) // 4 | delta << 5) + record
    return struct.pack("<II", delta << 5, len(record) + 4) + record


def extend(delta: int, kind: int = 30) -> bytes:
    """A time extension (30) or an absolute time (31)."""
    return struct.pack("<II", kind | (delta & (1 << 27) - 1) << 5, delta >> 27)


def page(time_ns: int, *events: bytes, commit: int = 0, tail: bytes = b"") -> bytes:
    """A page of 4096 bytes; `commit`: flags beside the length; `tail`: right after the events."""
    data = b"".join(events)
    return (struct.pack("<QQ", time_ns, len(data) | commit) + data + tail).ljust(4096, b"\0")


def encoded(**pages: list[bytes]) -> dict[str, list[str]]:
    """cpu0=[...] -> `pages` of a moment."""
    return {
        cpu.removeprefix("cpu"): [base64.b64encode(raw).decode() for raw in raws]
        for cpu, raws in pages.items()
    }
