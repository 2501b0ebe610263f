# SPDX-License-Identifier: MIT
"""The words for the change from one side to the other. `compare`, `gate`, `tune` and `fleet` use the same."""

from __future__ import annotations

from typing import Final

from rtgauge.record.model import VerdictWord

WORSE: Final = "worse"
MIXED: Final = "worse and better"
BETTER: Final = "better"
SAME: Final = "the same"
"""Both directions are ruled out."""
NOT_WORSE: Final = "not worse"
"""Only a change for the worse is ruled out."""
NOT_SHOWN: Final = "no difference shown"
"""Of a single quantile or test. The answer to the whole question is then CANNOT_TELL."""
CANNOT_TELL: Final = VerdictWord.CANNOT_TELL.value
FAILS: Final = VerdictWord.FAILS.value
NOT_MEASURED: Final = "could not measure"
UNFINISHED: Final = "unfinished"
