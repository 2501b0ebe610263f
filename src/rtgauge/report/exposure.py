# SPDX-License-Identifier: MIT
"""The exposure of a verdict in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.units import format_count, format_share, format_span, plural

if TYPE_CHECKING:
    from rtgauge.record.model import Exposure


def exposure_text(exposure: Exposure) -> str:
    """The exposure in one line."""
    measured = (
        f"{plural(exposure.activations, 'activation')} in {plural(exposure.runs, 'run')}, "
        f"{plural(exposure.boots, 'boot')}, {plural(exposure.conditions, 'condition')} and "
        f"{format_span(exposure.measured_s) if exposure.measured_s else 'an unknown time'}"
    )
    share = format_share(exposure.share_excluded)
    excluded = f"at {exposure.confidence:.0%} confidence at most {share} break the bound"
    if exposure.per_hour_excluded is not None:
        excluded += f", {_per_hour(exposure.per_hour_excluded)} an hour"
    if exposure.next_s is None or exposure.next_boards is None:
        return f"{measured}: {excluded}"
    seen = "without a violation" if not exposure.violations else "at the rate seen"
    return (
        f"{measured}: {excluded}; {format_share(exposure.next_share)} takes {format_span(exposure.next_s)} "
        f"{seen}, or as long as this on {format_count(exposure.next_boards)} boards"
    )


def _per_hour(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
