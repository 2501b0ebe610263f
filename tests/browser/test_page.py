# SPDX-License-Identifier: MIT
"""The page in headless Chromium, from disk."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from rtgauge.record.reader import Record
from rtgauge.report.record_page import render
from tests.browser.driver import browser, console, scheme, viewport
from tests.support.records import Shape, write_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

    from rtgauge.record.model import Distribution, SeriesSummary

pytestmark = pytest.mark.browser

HOSTILE = "</script><script>window.owned = true</script><img src=x onerror='window.owned = true'>"
LINES = (
    'return [...document.querySelectorAll(\'[data-figure="{}"] path[aria-roledescription="line '
    "mark\"]')].map((path) => path.getAttribute('d'))"
)


@pytest.fixture(scope="module", name="chrome")
def a_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with browser(tmp_path_factory.mktemp("profile")) as chrome:
        yield chrome


@pytest.fixture(scope="module", name="pages")
def some_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    shapes = {
        "plain": Shape(seed=1),
        "hostile": Shape(seed=2, host=HOSTILE, system={"os": HOSTILE}),
        "many": Shape(seed=3, cpus=tuple(range(16)), loads=("idle", "cpu"), seconds=2),
        "short": Shape(
            seed=4, missed_under=(), median_ns={"idle": 6_000, "cpu": 8_000, "memory": 9_000}, verdict=None
        ),
    }
    for name, shape in shapes.items():
        render(Record.open(write_record(folder, shape)), folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in shapes}


def visit(chrome: Chrome, page: Path, width: int = 1280, theme: str = "light") -> None:
    chrome.get("about:blank")
    viewport(chrome, width)
    scheme(chrome, theme)
    console(chrome)
    chrome.get(page.as_uri())
    WebDriverWait(chrome, 120).until(
        lambda c: c.execute_script("return document.documentElement.dataset.ready")
    )


def far_out(record: Record) -> Record:
    """The record with latencies of minutes, all but the smallest of them lower bounds: as wide as its tables
    get.
    """
    names = ("min_ns", "mean_ns", "std_ns", "p50_ns", "p95_ns", "p99_ns", "p99_9_ns", "p99_99_ns", "max_ns")

    def far(figures: Distribution) -> dict[str, object]:
        return {name: round(getattr(figures, name) or 0) * 1000 + 123_456_789_012 for name in names} | {
            "lower_bounds": [*names[3:]]
        }

    def summary(series: SeriesSummary) -> SeriesSummary:
        return series.model_copy(
            update={**far(series), "filled": series.filled.model_copy(update=far(series.filled))}
        )

    steps = [
        step.model_copy(
            update={
                "series": [summary(series) for series in step.series],
                "total": None if step.total is None else summary(step.total),
            }
        )
        for step in record.steps
    ]
    return replace(record, steps=steps)


def test_the_maximum_is_in_sight_at_1200_px(chrome: Chrome, pages: dict[str, Path], tmp_path: Path) -> None:
    render(far_out(Record.open(write_record(tmp_path, Shape(seed=5)))), tmp_path / "far.html")
    for page in (tmp_path / "far.html", pages["plain"]):
        visit(chrome, page, width=1200)
        unfold(chrome)
        cells, hidden, wider = chrome.execute_script(
            "const cells = [...document.querySelectorAll('.scroll .maximum')].filter((cell) => "
            "cell.offsetWidth);"
            "const hidden = cells.filter((cell) => { const c = cell.getBoundingClientRect(), s = "
            "cell.closest('.scroll').getBoundingClientRect();"
            "  return c.right > s.right + 1 || c.left < s.left || c.right > innerWidth; });"
            "const wider = [...document.querySelectorAll('.scroll:has(.maximum)')].filter((scroll) "
            "=> scroll.scrollWidth > scroll.clientWidth);"
            "return [cells.length, hidden.map((cell) => cell.textContent), wider.length];"
        )
        assert cells > 10
        assert hidden == []
        assert wider == 0, "columns are left out before a table scrolls"
        left_out = [note.text for note in chrome.find_elements(By.CSS_SELECTOR, ".left-out")]
        assert bool(left_out) == (page.name == "far.html"), "ordinary numbers all fit"
        assert all("std" in note for note in left_out), "the most dispensable columns go first"


def unfold(chrome: Chrome) -> None:
    """Open every folded part, and wait until its figures have the width of the page."""
    chrome.execute_script("for (const details of document.querySelectorAll('details')) details.open = true")
    fits = (
        "return [...document.querySelectorAll('.chart svg')].every((svg) => "
        "svg.getBoundingClientRect().width <= svg.closest('.chart').clientWidth + 1)"
    )
    WebDriverWait(chrome, 120).until(lambda c: c.execute_script(fits))


def wait_drawn(chrome: Chrome, state: str) -> None:
    script = (
        "return [...document.querySelectorAll('.chart')].every((chart) => chart.dataset.drawn === "
        "arguments[0])"
    )
    WebDriverWait(chrome, 120).until(lambda c: c.execute_script(script, state))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1280])
@pytest.mark.parametrize("name", ["plain", "hostile", "many", "short"])
def test_figures_are_drawn_without_complaints_or_overflow(
    chrome: Chrome, pages: dict[str, Path], name: str, width: int, theme: str
):
    visit(chrome, pages[name], width, theme)
    assert console(chrome) == []
    charts = chrome.find_elements(By.CSS_SELECTOR, ".chart")
    assert len(charts) >= 5
    unfold(chrome)
    for chart in charts:
        drawing = chart.find_element(By.TAG_NAME, "svg")
        assert drawing.size["width"] > 200
        assert drawing.size["height"] > 60
        assert drawing.size["width"] <= chart.size["width"] + 1
        assert len(chart.find_elements(By.CSS_SELECTOR, "[aria-roledescription='line mark']")) >= 1
    assert chrome.execute_script(
        "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    assert chrome.execute_script("return window.owned === undefined")


def test_the_page_loads_nothing_from_other_hosts(chrome: Chrome, pages: dict[str, Path]):
    visit(chrome, pages["plain"])
    assert (
        chrome.execute_script(
            "return performance.getEntriesByType('resource').map((entry) => "
            "entry.name).filter((name) => !name.startsWith('data:'))"
        )
        == []
    )


def test_the_cpu_switch_changes_the_figures(chrome: Chrome, pages: dict[str, Path]):
    visit(chrome, pages["plain"])
    every, exceedance, course = (
        chrome.execute_script(LINES.format(name)) for name in ("histogram", "exceedance", "course")
    )
    assert len(every) == 6
    chrome.find_element(By.CSS_SELECTOR, "[data-switch=cpu] button[value='1']").click()
    WebDriverWait(chrome, 120).until(lambda c: len(c.execute_script(LINES.format("histogram"))) == 3)
    item = chrome.execute_script(LINES.format("histogram"))
    assert set(item) < set(every)
    assert chrome.execute_script(LINES.format("exceedance")) != exceedance
    assert chrome.execute_script(LINES.format("course")) != course
    pressed = chrome.find_elements(By.CSS_SELECTOR, "[data-switch=cpu] button[aria-pressed=true]")
    assert [button.text for button in pressed] == ["1"]
    chrome.find_element(By.CSS_SELECTOR, "[data-switch=cpu] button[value='all']").send_keys(Keys.ENTER)
    WebDriverWait(chrome, 120).until(
        lambda c: sorted(c.execute_script(LINES.format("histogram"))) == sorted(every)
    )
    assert console(chrome) == []


def test_what_is_for_the_expert_is_folded_and_opens(chrome: Chrome, pages: dict[str, Path]):
    visit(chrome, pages["plain"])
    height = "return document.documentElement.scrollHeight"
    folded = chrome.execute_script(height)
    assert chrome.execute_script("return document.querySelectorAll('details.fold:not([open])').length") >= 8
    unfold(chrome)
    assert folded * 2 <= chrome.execute_script(height)
    assert chrome.execute_script(
        "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    assert console(chrome) == []


@pytest.mark.parametrize("name", ["plain", "short"])
def test_no_digit_of_the_first_table_is_cut_on_a_phone(chrome: Chrome, pages: dict[str, Path], name: str):
    visit(chrome, pages[name], 390)
    # As of an emulated guest under load.
    chrome.execute_script(
        "for (const cell of document.querySelectorAll('#numbers .numbers tbody td')) if (cell.textContent)"
        "  cell.textContent = cell.textContent.includes('.') ? '305,000.0' : '139,019';"
        "for (const cell of document.querySelectorAll('#numbers .numbers tbody th')) "
        "cell.textContent = 'scheduler*';"
        "dispatchEvent(new Event('resize'))"
    )
    cut = """return [...document.querySelectorAll('#numbers .numbers :is(td, th)')].filter((cell) => cell.offsetWidth &&
        (cell.getBoundingClientRect().right > document.documentElement.clientWidth || cell.scrollWidth > cell.clientWidth)).map((cell) => cell.textContent)"""
    assert chrome.execute_script(cut) == []


def test_tables_fit_a_phone_and_name_missing_columns(chrome: Chrome, pages: dict[str, Path]) -> None:
    visit(chrome, pages["plain"], 390)
    unfold(chrome)
    wider = (
        "return [...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth)"
        ".map((box) => box.getAttribute('aria-label'))"
    )
    WebDriverWait(chrome, 120).until(lambda c: c.execute_script(wider) == [])
    note = chrome.find_element(By.CSS_SELECTOR, "#numbers .left-out").text
    assert note.startswith("On a wider screen: ")
    assert "max" not in note, "the maximum stays"
    viewport(chrome, 1280)
    WebDriverWait(chrome, 120).until(
        lambda c: not c.find_elements(By.CSS_SELECTOR, "#numbers .left-out"), "all columns are back"
    )


def test_the_page_of_four_loads_is_short_while_closed(chrome: Chrome, pages: dict[str, Path]) -> None:
    for width in (1280, 768, 390):
        visit(chrome, pages["plain"], width)
        assert chrome.execute_script("return document.documentElement.scrollHeight") <= 5_000


def test_the_forbidden_corner_is_shaded_only_with_a_requirement(
    chrome: Chrome, pages: dict[str, Path]
) -> None:
    corner = '[data-figure="exceedance"] path[aria-roledescription="rect mark"]'
    visit(chrome, pages["short"])
    assert chrome.find_elements(By.CSS_SELECTOR, corner) == []
    visit(chrome, pages["plain"])
    (shaded,) = chrome.find_elements(By.CSS_SELECTOR, corner)
    figure = chrome.find_element(By.CSS_SELECTOR, '[data-figure="exceedance"]')
    assert shaded.rect["x"] > figure.rect["x"] + 50
    assert shaded.rect["width"] > 50
    assert "later than 200 us" in (figure.get_attribute("aria-label") or "")


def test_no_legend_is_cut_on_a_phone(chrome: Chrome, pages: dict[str, Path]) -> None:
    visit(chrome, pages["plain"], 390)
    cut = (
        "return [...document.querySelectorAll('#figures > figure .role-legend')].filter((legend) => {"
        "  const svg = legend.closest('svg').getBoundingClientRect(), own = legend.getBoundingClientRect();"
        "  return own.width && (own.right > svg.right + 1 || own.left < svg.left - 1); }).length"
    )
    assert chrome.find_elements(By.CSS_SELECTOR, "#figures > figure .role-legend")
    assert chrome.execute_script(cut) == 0


def test_many_cpus_are_chosen_from_a_list(chrome: Chrome, pages: dict[str, Path]):
    visit(chrome, pages["many"])
    assert len(chrome.execute_script(LINES.format("histogram"))) == 32
    Select(chrome.find_element(By.ID, "cpu")).select_by_value("15")
    WebDriverWait(chrome, 120).until(lambda c: len(c.execute_script(LINES.format("histogram"))) == 2)


def test_the_axis_switch_redraws_the_histogram_and_keeps_the_cpu(chrome: Chrome, pages: dict[str, Path]):
    visit(chrome, pages["plain"])
    unfold(chrome)
    pressed = "return document.querySelector('[data-switch=axis] button[aria-pressed=true]').value"
    assert chrome.execute_script(pressed) == "log"
    chrome.find_element(By.CSS_SELECTOR, "[data-switch=cpu] button[value='0']").click()
    WebDriverWait(chrome, 120).until(lambda c: len(c.execute_script(LINES.format("histogram"))) == 3)
    before = chrome.execute_script(LINES.format("histogram"))
    chrome.find_element(By.CSS_SELECTOR, "[data-switch=axis] button[value=linear]").click()
    WebDriverWait(chrome, 120).until(lambda c: c.execute_script(LINES.format("histogram")) != before)
    assert chrome.execute_script(pressed) == "linear"
    wait_drawn(chrome, "0 light")
    assert len(chrome.execute_script(LINES.format("histogram"))) == 3
    assert console(chrome) == []


def test_a_short_tail_begins_on_the_linear_axis(chrome: Chrome, pages: dict[str, Path]):
    visit(chrome, pages["short"])
    assert (
        chrome.execute_script(
            "return document.querySelector('[data-switch=axis] button[aria-pressed=true]').value"
        )
        == "linear"
    )


def test_figures_follow_the_readers_theme(chrome: Chrome, pages: dict[str, Path]):
    visit(chrome, pages["plain"])
    colours = LINES.format("histogram").replace("'d'", "'stroke'")
    light, paper = (
        chrome.execute_script(colours),
        chrome.execute_script("return getComputedStyle(document.body).backgroundColor"),
    )
    scheme(chrome, "dark")
    wait_drawn(chrome, "all dark")
    assert set(chrome.execute_script(colours)).isdisjoint(light)
    assert chrome.execute_script("return getComputedStyle(document.body).backgroundColor") != paper
    assert console(chrome) == []


def test_a_page_that_becomes_narrow_still_fits(chrome: Chrome, pages: dict[str, Path]):
    visit(chrome, pages["plain"])
    viewport(chrome, 380)
    fits = (
        "return [...document.querySelectorAll('.chart svg')].every((svg) => "
        "svg.getBoundingClientRect().width <= svg.closest('.chart').clientWidth + 1)"
    )
    WebDriverWait(chrome, 120).until(lambda c: c.execute_script(fits))
    assert chrome.execute_script(
        "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )


def test_scrolling_boxes_and_switches_have_names_and_keys(chrome: Chrome, pages: dict[str, Path]):
    visit(chrome, pages["plain"])
    script = (
        "return [...document.querySelectorAll('.scroll')].every((box) => box.tabIndex === 0 && "
        "box.getAttribute('aria-label'))"
    )
    assert chrome.execute_script(script)
    assert chrome.execute_script(
        "return [...document.querySelectorAll('.chart')].every((chart) => chart.getAttribute('aria-label'))"
    )
    levels = chrome.execute_script(
        "return [...document.querySelectorAll('h1,h2,h3,h4')].map((heading) => Number(heading.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
