#!/bin/sh
# SPDX-License-Identifier: MIT
# Every check that reads code without running it; warnings are errors.
set -eu

echo "ruff format"
ruff format --check --quiet .

echo "ruff check"
ruff check --quiet .

echo "pyright"
pyright --pythonpath "$(command -v python)" --warnings

echo "import-linter"
PYTHONPATH=src lint-imports --no-cache >/dev/null || PYTHONPATH=src lint-imports --no-cache

echo "clang-format"
find engine -name '*.[ch]' -print0 | xargs -0 clang-format --dry-run -Werror

echo "clang-tidy"
find engine -name '*.c' -not -path '*/tests/*' -print0 |
	xargs -0 -n 1 -P "$(nproc)" sh -c 'clang-tidy --quiet "$0" -- -std=gnu17 -D_GNU_SOURCE -Iengine 2>/dev/null'
