# SPDX-License-Identifier: MIT
"""Rewrites the command line before typer reads it: `help`, options with an optional value, `--deadline`, and
the short options of cyclictest and rtla.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence

from rtgauge.errors import InputError
from rtgauge.extension import extensions
from rtgauge.units import format_duration, parse_duration_ns

OPTIONAL = {"--page": r".*\.html?"}
"""Option of the core -> what its value looks like. Any other word after it is not its value."""
RESPONSES = frozenset({"watch", "path", "response", "periodic", "taskset"})
"""Commands and probes with response times."""
SHORT = frozenset({"run", "probe", "watch"})


UNITS = {"m": "min", "h": "h", "d": "d"}
"""Unit of cyclictest's -D -> ours. Without one, the number is in seconds."""


def _interval(text: str) -> str:
    return f"--interval={text}us" if text.isdigit() else f"--interval={text}"


def _priority(text: str) -> str:
    if text.isdigit() and int(text) > 99:
        raise InputError(
            f"-p {text}: -p sets the priority, 1 to 99; to set a period, give --interval {text}us"
        )
    return f"--priority={text}"


def _duration(text: str) -> str:
    number, unit = text.rstrip("smhd"), text[-1:]
    return f"--duration={number}{UNITS.get(unit, 's')}" if number.isdigit() else f"--duration={text}"


def _cpu(text: str) -> str:
    return f"--cpu={text}"


HABITS: dict[str, Callable[[str], str]] = {
    "-i": _interval,
    "-D": _duration,
    "-d": _duration,
    "-a": _cpu,
    "-c": _cpu,
    "-p": _priority,
}
"""Short option of cyclictest (-i -D -a -p) or rtla (-c -d) -> ours. Numbers have those tools' units."""
NOT_OURS = {
    "-m": "leave this out, because rtgauge locks its memory by default (--memory-lock)",
    "--mlockall": "leave this out, because rtgauge locks its memory by default (--memory-lock)",
    "-t": "leave this out, because rtgauge measures with a thread on each CPU; choose CPUs with --cpu",
    "-S": "leave this out, because rtgauge measures with a thread on each CPU; choose CPUs with --cpu",
    "--smp": "leave this out, because rtgauge measures with a thread on each CPU; choose CPUs with --cpu",
    "-q": "leave this out, because rtgauge prints only a summary at the end; add --json for output that "
    "programs can read",
    "-P": "give the priority with --priority and the policy with --policy",
    "-n": "leave this out, because rtgauge waits with clock_nanosleep by default (--timer)",
    "-l": "give how long to measure with --duration, or how many activations with --count",
    "-b": "to end the measurement at a latency above TIME, give --stop-at TIME",
    "-T": "to end the measurement at a latency above TIME, give --stop-at TIME",
    "-H": "leave this out, because rtgauge always keeps a histogram; write it with: rtgauge export --format "
    "parquet --windows",
}
"""Option of cyclictest or rtla that rtgauge does not have -> what does the same."""


def rewritten(arguments: Sequence[str]) -> list[str]:
    """Return the command line as typer should read it. The words after `--` stay as they are.

    Raises InputError if a short option of another tool has a wrong value, or does something else here.
    """
    words = list(arguments)
    if "--" in words:
        at = words.index("--")
        return [*rewritten(words[:at]), *words[at:]]
    if words[:1] == ["help"]:
        return [*words[1:], "--help"]
    if words[-1:] == ["help"] and len(words) < 4 and not words[0].startswith("-"):
        return [*words[:-1], "--help"]
    optional = OPTIONAL | {
        option: pattern for each in extensions() for option, pattern in each.optional_values.items()
    }
    result: list[str] = []
    rest = iter(range(len(words)))
    for at in rest:
        word, following = words[at], words[at + 1] if at + 1 < len(words) else None
        if word in optional:
            takes = following is not None and re.fullmatch(optional[word], following)
            result.append(f"{word}={following if takes else ''}")
        elif word == "--deadline" and following is not None:
            result.append(_deadline(following, words))
            takes = True
        elif word.startswith("--deadline="):
            result.append(_deadline(word.partition("=")[2], words))
            takes = False
        elif words[0] in SHORT and word in NOT_OURS:
            raise InputError(f"this command does not have the option {word}: {NOT_OURS[word]}")
        elif words[0] in SHORT and word in HABITS and following is not None:
            if words[0] == "watch" and word == "-p":
                result.append(f"--pid={following}")
            else:
                result.append(HABITS[word](following))
            takes = True
        else:
            result.append(word)
            takes = False
        if takes:
            next(rest)
    return result


def given_command() -> list[str]:
    """Return this process's command line as typer reads it, with long options only, so that a later command
    can repeat it with other values.
    """
    return ["rtgauge", *rewritten(sys.argv[1:])]


def _deadline(text: str, words: Sequence[str]) -> str:
    """Return the requirement that `--deadline` stands for: each response within the period if the command
    measures responses, otherwise each latency within half the period (Brown & Martin 2010, section 5).
    """
    try:
        deadline_ns = parse_duration_ns(text)
    except ValueError as error:
        raise InputError(f"--deadline: {error}") from None
    period = format_duration(deadline_ns)
    if RESPONSES & set(words[:2]):
        return f"--require=period={period} response<={period}"
    return f"--require=period={period} latency<={format_duration(deadline_ns // 2)}"
