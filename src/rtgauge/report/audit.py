# SPDX-License-Identifier: MIT
"""What the terminal shows of an audit: what differs, the worst first, with why and how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from rtgauge.report.text import printable
from rtgauge.units import plural

if TYPE_CHECKING:
    from rich.console import Console

    from rtgauge.system.audit import AuditDocument, Finding

ORDER = {"serious": 0, "moderate": 1, "minor": 2}
STYLE = {"serious": "bold red", "moderate": "yellow", "minor": "cyan"}
RESULT_STYLE = {"ok": "green", "unknown": "magenta", "not-applicable": "dim"}


def _details(finding: Finding, *, brief: bool) -> list[tuple[str, str]]:
    where = f" ({', '.join(finding.where)})" if finding.where else ""
    rows = [("wanted", f"{finding.title} ({finding.wanted})"), ("found", f"{finding.found}{where}")]
    if not brief:
        rows += [("why", finding.why), ("costs", finding.how_much), ("source", finding.source)]
    return [*rows, ("mend", finding.mend)] if finding.result == "differs" else rows


def _print(finding: Finding, console: Console, *, brief: bool) -> None:
    word = finding.severity if finding.result == "differs" else finding.result
    style = STYLE[finding.severity] if finding.result == "differs" else RESULT_STYLE[finding.result]
    console.print(Text.assemble((word, style), "  ", (printable(finding.rule), "bold")))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=10)
    table.add_column(overflow="fold", ratio=1)
    for name, text in _details(finding, brief=brief):
        table.add_row(Text(f"    {name}", style="dim"), Text(printable(text)))
    console.print(table)


def print_audit(document: AuditDocument, console: Console, *, everything: bool = False) -> None:
    """The findings that differ, by severity; then what is unknown, in short; then how many there are of each kind.

    What is minor, unknown, right or does not apply comes without its reasons; the last two only with `everything`.
    """
    chosen = "as asked" if document.purpose_from == "asked" else "which runs now; --for names another"
    guest = {True: "a virtual machine", False: "not a virtual machine", None: "virtual machine or not: unknown"}[document.guest]
    console.print(Text(printable(f"{document.host} · Linux {document.kernel} · {document.architecture} · {guest}"), style="dim"))
    console.print(Text(f"audit for {document.purpose} ({chosen})", style="dim"))
    differing = sorted((finding for finding in document.findings if finding.result == "differs"), key=lambda finding: ORDER[finding.severity])
    for finding in differing:
        console.print()
        _print(finding, console, brief=finding.severity == "minor" and not everything)
    for result in ("unknown", "ok", "not-applicable") if everything else ("unknown",):
        for finding in (finding for finding in document.findings if finding.result == result):
            console.print()
            _print(finding, console, brief=True)
    counts = document.counts
    console.print()
    parts = [plural(sum(finding.severity == severity for finding in differing), f"{severity} difference") for severity in ORDER]
    parts += [f"{counts['unknown']} unknown", f"{counts['ok']} ok", f"{counts['not-applicable']} not applicable"]
    console.print(Text(", ".join(parts), style="bold red" if document.serious else "bold"))
