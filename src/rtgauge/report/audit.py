# SPDX-License-Identifier: MIT
"""An audit in the terminal, the worst difference first; and its mends as a script."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from rtgauge.report.text import printable

if TYPE_CHECKING:
    from rich.console import Console

    from rtgauge.system.audit import AuditDocument, Finding

ORDER = {"serious": 0, "moderate": 1, "minor": 2}
STYLE = {"serious": "bold red", "moderate": "yellow", "minor": "cyan"}
RESULT_STYLE = {"ok": "green", "unknown": "magenta", "not-applicable": "dim"}
SCRIPT_WIDTH = 100


def _differing(document: AuditDocument) -> list[Finding]:
    return sorted(
        (finding for finding in document.findings if finding.result == "differs"),
        key=lambda finding: ORDER[finding.severity],
    )


def _conclusion(document: AuditDocument) -> Text:
    """ "2 serious, 5 moderate, 9 minor differences from what preempt-rt needs; 3 unknown, 60 as wanted"."""
    differing = _differing(document)
    counts = {severity: sum(finding.severity == severity for finding in differing) for severity in ORDER}
    parts = [f"{count} {severity}" for severity, count in counts.items() if count]
    noun = "difference" if len(differing) == 1 else "differences"
    found = (
        f"{', '.join(parts)} {noun} from what {document.purpose} needs" if differing else "nothing differs"
    )
    rest = f"{document.counts['unknown']} unknown, {document.counts['ok']} as wanted"
    return Text(f"{found}; {rest}", style="bold red" if document.serious else "bold")


def _details(finding: Finding, *, brief: bool) -> list[tuple[str, str]]:
    where = f" ({', '.join(finding.where)})" if finding.where else ""
    rows = [("wanted", f"{finding.title} ({finding.wanted})"), ("found", f"{finding.found}{where}")]
    if not brief:
        rows += [("why", finding.why), ("costs", finding.how_much), ("source", finding.source)]
    return [*rows, ("mend", finding.mend)] if finding.result == "differs" else rows


def _word(finding: Finding) -> tuple[str, str]:
    """(severity or result, its style)."""
    if finding.result == "differs":
        return finding.severity, STYLE[finding.severity]
    return finding.result, RESULT_STYLE[finding.result]


def _print_details(finding: Finding, console: Console, *, brief: bool) -> None:
    console.print()
    console.print(Text.assemble(_word(finding), "  ", (printable(finding.rule), "bold")))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=10)
    table.add_column(overflow="fold", ratio=1)
    for name, text in _details(finding, brief=brief):
        table.add_row(Text(f"    {name}", style="dim"), Text(printable(text)))
    console.print(table)


def _print_short(document: AuditDocument, console: Console) -> None:
    """A line each of what is serious or moderate, the rest by name."""
    differing = _differing(document)
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        header_style="dim",
        show_header=any(finding.severity != "minor" for finding in differing),
    )
    table.add_column("differs", no_wrap=True)
    table.add_column("wanted", overflow="fold", ratio=3)
    table.add_column("found", overflow="fold", ratio=2)
    for finding in differing:
        if finding.severity != "minor":
            table.add_row(
                Text(*_word(finding)), Text(printable(finding.title)), Text(printable(finding.found))
            )
    console.print()
    console.print(table)
    rest = Table.grid(padding=(0, 2, 0, 0))
    rest.add_column(no_wrap=True, min_width=8)
    rest.add_column(overflow="fold", ratio=1)
    for name, names in (
        ("minor", [finding.rule for finding in differing if finding.severity == "minor"]),
        ("unknown", [finding.rule for finding in document.findings if finding.result == "unknown"]),
    ):
        if names:
            rest.add_row(
                Text(name, style=STYLE.get(name) or RESULT_STYLE[name]), Text(printable(", ".join(names)))
            )
    console.print(rest)
    if differing:
        console.print()
        console.print(
            Text(
                "why, and what to do: rtgauge audit --details; as commands: rtgauge audit --script",
                style="dim",
            )
        )


def print_audit(
    document: AuditDocument, console: Console, *, details: bool = False, everything: bool = False
) -> None:
    """The conclusion and the machine; then in short what differs, with `details` each difference with its
    reasons and its mend, with `everything` all rules.
    """
    chosen = "given by --for" if document.purpose_from == "asked" else "which runs now; --for names another"
    guest = {
        True: "a virtual machine",
        False: "not a virtual machine",
        None: "virtual machine or not: unknown",
    }[document.guest]
    console.print(_conclusion(document))
    console.print(
        Text(
            printable(f"{document.host} · Linux {document.kernel} · {document.architecture} · {guest}"),
            style="dim",
        )
    )
    console.print(Text(f"audit for {document.purpose} ({chosen})", style="dim"))
    if not details and not everything:
        _print_short(document, console)
        return
    for finding in _differing(document):
        _print_details(finding, console, brief=finding.severity == "minor" and not everything)
    for result in ("unknown", "ok", "not-applicable") if everything else ("unknown",):
        for finding in document.findings:
            if finding.result == result:
                _print_details(finding, console, brief=True)


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(printable(text), SCRIPT_WIDTH - 2)]


def mend_script(document: AuditDocument) -> str:
    """The mends of what differs as a shell script, the worst first; what is no command is a comment.

    Nothing in it is made by the audit itself.
    """
    differing = _differing(document)
    lines = [
        "#!/bin/sh",
        *_comment(
            f"What rtgauge audit found for {document.purpose} on {document.host}, Linux {document.kernel}."
        ),
    ]
    lines += _comment(
        "Read it before running it as root. What it sets lasts until the next boot; rtgauge does "
        "not put it back."
    )
    done: set[str] = set()
    for finding in differing:
        lines += ["", *_comment(f"{finding.severity}: {finding.title} ({finding.rule})")]
        if finding.commands or finding.boot is None:
            lines += _comment(finding.mend)
        lines += [command for command in finding.commands if command not in done]
        done |= {*finding.commands}
    words = dict.fromkeys(
        word for finding in differing if finding.boot is not None for word in finding.boot.split()
    )
    if words:
        lines += [
            "",
            *_comment(
                "Parameters of the kernel: add this to GRUB_CMDLINE_LINUX in /etc/default/grub, "
                "run update-grub, and boot:"
            ),
        ]
        lines += [f"#   {' '.join(words)}"]
    return "\n".join(lines) + "\n"
