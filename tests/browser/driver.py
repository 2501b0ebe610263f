# SPDX-License-Identifier: MIT
"""Headless Chromium on a page from disk."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def _program(*names: str) -> str:
    for name in names:
        program = shutil.which(name)
        if program:
            return program
    raise RuntimeError(f"the browser tests need {names[0]}: apt-get install chromium chromium-driver")


@contextmanager
def browser(profile: Path, width: int = 1280, height: int = 1000) -> Iterator[webdriver.Chrome]:
    """A browser whose page is `width` wide, with its profile in the folder `profile`.

    Raises RuntimeError where there is no Chromium.
    """
    options = Options()
    options.binary_location = _program("chromium", "chromium-browser", "google-chrome")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(_program("chromedriver")))
    try:
        viewport(driver, width, height)
        yield driver
    finally:
        driver.quit()


def viewport(driver: webdriver.Chrome, width: int, height: int = 1000) -> None:
    """Make the page exactly this large, which a window in headless mode cannot be below 500 px."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )


def scheme(driver: webdriver.Chrome, name: str) -> None:
    """The reader prefers "light" or "dark"."""
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]}
    )


def console(driver: webdriver.Chrome) -> list[dict[str, Any]]:
    """Everything the browser complained of since the last call."""
    return [entry for entry in driver.get_log("browser") if entry["level"] in {"SEVERE", "WARNING"}]
