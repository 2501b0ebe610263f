# SPDX-License-Identifier: MIT
"""A step that another tool measures needs an extension that knows the tool."""

from __future__ import annotations

import pytest

from rtgauge.errors import InputError
from rtgauge.record.model import StepKey
from rtgauge.runner.step import measurer_of


def test_a_tool_that_no_extension_knows_is_refused():
    key = StepKey(
        probe="wakeup", parameters={}, load="idle", deployment="as-is", targets={"self": "local"}, repeat=1,
        tool="sundial",
    )  # fmt: skip
    with pytest.raises(InputError, match="sundial; install"):
        measurer_of(key)
