# SPDX-License-Identifier: MIT
"""The state of a study in a record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.errors import RecordError
from rtgauge.plan.study_state import study_of
from rtgauge.record.model import Run


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_a_damaged_record_of_a_study_is_one_error(kept: object) -> None:
    run = Run(id="x", created="", state="complete", rtgauge="0", command=[], plan={"study": kept}, targets=[])
    if kept is None:
        assert study_of(run) is None
    else:
        with pytest.raises(RecordError, match="damaged"):
            study_of(run)
