#!/bin/sh
# SPDX-License-Identifier: MIT
# The engine's sources, for meson.build; with `tests` or `fuzzers`, the C tests or fuzzers of extensions, for tests/meson.build. Both from this folder.
cd "$(dirname "$0")"
if [ "${1:-}" = tests ]; then
	find ../ext -path '*/engine/tests/test_*.c' 2>/dev/null
elif [ "${1:-}" = fuzzers ]; then
	find ../ext -path '*/engine/tests/fuzz_*.c' 2>/dev/null
else
	find . -name '*.c' -not -path './tests/*' | cut -c 3-
	find ../ext -path '*/engine/*.c' -not -path '*/engine/tests/*' 2>/dev/null
fi | LC_ALL=C sort
