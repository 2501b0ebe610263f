# SPDX-License-Identifier: MIT
"""Makes tables of the settings that can be tried on a machine."""

from __future__ import annotations

from collections.abc import Sequence

from rtgauge.report.table import Column, Table
from rtgauge_ext.tune.candidates import NEVER, Offer


def offer_tables(offer: Offer, *, details: bool) -> list[Table]:
    """Return two tables: the settings that would be tried, with their costs, and the settings that would not,
    with the reasons. `details` adds the reason, the source, the advice against, and the settings that need
    another kernel.
    """
    rows = [
        [
            each.id,
            each.found,
            f"{each.rule.title}. {each.rule.why}" if details else each.rule.title,
            each.trial.cost,
            *([f"{each.rule.source}{_against(each.trial.against)}"] if details else []),
        ]
        for each in offer.candidates
    ]
    columns = [
        Column("setting"),
        Column("found"),
        Column("wanted", "prose"),
        Column("costs", "prose", drop_rank=1),
        *([Column("source", "prose")] if details else []),
    ]
    count = len(rows)
    tried = Table(f"{count} settings to try" if count != 1 else "1 setting to try", columns, rows)
    others = Table(
        "Not tried",
        [Column("setting"), Column("why", "prose")],
        [
            [each.rule.id, each.why]
            for each in offer.not_tried
            if details or each.rule.trial is not None or each.rule.boot is not None
        ],
        [
            *([stopped(offer.daemons)] if offer.daemons else []),
            "With --boot each-deployment, rtgauge tries settings that need a boot on a guest of the lab.",
            f"Never touched: {', '.join(NEVER)}.",
        ],
    )
    return [tried, others]


def stopped(daemons: Sequence[str]) -> str:
    """Return what happens to the daemons that would set a value back."""
    return f"These daemons undo settings, so trials of such settings stop them: {', '.join(daemons)}."


def _against(advice: str | None) -> str:
    return "" if advice is None else f". Against it: {advice}"
