# SPDX-License-Identifier: MIT
"""The command that tells whether a difference of single runs is more than chance: repeats, by turns."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rtgauge.record.alternation import BLOCK, alternation_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.analysis.sides import Side
    from rtgauge.record.reader import Record

REPEATS = 5
MOST_COMMANDS = 2
"""More different commands are not listed."""


def _words(record: Record) -> list[str]:
    """The command that made the record, without what it said of repeats; `rtgauge run` for an imported
    one.
    """
    command = record.run.command
    if command[1:2] not in (["run"], ["probe"], ["watch"]):
        return ["rtgauge", "run"]
    words, kept = command[1:], ["rtgauge"]
    while words:
        word = words.pop(0)
        if word in ("--repeats", "--pairs"):
            words = words[1:]
        elif not word.startswith(("--repeats=", "--pairs=")):
            kept.append(word)
    return kept


def repeat_command(pairs: Sequence[tuple[Side, Side]]) -> str | None:
    """What to run so that every side has several runs; None if each has, or if no command is known.

    The repeats of one record are measured by turns. Several records are made again by turns, and get one
    label a side.
    """
    single = {side.record.path: side.record for pair in pairs for side in pair if len(side.runs) < 2}
    if not single:
        return None
    records = {record.path for pair in pairs for side in pair for record in side.records}
    commands = [_words(record) for record in single.values()]
    if len(records) == 1:
        (words,) = commands
        (record,) = single.values()
        more = ["--repeats", str(REPEATS)] if alternation_of(record.run) is None else ["--pairs", str(BLOCK)]
        return shlex.join([*words, *more]) if words[1] == "run" else None
    distinct = list(dict.fromkeys(shlex.join(words) for words in commands))
    again = " and ".join(distinct) if len(distinct) <= MOST_COMMANDS else "each command"
    return (
        f"on each, {REPEATS} times, alternately:  {again}; then, with one NAME for all records of a side: "
        "rtgauge compare --label NAME=RECORD ..."
    )
