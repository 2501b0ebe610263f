# SPDX-License-Identifier: MIT
"""Defines the JSON document of `rtgauge selftest --json`."""

from __future__ import annotations

from dataclasses import asdict

from pydantic import Field

from rtgauge.extension import Document
from rtgauge.record.model import Model, SystemText
from rtgauge_ext.selftest.judge import KindResult, SelfTest, verdict_words


class SelfTestDocument(Model):
    """The document that `rtgauge selftest --json` prints.

    `passed`: of each kind, stalls came and all were found, 95 % were named, 95 % of these have the right
    size, and the median unattributed time is at most 5 us. `too_busy`: the machine was too busy to tell.
    """

    record: SystemText
    passed: bool
    conclusion: str = Field(default="", description="first line of the output on the terminal")
    too_busy: bool = False
    kinds: list[KindResult] = Field(default_factory=list[KindResult])
    others: int = Field(default=0, description="number of explained latencies that a stall did not cause")
    not_tried: dict[str, str] = Field(
        default_factory=dict[str, str], description="kind of stall -> why it was not tried"
    )
    invalid: dict[str, str] = Field(
        default_factory=dict[str, str], description="kind of stall -> why its measurement does not count"
    )


def selftest_document(record: str, result: SelfTest | None) -> SelfTestDocument:
    """Return the judgement as a document. A `result` of None (nothing explained) has not passed."""
    if result is None:
        return SelfTestDocument(record=record, passed=False)
    outcome = {
        "passed": result.passed,
        "too_busy": result.too_busy,
        "conclusion": verdict_words(result),
    }
    return SelfTestDocument.model_validate({"record": record, **outcome, **asdict(result)})


DOCUMENT = Document("what rtgauge selftest --json prints", (SelfTestDocument,))
