# SPDX-License-Identifier: MIT
"""The figures of frequencies and of the sustained frequency, drawn by headless Chromium."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from tests.browser.driver import browser, console, scheme, viewport
from tests.support.timing import Drawn, Series, record

from rtgauge.report.record_page import Drawn as DrawnRecord
from rtgauge.report.record_page import render

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module", name="chrome")
def a_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with browser(tmp_path_factory.mktemp("profile")) as chrome:
        yield chrome


@pytest.fixture(scope="module", name="page")
def a_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    late = [30_000 + 90 * n for n in range(2_000)] + [17_227_000]
    steps = [
        Drawn([Series(late, "response", {"role": "master"})], "response", {"path": "loop:eventfd"}, load=load)
        for load in ("idle", "brown2010")
    ]
    edges = [
        Series([n % 40_000 - 20_000 for n in range(0, 400_000, 300)], metric, {"role": role})
        for metric in ("latency", "jitter")
        for role in ("self", "observer")
    ]
    steps.append(Drawn(edges, "periodic", {"period_ns": 7_071_000}))
    periods = (10**7, 10**6, 10**5, 5 * 10**4, 2 * 10**4, 10**4)
    steps += [
        Drawn(
            [Series([9_000] * 200, "response", {"role": "master"}, lost=3 if period < 10**5 else 0)],
            "response",
            {"interval_ns": period, "path": "loop:pipe"},
        )
        for period in periods
    ]
    out = folder / "page.html"
    made = record(folder / "r", steps)
    render(made, out, DrawnRecord.of(made))
    return out


def visit(chrome: Chrome, page: Path, width: int, theme: str) -> None:
    chrome.get("about:blank")
    viewport(chrome, width)
    scheme(chrome, theme)
    console(chrome)
    chrome.get(page.as_uri())
    WebDriverWait(chrome, 120).until(
        lambda c: c.execute_script("return document.documentElement.dataset.ready")
    )


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (420, "dark")])
def test_every_figure_is_drawn_and_nothing_overflows(chrome: Chrome, page: Path, width: int, theme: str):
    visit(chrome, page, width, theme)
    names = [
        "timing-response-log",
        "timing-periodic-jitter-log",
        "timing-periodic-latency-log",
        "sustained",
    ]
    for name in names:
        charts = chrome.find_elements(By.CSS_SELECTOR, f'[data-figure="{name}"]')
        assert charts, name
        for chart in charts:
            svg = chart.find_element(By.TAG_NAME, "svg")
            assert svg.size["width"] > 200
            assert svg.size["width"] <= width
            assert chart.get_attribute("data-drawn")
    assert console(chrome) == []
    assert chrome.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")


def test_the_log_figure_has_a_familiar_time(chrome: Chrome, page: Path):
    visit(chrome, page, 1280, "light")
    texts = chrome.execute_script(
        "return document.querySelector('[data-figure=\"timing-response-log\"]').textContent"
    )
    assert "12 serial bytes at 115200 baud: 1.04 ms" in texts


def test_the_sustained_figure_shows_losses_from_where_they_begin(chrome: Chrome, page: Path):
    visit(chrome, page, 1280, "light")
    label = chrome.find_element(By.CSS_SELECTOR, '[data-figure="sustained"]').get_attribute("aria-label")
    assert "100 us: 0 of 200 lost" in label
    assert "50.0 us: 3 of 203 lost" in label
    assert (
        len(
            chrome.find_elements(
                By.CSS_SELECTOR, '[data-figure="sustained"] path[aria-roledescription="line mark"]'
            )
        )
        == 3
    )
