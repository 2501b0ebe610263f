# SPDX-License-Identifier: MIT
"""How long each reader of foreign text takes for 1 MB made to be slow: tokens repeated, drawn mixtures, and
tokens in files of each format.

    python ext/importers/bench/slow_text.py [MIXTURES]

CPU time, so that it may run beside other work; some 20 minutes with the 500 mixtures of the default."""

from __future__ import annotations

import itertools
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from ext.importers.tests.hostile_text import (
    READERS,
    TOKENS,
    TooSlowError,
    alone,
    mixtures,
    read_all,
    valid_with,
)
from rtgauge_ext.importers.foreign_file import MAX_LINE_BYTES

SIZE = 1_000_000
LINE = MAX_LINE_BYTES - 4096
LIMIT_S = 10.0


def main() -> int:
    """Prints the most that each reader took; 1 if one took more than the limit."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    within = itertools.chain.from_iterable(valid_with(token, 20_000) for token in TOKENS[::10])
    most = dict.fromkeys(READERS, (0.0, ""))
    texts = slow = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, content in itertools.chain(alone(SIZE, LINE), mixtures(SIZE, LINE, count, seed=1), within):
            texts += 1
            try:
                took = read_all(Path(folder) / "text", name, content, LIMIT_S)
            except TooSlowError as error:
                print(error, flush=True)
                slow += 1
                continue
            most = {reader: max(before, (took[reader], name)) for reader, before in most.items()}
    for reader, (seconds, name) in sorted(most.items(), key=lambda item: -item[1][0]):
        print(f"{reader:20} {seconds:6.2f} s  {name[:110]}")
    print(f"{texts} texts of 1 MB, {len(READERS)} readers: {slow} took more than {LIMIT_S:g} s")
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
