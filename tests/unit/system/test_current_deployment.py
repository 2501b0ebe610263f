# SPDX-License-Identifier: MIT
"""What `deploy apply` holds, from journals that do not exist."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rtgauge.system.deployment.current import JOURNAL, Held, find_held, name_of, run_id
from rtgauge.target.file_batch import Files


def line(**more: Any) -> str:
    return (
        json.dumps({"state": "s", "owner": "held", "run": "deploy-MI", "boot": "b", "path": "/proc/x"} | more)
        + "\n"
    )


def held_by(*lines: str) -> Held | None:
    return find_held(Files({JOURNAL: {"text": "".join(lines)}}), "b")


def test_what_is_held_is_found_with_its_group() -> None:
    group = "/sys/fs/cgroup/cpuset/rtgauge-isolated"
    assert held_by(line(), line(path=f"group:{group}"), line(path="/proc/y", owner="run")) == Held(
        "MI", 2, group
    )


def test_what_is_over_or_of_another_boot_is_not_held() -> None:
    assert held_by(line(state="o"), line(boot="earlier"), line(owner="run"), "#" + line(), "{torn") is None


def test_names_come_back_from_their_run() -> None:
    for name in ("MI", "c-states=off,isolate=1-3"):
        assert name_of(run_id(name)) == name


@given(
    st.dictionaries(
        st.just(JOURNAL),
        st.one_of(
            st.none(),
            st.text(),
            st.dictionaries(st.sampled_from(["text", "error"]), st.one_of(st.none(), st.text())),
        ),
    )
)
def test_any_journal_is_survived(files: dict[str, Any]) -> None:
    find_held(Files(files), None)
