# SPDX-License-Identifier: MIT
"""Puts the result of a comparison into a word and a sentence, and suggests the command that shows more.

For single runs, the sentence speaks only of the two measured runs.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rtgauge.analysis.comparison_document import ComparisonFinding, QuantileDifference
from rtgauge.record.alternation import BLOCK, alternation_of
from rtgauge.record.reader import Record
from rtgauge.units import format_size, format_time, plural

if TYPE_CHECKING:
    from rtgauge.analysis.sides import Side

MOST_NAMED = 4
"""If more sides than this agree, the sentence gives only their number."""


@dataclass(frozen=True)
class ComparisonConclusion:
    """The answer of a comparison: a word, a sentence without a full stop, both sides' values, and the command
    that shows more.
    """

    outcome: ComparisonFinding
    text: str
    values: str | None = None
    next: str | None = None


OF_SINGLE_RUNS = {
    ComparisonFinding.WORSE: "higher",
    ComparisonFinding.MIXED: "higher and lower",
    ComparisonFinding.BETTER: "lower",
}
"""The words for single runs, which cannot show that a side is better or worse."""


def word(kind: ComparisonFinding, *, repeated: bool) -> str:
    """Return the words for a finding."""
    return kind.value if repeated else OF_SINGLE_RUNS.get(kind, kind.value)


def finding(row: QuantileDifference, *, alpha: float) -> ComparisonFinding:
    """Return what the difference of one quantile shows at level `alpha`. Lower values are better."""
    if row.p_different is None or row.p_not_within is None or row.p_not_beyond is None:
        return ComparisonFinding.UNKNOWN
    if row.difference_ns is None:
        return ComparisonFinding.UNKNOWN
    if row.p_not_within < alpha:
        return ComparisonFinding.SAME
    if min(row.p_not_beyond, row.p_different) < alpha:
        return ComparisonFinding.WORSE if row.difference_ns > 0 else ComparisonFinding.BETTER
    return ComparisonFinding.NOT_SHOWN


def worse(rows: Sequence[QuantileDifference], *, alpha: float) -> list[str]:
    """Return the sides that repeated runs show to be worse at a quantile."""
    repeated = (row for row in rows if row.repeated)
    return list(
        dict.fromkeys(row.side for row in repeated if finding(row, alpha=alpha) is ComparisonFinding.WORSE)
    )


def undetermined(sides: Sequence[str], rows: Sequence[QuantileDifference]) -> list[str]:
    """Return the sides that have no interval over repeated runs at any quantile."""
    conclusive = {row.side for row in rows if row.repeated and row.p_different is not None}
    return [side for side in sides if side not in conclusive]


def signed(ns: float | None) -> str:
    """Return a difference with its sign: "+12.3 us"."""
    return "unknown" if ns is None else f"{'+' if ns >= 0 else '-'}{format_time(abs(ns))}"


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _of_pair(findings: Sequence[ComparisonFinding]) -> ComparisonFinding:
    """Return what all quantiles of one pair show together."""
    different = set(findings) & {ComparisonFinding.WORSE, ComparisonFinding.BETTER}
    if len(different) == 2:
        return ComparisonFinding.MIXED
    if different:
        return different.pop()
    for weaker in (ComparisonFinding.NOT_SHOWN, ComparisonFinding.SAME):
        if weaker in findings:
            return weaker
    return ComparisonFinding.UNKNOWN


def _largest(rows: Sequence[QuantileDifference]) -> QuantileDifference:
    return max(rows, key=_size)


def _size(row: QuantileDifference) -> int:
    return abs(row.difference_ns or 0)


def _of_runs(row: QuantileDifference) -> str:
    """Return the beginning of a sentence about single runs; empty if both sides have several."""
    runs, of_baseline = len(row.side_runs_ns), len(row.baseline_runs_ns)
    if row.repeated:
        return ""
    if runs == of_baseline:
        return "In these two runs, "
    if runs < 2:
        return f"In one run of {row.side} and {of_baseline} runs of {row.baseline}, "
    return f"In {runs} runs of {row.side} and one run of {row.baseline}, "


def _in_pairs(row: QuantileDifference) -> str:
    """Return in how many pairs the difference has the sign of the whole; empty if there are no pairs."""
    if not row.paired:
        return ""
    both = list(zip(row.side_runs_ns, row.baseline_runs_ns, strict=True))
    larger = (row.difference_ns or 0) > 0
    alike = sum(ours != theirs and (ours > theirs) is larger for ours, theirs in both)
    return f", in {alike} of {plural(len(both), 'pair')}"


def _leading(row: QuantileDifference, alpha: float, under: str) -> str:
    """Return the largest difference: "p99 under idle 18 times as large (+9.05 ms, 95 %: +3.00 ms to
    +15.1 ms), in 6 of 6 pairs".
    """
    low, high = (("no limit" if ns is None else signed(ns)) for ns in (row.low_ns, row.high_ns))
    interval = f"{(1 - alpha) * 100:g} %: {low} to {high}"
    size = format_size(row.side_ns / row.baseline_ns - 1) if row.baseline_ns > 0 < row.side_ns else ""
    difference = signed(row.difference_ns)
    shown = f"{size} ({difference}, {interval})" if size else f"{difference} ({interval})"
    return f"{row.quantile}{under} {shown}{_in_pairs(row)}"


def _conclusion_of_pair(
    rows: Sequence[QuantileDifference],
    findings: Sequence[ComparisonFinding],
    alpha: float,
    within: str,
    under: str,
) -> ComparisonConclusion:
    """Return the conclusion of a single pair. The largest difference comes first."""
    side, baseline, runs = rows[0].side, rows[0].baseline, _of_runs(rows[0])
    by_finding: dict[ComparisonFinding, list[QuantileDifference]] = {}
    for row, of_row in zip(rows, findings, strict=True):
        by_finding.setdefault(of_row, []).append(row)
    at = {kind: _and([row.quantile for row in rows_of_kind]) for kind, rows_of_kind in by_finding.items()}
    whole = _of_pair(findings)
    if whole is ComparisonFinding.UNKNOWN:
        why = next((row.no_interval for row in rows if row.no_interval), None)
        measured = ", ".join(f"{row.quantile} {signed(row.difference_ns)}" for row in rows)
        why = f" ({why})" if why else ""
        text = (
            f"the runs do not show whether {side} differs from {baseline}{under}{why}; the measured "
            f"difference is {measured}"
        )
        return ComparisonConclusion(whole, text)
    same = (
        f"; the same within {within} at {at[ComparisonFinding.SAME]}" if ComparisonFinding.SAME in at else ""
    )
    nothing = (
        f"; no difference shown at {at[ComparisonFinding.NOT_SHOWN]}"
        if ComparisonFinding.NOT_SHOWN in at
        else ""
    )
    shown = sorted(
        (
            row
            for kind in (ComparisonFinding.WORSE, ComparisonFinding.BETTER)
            for row in by_finding.get(kind, [])
        ),
        key=_size,
        reverse=True,
    )
    if shown:
        first, *others = shown
        figures = [
            _leading(first, alpha, under),
            *(f"{signed(row.difference_ns)} at {row.quantile}" for row in others),
        ]
        values = (
            f"{first.quantile}: {baseline} {format_time(first.baseline_ns)} -> {side} "
            f"{format_time(first.side_ns)}"
        )
        return ComparisonConclusion(whole, f"{runs}{side}: {'; '.join(figures)}{same}{nothing}", values)
    if whole is ComparisonFinding.SAME:
        both = f"{side} and {baseline} are the same within {within}{under}"
        return ComparisonConclusion(whole, f"{runs}{both} at {at[ComparisonFinding.SAME]}")
    both = f"{runs}{side} and {baseline} do not clearly differ"
    between = f"{both}{under} at {at[ComparisonFinding.NOT_SHOWN]}"
    return ComparisonConclusion(whole, f"{between}{same or f'; they may still differ by more than {within}'}")


def _common(labels: Sequence[str]) -> list[str]:
    """Return the parts that occur in every label."""
    parts = [label.split(", ") for label in labels]
    return [part for part in parts[0] if all(part in other for other in parts)]


def _several(
    pairs: Mapping[tuple[str, str], list[QuantileDifference]], alpha: float, within: str
) -> ComparisonConclusion:
    """Return the conclusion of several pairs: the worst first, single runs last."""
    sides, baselines = [side for side, _ in pairs], list(dict.fromkeys(baseline for _, baseline in pairs))
    of_sides = _common(sides)
    of_baselines = _common(baselines) if len(baselines) > 1 else [baselines[0]]
    groups: dict[tuple[bool, ComparisonFinding], list[tuple[int, str]]] = {}
    every_repeated = [rows[0].repeated for rows in pairs.values()]
    for (side, _), rows in pairs.items():
        repeated = rows[0].repeated
        findings = [finding(row, alpha=alpha) for row in rows]
        whole = _of_pair(findings)
        name = " ".join(part for part in side.split(", ") if part not in of_sides or part == side)
        group = groups.setdefault((repeated, whole), [])
        each = list(zip(rows, findings, strict=True))
        worse_rows = [row for row, of_row in each if of_row is ComparisonFinding.WORSE]
        better_rows = [row for row, of_row in each if of_row is ComparisonFinding.BETTER]
        shown = [_largest(changed_rows) for changed_rows in (worse_rows, better_rows) if changed_rows]
        if shown:
            name += f" ({_and([f'{signed(row.difference_ns)} at {row.quantile}' for row in shown])})"
        group.append((-max((abs(row.difference_ns or 0) for row in shown), default=0), name))
    clauses: list[str] = []
    for repeated, kind in itertools.product((True, False), ComparisonFinding):
        members = [text for _, text in sorted(groups.get((repeated, kind), []), key=lambda member: member[0])]
        if not members:
            continue
        words = "unknown" if kind is ComparisonFinding.UNKNOWN else word(kind, repeated=repeated)
        words += f" within {within}" if kind is ComparisonFinding.SAME else ""
        words += " in single runs" if not repeated and any(every_repeated) else ""
        more = f" and {len(members) - MOST_NAMED} more" if len(members) > MOST_NAMED else ""
        clauses.append(f"{len(members)} {words}: {', '.join(members[:MOST_NAMED])}{more}")
    who = ", ".join(of_sides) or f"{len(pairs)} sides"
    against = f"{who} against {', '.join(of_baselines)}" if of_baselines else f"{len(pairs)} pairs"
    sentence = f"{against}: {'; '.join(clauses)}"
    shown = {kind for repeated, kind in groups if repeated or not any(every_repeated)}
    outcome = next(kind for kind in MOST_SERIOUS if kind in shown)
    return ComparisonConclusion(outcome, sentence if any(every_repeated) else f"In single runs, {sentence}")


MOST_SERIOUS = (
    *(ComparisonFinding.WORSE, ComparisonFinding.MIXED, ComparisonFinding.BETTER),
    *(ComparisonFinding.NOT_SHOWN, ComparisonFinding.SAME, ComparisonFinding.UNKNOWN),
)
"""The findings, the one that decides the word for several pairs first."""


def conclude(
    rows: Sequence[QuantileDifference],
    *,
    alpha: float,
    within_ns: int,
    load: str | None = None,
    repeat: str | None = None,
) -> ComparisonConclusion:
    """Return the answer of a comparison, from its quantile differences with corrected p-values. Runs of a
    side that has only one cannot tell.

    `load`: the load of all sides, or None. `repeat`: the command to suggest if a side has a single run.
    """
    if not rows:
        return ComparisonConclusion(
            ComparisonFinding.UNKNOWN, "the sides cannot be compared, because one of them measured nothing"
        )
    within = f"{within_ns / 1_000:g} us"
    pairs: dict[tuple[str, str], list[QuantileDifference]] = {}
    for row in rows:
        pairs.setdefault((row.side, row.baseline), []).append(row)
    if len(pairs) == 1:
        findings = [finding(row, alpha=alpha) for row in rows]
        under = "" if load is None else f" under {load}"
        conclusion = _conclusion_of_pair(rows, findings, alpha, within, under)
    else:
        conclusion = _several(pairs, alpha, within)
    if conclusion.outcome is ComparisonFinding.NOT_SHOWN or not any(row.repeated for row in rows):
        conclusion = replace(conclusion, outcome=ComparisonFinding.UNKNOWN)
    if all(row.repeated for row in rows):
        return conclusion
    if repeat is None:
        return replace(conclusion, text=f"{conclusion.text}; with one run per side, this may be chance")
    return replace(conclusion, next=f"this may be chance; repeat the runs to find out: {repeat}")


REPEATS = 5
MOST_COMMANDS = 2
"""If more different commands than this are needed, none is listed."""


def _words(record: Record) -> list[str]:
    """Return the command that made the record, without its repeats; `rtgauge run` for an imported one."""
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
    """Return the command that measures several runs of every side; None if none is needed or known.

    For sides of one record, the command alternates between them. For several records, it measures each again
    by turns, with one label per side.
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
        f"run this on each machine {REPEATS} times, alternately:  {again}; then compare the records, with "
        f"one NAME per side: rtgauge compare --side NAME=RECORD ..."
    )
