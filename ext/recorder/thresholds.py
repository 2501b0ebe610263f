# SPDX-License-Identifier: MIT
"""A trigger by a number in a file: above a threshold, or a counter that has grown."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rtgauge.errors import InputError
from rtgauge_ext.recorder.triggers import Trigger

FILE = "file"
FORM = re.compile(r"(?P<path>/.+?)(?P<how>[>+])(?P<number>[0-9]{1,18}(\.[0-9]{1,9})?)")
NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,9})?")
MOST_BYTES = 4096


@dataclass
class Threshold:
    """`PATH>N`: the first number in the file is above N; again only after it was not. `PATH+N`: it has grown
    by N or more since the recorder began, or since the last trigger.
    """

    path: Path
    grows: bool
    limit: float
    _from: float | None = None
    _above: bool = False

    @classmethod
    def parse(cls, text: str) -> Threshold:
        """Read an option. Raises InputError."""
        match = FORM.fullmatch(text)
        if match is None:
            raise InputError(
                f"--trigger-file {text}: give the whole path of a file, and >THRESHOLD or +STEP, such as "
                "/sys/class/net/eth0/statistics/rx_errors+1"
            )
        threshold = cls(Path(match["path"]), match["how"] == "+", float(match["number"]))
        if threshold.grows and not threshold.limit:
            raise InputError(f"--trigger-file {text}: a counter must grow by more than 0")
        return threshold

    def look(self) -> Trigger | None:
        """Return the trigger if the number has passed its threshold since the last look. A file that cannot
        be read, or has no number, has not.
        """
        number = _number(self.path)
        if number is None:
            return None
        if self.grows:
            before = number if self._from is None or number < self._from else self._from
            self._from = before
            if number - before < self.limit:
                return None
            self._from = number
            return Trigger(FILE, f"{self.path} has grown from {before:.15g} to {number:.15g}")
        was, self._above = self._above, number > self.limit
        if was or not self._above:
            return None
        return Trigger(FILE, f"{self.path} is {number:.15g}, more than {self.limit:.15g}")


def _number(path: Path) -> float | None:
    with suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            match = NUMBER.search(os.read(file, MOST_BYTES).decode(errors="replace"))
        finally:
            os.close(file)
        return None if match is None else float(match[0])
    return None
