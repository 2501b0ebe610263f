# SPDX-License-Identifier: MIT
"""A plan may boot guests for each deployment or run, and only guests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.plan.test_alternating_plan import plan

from rtgauge.errors import InputError
from rtgauge.plan.make_plan import Overrides, load_plan
from rtgauge.record.alternation import alternation_of
from rtgauge.runner.measure_run import RunOptions, new_run, plan_of


def test_a_side_may_be_a_guest() -> None:
    assert plan("lab:stock M", "lab:rt").targets == ["lab:stock", "lab:rt"]
    with pytest.raises(InputError, match="not a guest"):
        plan("M", "lab:NO")


def test_only_guests_of_the_lab_are_booted_between_runs() -> None:
    with pytest.raises(InputError, match="guests of the lab"):
        plan("M", "lab:a", boot_between=True)
    booted = plan("lab:a", "lab:b", boot_between=True)
    resumed = new_run(booted, RunOptions(out=None, command=[]), "x")  # pyright: ignore[reportArgumentType]
    assert plan_of(resumed).by_boot
    known = alternation_of(resumed)
    assert known is not None
    assert known.boot_between


def test_only_guests_of_the_lab_are_booted() -> None:
    for targets in (None, ["local"], ["lab:debian", "ssh://board"]):
        with pytest.raises(InputError, match="guests of the lab"):
            load_plan("quick", Overrides(targets=targets, boot="each-deployment"))
    chosen = Overrides(targets=["lab:debian-rt"], deployments=["M", "MI"])
    assert load_plan("quick", replace(chosen, boot="each-deployment")).by_boot
    assert not load_plan("quick", chosen).by_boot


def test_a_plan_may_say_it(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(
        'targets = ["lab:debian"]\nboot = "each-deployment"\n[matrix]\ndeployment = ["M", "MI"]\n'
    )
    assert load_plan(str(file), Overrides()).by_boot
    file.write_text('boot = "magic"\n[matrix]\nload = "idle"\n')
    with pytest.raises(InputError, match="boot: 'magic' is not one of 'each-deployment'"):
        load_plan(str(file), Overrides())
    file.write_text('deployments-by = "boot"\n[matrix]\nload = "idle"\n')
    with pytest.raises(InputError, match='deployments-by no longer exists; write boot = "each-deployment"'):
        load_plan(str(file), Overrides())
