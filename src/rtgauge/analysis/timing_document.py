# SPDX-License-Identifier: MIT
"""What `rtgauge frequency --json` prints."""

from __future__ import annotations

from pydantic import Field

from rtgauge.analysis.frequency import Table
from rtgauge.analysis.sustained import Curve
from rtgauge.record.model import Model


class FrequencyDocument(Model):
    """The tables of latency, response and jitter, and the searches over the period."""

    tables: list[Table] = Field(default_factory=list[Table])
    sustained: list[Curve] = Field(default_factory=list[Curve])
