# SPDX-License-Identifier: MIT
"""The live page in headless Chromium, with a run under way whose engine is generated: it holds where the test
looks.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from tests.browser.driver import browser, console, viewport
from tests.support.cli import COMMAND
from tests.support.generated_engine import write_engine
from tests.support.patience import PATIENCE_S

from rtgauge.target.engine_path import engine_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver.remote.webdriver import WebDriver

pytestmark = pytest.mark.browser

LIVE = re.compile(r"live  (http://\S+)")
CPUS, SECONDS = 4, 6
REQUIRED = "latency<=1ns hardness=99%"
"""A bound that every sample breaks."""


@contextmanager
def running(env: dict[str, str], *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command with a live page, which goes on until it is stopped."""
    command = [*COMMAND, *words, "--wait", "5min", "--live", "127.0.0.1:0"]
    with subprocess.Popen(
        command, env=os.environ | env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as run:
        yield run
        run.kill()


@pytest.fixture(name="run")
def a_run(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """`rtgauge run --live` that has measured some seconds and goes on until it is stopped."""
    generated = {"RTGAUGE_GENERATED_CPUS": str(CPUS), "RTGAUGE_GENERATED_HOLD": str(SECONDS)}
    env = generated | {
        "RTGAUGE_ENGINE": str(write_engine(tmp_path / "engine")),
        "RTGAUGE_REAL_ENGINE": str(engine_path()),
    }
    words = ("--load", "idle", "--duration", "1h", "--require", REQUIRED, "--out", str(tmp_path / "out"))
    with running(env, "run", *words) as run:
        yield run


def address(run: subprocess.Popen[str]) -> str:
    """What the run printed."""
    printed: list[str] = []
    assert run.stderr is not None
    for line in run.stderr:
        printed.append(line)
        if match := LIVE.search(line):
            return match[1]
    pytest.fail(f"no address of a live page: {''.join(printed)}")


def test_a_run_is_shown_as_it_goes_and_to_its_end(run: subprocess.Popen[str], tmp_path: Path) -> None:
    url = address(run)
    with browser(tmp_path / "profile") as chrome:
        wait = WebDriverWait(chrome, PATIENCE_S)
        chrome.get(url)
        wait.until(lambda page: f"{SECONDS * 1000:,}" in page.find_element(By.ID, "series").text)
        assert (
            chrome.execute_script(
                "return [...document.querySelectorAll('#series td:nth-child(2)')].map((cell) => "
                "cell.textContent)"
            )
            == ["6,000"] * CPUS
        )
        assert [f"CPU {cpu}" in chrome.find_element(By.ID, "series").text for cpu in range(CPUS)] == [
            True
        ] * CPUS
        assert len(chrome.find_elements(By.CSS_SELECTOR, "#histogram rect")) > 3
        assert (
            chrome.execute_script(
                "return document.querySelector('#maxima path').getAttribute('d').split('L').length"
            )
            == SECONDS
        )
        assert "measuring" in chrome.find_element(By.ID, "state").text
        every = f"{CPUS * SECONDS * 1000:,}"
        late = chrome.find_element(By.ID, "late")
        assert f"Late so far: {every} of {every} (100 %) later than 1 ns or missed; 1 % allowed" in late.text
        assert REQUIRED in late.text
        assert "broken" in (late.get_attribute("class") or "")
        assert len(chrome.find_elements(By.CSS_SELECTOR, "line.bound")) == 2
        first = chrome.current_window_handle
        chrome.switch_to.new_window("tab")
        chrome.get(url)
        wait.until(lambda page: page.find_elements(By.CSS_SELECTOR, "#maxima path"))
        viewport(chrome, 390)
        assert chrome.execute_script("return document.documentElement.scrollWidth") <= 390
        run.send_signal(signal.SIGINT)
        for tab in (chrome.current_window_handle, first):
            chrome.switch_to.window(tab)
            wait.until(lambda page: page.find_element(By.ID, "title").text.startswith("ended"))
        assert not console(chrome)
        run.wait(PATIENCE_S)


OF_FEW_NODES = """
const count = 12, angle = (at) => 2 * Math.PI * at / count, at = [...Array(count).keys()];
const tire = views.tire;
tire.radius = 0;
tire.frame = {number: 1, step: 1, every: 1, copy_us: 0, dropped: 0, late: 0, x: 0, y: 1, nodes: at.flatMap((i) => [Math.cos(angle(i)), Math.sin(angle(i))])};
const canvas = document.getElementById("moving");
tire.draw(canvas, 0);
const metre = canvas.height / 4.5;
const [x, y] = [0.985 * Math.cos(angle(0.5)), 1.4 + 0.985 * Math.sin(angle(0.5))];
return canvas.getContext("2d").getImageData(canvas.width / 2 + x * metre, canvas.height - y * metre, 1, 1).data[3];
"""
"""Draws a tire of 12 nodes on a circle; gives the opacity right within the circle and halfway between two
nodes, where a polygon has nothing.
"""


def drawn(chrome: WebDriver) -> tuple[int, str]:
    """How many frames of the tire came, and the picture as it is now."""
    return chrome.execute_script(
        "const moving = document.getElementById('moving'); return [Number(moving.dataset.frames || 0), "
        "moving.toDataURL()]"
    )


def test_a_tire_moves_live_but_not_in_a_hidden_page(tmp_path: Path) -> None:
    """By the engine itself: a tire that rolls for an hour, a step every 10 ms."""
    words = [
        "--period",
        "10ms",
        "--duration",
        "1h",
        "--speed",
        "2",
        "--nodes",
        "2000",
        "--policy",
        "other",
        "--save",
        "--out",
        str(tmp_path / "out"),
    ]
    with running({}, "probe", "tire", *words) as run, browser(tmp_path / "profile") as chrome:
        wait = WebDriverWait(chrome, PATIENCE_S)
        chrome.get(address(run))
        wait.until(lambda page: drawn(page)[0] > 10)
        frames, picture = drawn(chrome)
        wait.until(lambda page: drawn(page)[0] > frames + 10 and drawn(page)[1] != picture)
        assert re.search(
            r"s simulated .* 1 of 2 nodes is shown · dropped: \d+ by the machine that computes, \d+ "
            r"on the way here",
            shown(chrome),
        )
        # Nothing of it is in the record, and a page that nobody sees asks for none.
        chrome.execute_script(
            "Object.defineProperty(document, 'hidden', {value: true}); document.dispatchEvent(new "
            "Event('visibilitychange'))"
        )
        wait.until(lambda page: page.execute_script("return moving.socket === null"))
        assert chrome.execute_script(OF_FEW_NODES) == 255
        run.send_signal(signal.SIGINT)
        wait.until(lambda page: page.find_element(By.ID, "title").text.startswith("ended"))
        assert not console(chrome)
        run.wait(PATIENCE_S)
    (stream,) = (tmp_path / "out").rglob("stream.ndjson")
    assert b'"window"' in stream.read_bytes()
    assert b'"frame"' not in stream.read_bytes()


def shown(chrome: WebDriver) -> str:
    """What is below the tire."""
    return chrome.find_element(By.ID, "frames").text
