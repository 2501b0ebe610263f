# SPDX-License-Identifier: MIT
"""Prints the requirements of dependency groups of pyproject.toml (pip before 25.1 cannot read them)."""

import sys
import tomllib
from pathlib import Path

groups = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
print(*(requirement for name in sys.argv[1:] for requirement in groups[name]))
