# SPDX-License-Identifier: MIT
"""Prints an audit in the terminal, with the worst difference first, and writes the remedies as a script."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from rtgauge.record.facts import UNKNOWN
from rtgauge.report.labelled_lines import prose_width
from rtgauge.report.table import Cell, Column, Table, Tone, texts
from rtgauge.report.terminal_table import print_text, rich_table
from rtgauge.report.text import printable
from rtgauge_ext.audit.audit import AuditDocument, Finding

STYLE = {"serious": "bold red", "moderate": "yellow", "minor": "cyan"}
TONES: dict[str, Tone] = {"serious": "alarm", "moderate": "doubt"}
RESULT_STYLE = {"ok": "green", "unknown": "magenta", "not-applicable": "dim"}
SCRIPT_WIDTH = 100


def print_pairs(
    rows: Iterable[tuple[str | Text, str]], console: Console, width: int, *, indent: int = 2
) -> None:
    """Print names on the left, `width` wide, and values on the right, wrapped between words. A value with a
    word that does not fit there begins below its name.
    """
    gap = 2
    for name, text in rows:
        label = Text(printable(name), style="dim") if isinstance(name, str) else name
        value, style = printable(text), "dim italic" if text == UNKNOWN else ""
        start = indent + width + gap
        longest = max(map(len, value.split()), default=0)
        below = len(label.plain) > width or start + longest > prose_width(console)
        if start + longest > prose_width(console):
            start = indent + gap
        room = max(1, prose_width(console) - start)
        lines = textwrap.wrap(value, room, break_long_words=False, break_on_hyphens=False) or [""]
        first = Text.assemble(" " * indent, label)
        if not below:
            first = Text.assemble(first, " " * (width + gap - len(label.plain)), (lines.pop(0), style))
        console.print(first, soft_wrap=True)
        for line in lines:
            console.print(Text.assemble(" " * start, (line, style)), soft_wrap=True)


def _details(finding: Finding, *, brief: bool) -> list[tuple[str, str]]:
    where = f" ({', '.join(finding.where)})" if finding.where else ""
    rows = [("wanted", f"{finding.title} ({finding.wanted})"), ("found", f"{finding.found}{where}")]
    if not brief:
        rows += [("why", finding.why), ("costs", finding.how_much), ("source", finding.source)]
    return [*rows, ("remedy", finding.remedy)] if finding.result == "differs" else rows


def _word(finding: Finding) -> tuple[str, str]:
    """Return a finding's (severity or result, style)."""
    if finding.result == "differs":
        return finding.severity, STYLE[finding.severity]
    return finding.result, RESULT_STYLE[finding.result]


def _print_details(finding: Finding, console: Console, *, brief: bool) -> None:
    console.print()
    console.print(Text.assemble(_word(finding), "  ", (printable(finding.rule), "bold")))
    print_pairs(_details(finding, brief=brief), console, 8)


def _print_short(document: AuditDocument, console: Console) -> None:
    """Print a line for each serious or moderate difference, and name the others."""
    differing = document.differing
    rows: list[list[str]] = [
        [Cell(finding.severity, TONES[finding.severity]), finding.title, finding.found]
        for finding in differing
        if finding.severity != "minor"
    ]
    console.print()
    if rows:
        columns = [Column("differs", "nowrap"), *texts("wanted", "found")]
        console.print(rich_table(Table("", columns, rows), console.width))
    minor = [finding.rule for finding in differing if finding.severity == "minor"]
    unknown = [finding.rule for finding in document.findings if finding.result == "unknown"]
    named = (("minor", STYLE["minor"], minor), ("unknown", RESULT_STYLE["unknown"], unknown))
    print_pairs(
        [(Text(name, style), ", ".join(rules)) for name, style, rules in named if rules], console, 8, indent=0
    )
    if differing:
        console.print()
        hint = (
            "see why, and what to do, with: rtgauge audit --details; get commands with: rtgauge audit "
            "--script"
        )
        print_text(console, hint, style="dim")


def print_audit(
    document: AuditDocument, console: Console, *, details: bool = False, everything: bool = False
) -> None:
    """Print the conclusion and the machine, then a line for each serious or moderate difference, and the
    names of the minor and unknown rules.

    `details`: print the differences and the unknown rules in full instead. `everything`: print every rule in
    full.
    """
    chosen = (
        "given with --for"
        if document.purpose_from == "asked"
        else "the running kernel; choose another with --for"
    )
    guest = "may be a virtual machine" if document.guest is None else "a virtual machine"
    guest = "not a virtual machine" if document.guest is False else guest
    console.print(Text(document.conclusion, style="bold red" if document.serious else "bold"))
    machine = f"{document.host} · Linux {document.kernel} · {document.architecture} · {guest}"
    print_text(console, machine, style="dim")
    print_text(console, f"audit for {document.purpose} ({chosen})", style="dim")
    if not details and not everything:
        _print_short(document, console)
        return
    for finding in document.differing:
        _print_details(finding, console, brief=finding.severity == "minor" and not everything)
    for result in ("unknown", "ok", "not-applicable") if everything else ("unknown",):
        for finding in document.findings:
            if finding.result == result:
                _print_details(finding, console, brief=True)


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(printable(text), SCRIPT_WIDTH - 2)]


def mend_script(document: AuditDocument) -> str:
    """Return the remedies as a shell script, the worst difference first. A remedy without a command becomes a
    comment.
    """
    differing = document.differing
    about = (
        f"rtgauge audit checked {document.host} (Linux {document.kernel}) by its rules for "
        f"{document.purpose}. Each comment names a wanted state that this machine lacks."
    )
    care = "Read this script before you run it as root. Its changes last until the next boot; rtgauge does "
    lines = ["#!/bin/sh", *_comment(about), *_comment(f"{care}not undo them.")]
    written: set[str] = set()
    for finding in differing:
        lines += ["", *_comment(f"{finding.severity}, wanted: {finding.title} ({finding.rule})")]
        if finding.commands or finding.boot is None:
            lines += _comment(finding.remedy)
        lines += [command for command in finding.commands if command not in written]
        written |= {*finding.commands}
    boots = (finding.boot.split() for finding in differing if finding.boot is not None)
    if words := dict.fromkeys(itertools.chain.from_iterable(boots)):
        where = "add these to GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub, and reboot:"
        lines += ["", *_comment(f"Kernel parameters: {where}"), f"#   {' '.join(words)}"]
    return "\n".join(lines) + "\n"
