# SPDX-License-Identifier: MIT
"""What a kernel was asked for at boot: the parameters of its command line."""

from __future__ import annotations

import re

MOST_CPUS = 65536


def parameters(cmdline: str) -> dict[str, str]:
    """Name -> value ("" where it has none); of several the last. The kernel does not tell `-` from `_` in a name: names are given with `_`.

    What follows `--` is for init. Quotes hold spaces together, as in the kernel's own reading.
    """
    found: dict[str, str] = {}
    for word in re.findall(r'(?:[^\s"]|"[^"]*(?:"|$))+', cmdline):
        if word == "--":
            break
        name, _, value = word.replace('"', "").partition("=")
        found[name.replace("-", "_")] = value
    return found


def cpu_list(text: str, possible: list[int]) -> list[int] | None:
    """The CPUs of a parameter such as isolcpus= or nohz_full=, those that the machine has; None where it is no list.

    The kernel's form (Documentation/admin-guide/kernel-parameters.rst, "cpu lists"): numbers, ranges, `N` for the last CPU, `all`, ranges with
    a stride (`0-15:2/4`: 2 of each 4); for isolcpus= words before it.
    """
    parts = text.split(",")
    while len(parts) > 1 and re.fullmatch(r"(?!all$)[a-z_]+", parts[0]):
        parts = parts[1:]
    last = max(possible, default=0)
    chosen: set[int] = set()
    for part in parts:
        if part == "all":
            chosen.update(possible)
            continue
        match = re.fullmatch(r"([0-9]{1,5}|N)(?:-([0-9]{1,5}|N)(?::([0-9]{1,5})/([0-9]{1,5}))?)?", part)
        if match is None:
            return None
        first = last if match[1] == "N" else int(match[1])
        end = first if match[2] is None else last if match[2] == "N" else int(match[2])
        used, group = (int(match[3]), int(match[4])) if match[3] else (1, 1)
        if end < first or group < 1 or used > group or end > MOST_CPUS:
            return None
        chosen.update(cpu for cpu in range(first, end + 1) if (cpu - first) % group < used)
    return sorted(chosen & set(possible)) if possible else sorted(chosen)


def mask_cpus(text: str, possible: list[int]) -> list[int] | None:
    """The CPUs of a parameter that is a mask (xenomai.supported_cpus=0x6); None where it is none."""
    match = re.fullmatch(r"(?:0[xX])?([0-9a-fA-F]{1,64})", text)
    return [cpu for cpu in possible if int(match[1], 16) >> cpu & 1] if match else None
