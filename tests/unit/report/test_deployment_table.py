# SPDX-License-Identifier: MIT
"""The page's table of a step's deployment: what was made, refused, moved and put back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rtgauge.record.model import DeploymentReport, SettingMade
from rtgauge.record.reader import Record
from rtgauge.report.change_tables import PUT_BACK, deployment_table
from rtgauge.report.record_page import html
from rtgauge.report.table import tone_of
from tests.support.messages import missing
from tests.support.records import Shape, write_record

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "<script>alert(1)</script>"
MADE = SettingMade(path="/proc/sys/kernel/timer_migration", old="1", wanted="0", now="0", put_back="restored")
REFUSED = SettingMade(path="/proc/irq/36/smp_affinity_list", old="0-1", wanted="0", now="0-1", error="EPERM")


def report(*settings: SettingMade, **more: object) -> DeploymentReport:
    return DeploymentReport.model_validate(
        {"name": "MI", "words": "c-states=off,isolate=all", "settings": list(settings), **more}
    )


def test_made_refused_and_moved_are_counted():
    table = deployment_table(
        report(MADE, REFUSED, moved=110, not_moved=["kthreadd: EINVAL"], not_moved_count=40, isolated="1")
    )
    assert not missing(table.summary, "1 setting", "1 refused", "110 tasks moved", "40 could not be moved")
    assert "not all" not in table.summary
    assert [[(cell, tone_of(cell)) for cell in row[3:]] for row in table.settings.rows] == [
        [("set", ""), ("yes", "")],
        [("refused: the kernel manages this interrupt itself", "alarm"), ("it was not changed", "")],
    ]
    assert table.notes == ["rtgauge reserved CPU 1 for measuring."]


@pytest.mark.parametrize("action", ["failed", "left-changed-by-other", "left-under-another", None])
def test_what_was_not_restored_is_shown(action: str | None):
    table = deployment_table(report(MADE.model_copy(update={"put_back": action})))
    assert table.left
    put_back = table.settings.rows[0][-1]
    assert (put_back, tone_of(put_back)) == (PUT_BACK[action], "alarm")
    assert table.summary.endswith("not all put back")


def test_a_value_of_which_the_kernel_made_another_is_shown():
    table = deployment_table(
        report(MADE.model_copy(update={"error": "differs", "now": "7", "put_back": "restored"}))
    )
    assert table.settings.rows[0][3] == "refused: the kernel set another value (7)"
    assert not table.left


def test_a_boot_for_the_deployment_is_shown():
    table = deployment_table(
        report(
            by="boot",
            boot_words="nosmt nohz_full=2",
            recognised="MI",
            isolated="2",
            not_in_effect=["nohz_full=2"],
        )
    )
    booted, lacking, reserved = table.notes
    assert not missing(booted, "booted", "nosmt nohz_full=2", "deployment MI")
    assert not missing(lacking, "without nohz_full=2")
    assert not missing(reserved, "CPU 2")
    assert "without any parameters" in deployment_table(report(by="boot", boot_words="")).notes[0]


def page_with(folder: Path, deployment: DeploymentReport | None) -> str:
    record = Record.open(write_record(folder, Shape(loads=("idle",))))
    record.steps[0] = record.steps[0].model_copy(update={"deployment": deployment})
    return html(record)


def test_the_page_shows_it_folded_and_escaped(tmp_path: Path):
    hostile = MADE.model_copy(update={"path": HOSTILE, "old": HOSTILE})
    page = page_with(
        tmp_path, report(MADE, REFUSED, hostile, not_moved=[HOSTILE], not_moved_count=40, not_put_back=[])
    )
    part = page[page.index('<section id="deployments"') :]
    assert part.index("<details><summary>") < part.index("timer_migration") < part.index("</details>")
    assert HOSTILE not in page
    assert "&lt;script&gt;" in part
    assert "<li>and 39 more</li>" in part


def test_what_is_left_is_not_folded_away(tmp_path: Path):
    page = page_with(tmp_path, report(MADE, not_put_back=["/sys/x: it is busy"]))
    assert "<details open><summary>" in page
    assert "Not put back: /sys/x: it is busy" in page


def test_without_a_deployment_there_is_no_such_part(tmp_path: Path):
    assert 'id="deployments"' not in page_with(tmp_path, None)
