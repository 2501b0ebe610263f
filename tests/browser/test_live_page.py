# SPDX-License-Identifier: MIT
"""The live page in headless Chromium, with a run under way whose engine is generated: it holds where the test looks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from rtgauge.target.engine_path import engine_path
from tests.browser.driver import browser, console, viewport
from tests.support.generated_engine import write_engine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.browser

LIVE = re.compile(r"live  (http://\S+)")
CPUS, SECONDS = 4, 6
PATIENCE_S = 200


@pytest.fixture(name="run")
def a_run(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """`rtgauge run --live` that has measured some seconds and goes on until it is stopped."""
    generated = {"RTGAUGE_GENERATED_CPUS": str(CPUS), "RTGAUGE_GENERATED_HOLD": str(SECONDS)}
    env = os.environ | generated | {"RTGAUGE_ENGINE": str(write_engine(tmp_path / "engine")), "RTGAUGE_REAL_ENGINE": str(engine_path())}
    command = [sys.executable, "-c", "from rtgauge.cli.main import main; main()", "run", "--load", "idle", "--duration", "1h"]
    options = ["--wait", "5min", "--live", "127.0.0.1:0", "--out", str(tmp_path / "out")]
    with subprocess.Popen([*command, *options], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        yield run
        run.kill()


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
        assert chrome.execute_script("return [...document.querySelectorAll('#series td:nth-child(2)')].map((cell) => cell.textContent)") == ["6,000"] * CPUS
        assert [f"CPU {cpu}" in chrome.find_element(By.ID, "series").text for cpu in range(CPUS)] == [True] * CPUS
        assert len(chrome.find_elements(By.CSS_SELECTOR, "#histogram rect")) > 3
        assert chrome.execute_script("return document.querySelector('#maxima path').getAttribute('d').split('L').length") == SECONDS
        assert "measuring" in chrome.find_element(By.ID, "phase").text
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
