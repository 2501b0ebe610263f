# SPDX-License-Identifier: MIT
"""Prints which settings were restored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from rtgauge.report.text import printable
from rtgauge.system.deployment.apply import WHY


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print a line whole; only the terminal itself wraps it."""
    console.print(Text(printable(text), style=style), soft_wrap=True)


def print_put_back(answers: Iterable[Mapping[str, Any]], console: Console) -> bool:
    """Print the outcome of each setting; return whether one of them could not be restored."""
    counts: Counter[str] = Counter()
    failed = False
    for answer in answers:
        action = str(answer.get("action"))
        counts[action] += 1
        if answer.get("error") is not None:
            failed = True
            reason = WHY.get(str(answer.get("error")), answer.get("error"))
            print_line(
                console, f"{answer.get('path') or answer.get('text') or 'the journal'}: {reason}", "red"
            )
        elif action.startswith("left-"):
            print_line(console, f"{answer.get('path')}: {action.replace('-', ' ')} ({answer.get('now')})")
    actions = ", ".join(f"{count} {action}" for action, count in sorted(counts.items()))
    print_line(console, actions or "nothing had to be restored")
    return failed
