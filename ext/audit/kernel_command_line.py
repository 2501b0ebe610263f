# SPDX-License-Identifier: MIT
"""Reads the kernel's command line, and the CPU lists in its parameters."""

from __future__ import annotations

import re

MOST_CPUS = 65536


def parameters(cmdline: str) -> dict[str, str]:
    """Parse a command line into name -> value ("" without a value). The last of equal names counts.

    The kernel treats `-` and `_` in names as equal; here names have `_`. Words after `--` are for init.
    Quotes protect spaces, as in the kernel's own parser.
    """
    values: dict[str, str] = {}
    for word in re.findall(r'(?:[^\s"]|"[^"]*(?:"|$))+', cmdline):
        if word == "--":
            break
        name, _, value = word.replace('"', "").partition("=")
        values[name.replace("-", "_")] = value
    return values


def cpu_list(text: str, possible: list[int]) -> list[int] | None:
    """Return the machine's CPUs in a parameter such as isolcpus= or nohz_full=; None if it is not a list.

    The kernel's form (Documentation/admin-guide/kernel-parameters.rst, "cpu lists") has numbers, ranges, `N`
    for the last CPU, `all`, and ranges with a stride (`0-15:2/4`: 2 of each 4). In isolcpus=, flags precede
    the list. `possible`: the machine's CPUs; if it is empty, all CPUs of the list are returned.
    """
    parts = text.split(",")
    while len(parts) > 1 and re.fullmatch(r"(?!all$)[a-z_]+", parts[0]):
        parts = parts[1:]
    last = max(possible, default=0)
    cpus: set[int] = set()
    for part in parts:
        if part == "all":
            cpus.update(possible)
            continue
        match = re.fullmatch(r"([0-9]{1,5}|N)(?:-([0-9]{1,5}|N)(?::([0-9]{1,5})/([0-9]{1,5}))?)?", part)
        if match is None:
            return None
        first = last if match[1] == "N" else int(match[1])
        end = first if match[2] is None else last if match[2] == "N" else int(match[2])
        used, group = (int(match[3]), int(match[4])) if match[3] else (1, 1)
        if end < first or group < 1 or used > group or end > MOST_CPUS:
            return None
        cpus.update(cpu for cpu in range(first, end + 1) if (cpu - first) % group < used)
    return sorted(cpus & set(possible)) if possible else sorted(cpus)
