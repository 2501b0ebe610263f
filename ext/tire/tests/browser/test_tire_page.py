# SPDX-License-Identifier: MIT
"""The tire's chapter in headless Chromium: figures that show what was measured."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from tests.browser.driver import browser, console, scheme, viewport

from ext.tire.tests.synthetic import Machine
from ext.tire.tests.tire_records import write_study
from rtgauge.record.reader import Record
from rtgauge.report.record_page import render
from rtgauge_ext.tire.page.tire_presenter import results_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

    from rtgauge_ext.tire.analysis.tire_results import TireResults

pytestmark = pytest.mark.browser
READY = "return document.documentElement.dataset.ready"


@pytest.fixture(scope="module", name="chrome")
def a_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with browser(tmp_path_factory.mktemp("profile")) as chrome:
        yield chrome


@pytest.fixture(scope="module", name="study")
def a_study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TireResults]:
    folder = tmp_path_factory.mktemp("study")
    record = Record.open(write_study(folder, Machine()))
    render(record, folder / "page.html")
    (results,) = results_of(record)
    return folder / "page.html", results


def visit(chrome: Chrome, page: Path, width: int = 1280, theme: str = "light") -> None:
    chrome.get("about:blank")
    viewport(chrome, width)
    scheme(chrome, theme)
    features = [{"name": "prefers-color-scheme", "value": theme}]
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    console(chrome)
    chrome.get(page.as_uri())
    WebDriverWait(chrome, 120).until(lambda c: c.execute_script(READY))


def marks(chrome: Chrome, figure: str, role: str) -> list[str]:
    """What a reader hears of each mark of a figure."""
    script = (
        "return [...document.querySelectorAll(arguments[0])].map((mark) => mark.getAttribute('aria-label'))"
    )
    return chrome.execute_script(script, f'[data-figure="{figure}"] [aria-roledescription="{role}"]')


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_every_figure_is_drawn_and_nothing_is_complained_of(
    chrome: Chrome, study: tuple[Path, TireResults], width: int, theme: str
) -> None:
    visit(chrome, study[0], width, theme)
    assert console(chrome) == []
    charts = chrome.find_elements(By.CSS_SELECTOR, '[data-figure^="tire-"]')
    assert len(charts) > 8
    for chart in charts:
        assert chart.find_elements(By.TAG_NAME, "svg"), chart.get_attribute("aria-label")
        assert chart.size["width"] <= width
    assert chrome.execute_script("return document.documentElement.scrollWidth") <= width


def test_the_soft_map_has_a_cell_for_each_configuration(
    chrome: Chrome, study: tuple[Path, TireResults]
) -> None:
    visit(chrome, study[0])
    drawn = marks(chrome, "tire-map", "bar")
    assert len(drawn) == sum(len(tire_map.cells) for tire_map in study[1].maps)
    for actual in study[1].maps:
        for cell in actual.cells:
            assert any(
                f"nodes: {cell.nodes:,}" in label and f"deadlines missed: {cell.missed}" in label
                for label in drawn
            )


def test_the_frontier_is_drawn_where_the_first_miss_is(
    chrome: Chrome, study: tuple[Path, TireResults]
) -> None:
    visit(chrome, study[0])
    ticks = marks(chrome, "tire-map", "tick")
    edges = [edge for tire_map in study[1].maps for edge in tire_map.frontier if edge.misses is not None]
    assert len(ticks) == 2 * len(edges)  # the line and the rim that sets it off
    for edge in edges:
        assert any(f"misses at: {edge.misses:,}" in label for label in ticks)


def test_the_times_are_those_of_the_runs(chrome: Chrome, study: tuple[Path, TireResults]) -> None:
    visit(chrome, study[0])
    points = marks(chrome, "tire-time", "point")
    assert len(points) == len(study[1].points)
    item = next(
        point
        for point in study[1].points
        if (point.solver, point.policy, point.threads, point.nodes) == ("semaphore", "fifo", 2, 25600)
    )
    (label,) = [
        label
        for label in points
        if "2 threads" in label and "nodes: 25600;" in label and "solver: semaphore" in label
    ]
    shown = re.search(r"; s: ([0-9.]+)", label)
    assert shown is not None
    assert float(shown[1]) == pytest.approx(item.step_ns.value * 6000 / 1e9, rel=1e-3)
