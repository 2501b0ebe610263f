# SPDX-License-Identifier: MIT
"""The page of a running recorder in headless Chromium, while its folder changes by a driven clock."""

from __future__ import annotations

import re
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from tests.browser.driver import browser, console, scheme, viewport
from tests.support.cli import COMMAND
from tests.support.patience import PATIENCE_S

from ext.recorder.tests.driven import (
    MIB,
    SECOND,
    DrivenClock,
    begin,
    figures_of,
    moment,
    recording_of,
    window,
)
from rtgauge_ext.recorder.folder import RecorderFolder, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=alert(1)>"


def running(path: Path) -> tuple[RecorderFolder, Callable[[str, int], None]]:
    """A recorder's folder, which holds it, and what lets a minute pass with a moment of a culprit."""
    settings = Settings(
        program="--program control", require="period=1ms latency<=200us", keep_bytes=50 * MIB,
        command=["rtgauge"], parameters={},
    )  # fmt: skip
    folder, clock = RecorderFolder.create(path, settings), DrivenClock()
    recording = recording_of(folder, clock, bounds={"latency": 200_000})
    taker = begin(recording, clock)
    rng = np.random.default_rng(3)

    def pass_minute(culprit: str, latency_ns: int) -> None:
        clock.pass_ns(60 * SECOND)
        values: Any = (20_000 + rng.gamma(2.0, 4_000, 100)).astype(np.int64)
        values[0] = latency_ns
        taker.take(window(clock, 60 * SECOND, figures_of(values)))
        if culprit:
            taker.take(moment(clock, culprit, latency_ns))
        recording.tick("watched")

    return folder, pass_minute


@contextmanager
def served(path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The page of a folder, and its address."""
    command = [*COMMAND, "recorder", "status", str(path), "--live", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stderr is not None
            printed = serving.stderr.readline()
            match = re.search(r"live  (http://\S+)", printed)
            assert match is not None, printed
            yield serving, match[1]
        finally:
            serving.kill()


def test_the_page_follows_a_running_recorder(tmp_path: Path) -> None:
    folder, pass_minute = running(tmp_path / "folder")
    for minute in range(200):
        pass_minute("irq 31 (eth0)" if minute % 70 == 60 else "", 900_000 if minute % 70 == 60 else 50_000)
    with served(folder.path) as (serving, address), browser(tmp_path / "profile") as chrome:
        wait = WebDriverWait(chrome, PATIENCE_S)
        chrome.get(address)
        wait.until(lambda page: page.find_element(By.ID, "title").text.startswith("Worst latency 900 us of"))
        assert chrome.find_element(By.ID, "state").text.startswith("A recorder runs for --program control;")
        assert "irq 31 (eth0)" in chrome.find_element(By.ID, "tables").text
        shown = len(chrome.find_elements(By.CSS_SELECTOR, "#course rect"))
        assert shown == len(folder.stretches) + len(folder.minutes)
        assert len(chrome.find_elements(By.CSS_SELECTOR, "line.bound")) == 1
        over = [
            each for each in (*folder.stretches, *folder.minutes) if (each.figures[0].max_ns or 0) > 200_000
        ]
        assert over
        assert len(chrome.find_elements(By.CSS_SELECTOR, "#course .over")) == len(over)
        pass_minute(HOSTILE, 1_234_000)
        wait.until(lambda page: HOSTILE in page.find_element(By.ID, "tables").text)
        assert chrome.find_element(By.ID, "title").text.startswith("Worst latency 1.23 ms of")
        for width, colours in ((1400, "light"), (390, "light"), (390, "dark")):
            viewport(chrome, width)
            scheme(chrome, colours)
            assert chrome.execute_script("return document.documentElement.scrollWidth") <= width
            chrome.save_screenshot(str(tmp_path / f"{width}-{colours}.png"))
        folder.close()
        wait.until(lambda page: page.find_element(By.ID, "state").text.startswith("No recorder runs"))
        serving.send_signal(signal.SIGINT)
        wait.until(lambda page: "no longer updated" in page.find_element(By.ID, "state").text)
        assert not console(chrome)
        assert serving.wait(PATIENCE_S) == 0
