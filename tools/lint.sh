#!/bin/sh
# SPDX-License-Identifier: MIT
# Every check that reads code without running it; warnings are errors. What takes longest runs beside the rest.
# `lint.sh quick`: only those that take a second or two, as before a commit.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"

types=
pyright=
if [ "${1:-all}" = all ]; then
	types=$(mktemp)
	trap 'kill "$pyright" 2>/dev/null || true; rm -f "$types"' EXIT
	pyright --pythonpath "$(command -v python)" --warnings >"$types" 2>&1 &
	pyright=$!
fi

echo "ruff format"
ruff format --check --quiet .

echo "ruff check"
ruff check --quiet .

echo "import-linter"
PYTHONPATH=src lint-imports --no-cache >/dev/null || PYTHONPATH=src lint-imports --no-cache

echo "probes"
python tools/check_probes.py

echo "prose"
python tools/check_prose.py

echo "files of records"
python tools/check_record_access.py

echo "names of modules in strings"
python tools/check_module_names.py

echo "names of classes and modules"
python tools/check_class_names.py

echo "docs/layers.svg"
python tools/layers.py --check

echo "sizes in ext/README.md"
python tools/extension_sizes.py --check

echo "folders of the engine"
python tools/check_engine_folders.py

echo "clang-format"
find engine ext kmod -name '*.[ch]' -not -path '*/node_modules/*' -print0 | xargs -0 clang-format --dry-run -Werror

[ -n "$pyright" ] || exit 0

echo "clang-tidy"
# rt/cobalt needs Xenomai's headers, rt/rtai those of RTAI.
find engine ext -name '*.c' -not -path '*/tests/*' -not -path '*/bench/*' -not -path '*/firmware/*' -not -path '*/rt/cobalt/*' -not -path '*/rt/rtai/*' -print0 |
	xargs -0 -n 1 -P "$(nproc)" sh -c 'clang-tidy --quiet "$0" -- -std=gnu17 -D_GNU_SOURCE -DENGINE_VERSION=\"\" -Iengine -I. 2>/dev/null'
find ext -path '*/firmware/*.c' -not -path '*/test/*' -print0 |
	xargs -0 -n 1 -P "$(nproc)" sh -c 'clang-tidy --quiet "$0" -- --target=arm-none-eabi -mcpu=cortex-m0plus -mthumb -std=gnu17 -ffreestanding 2>/dev/null'

echo "pyright"
wait "$pyright" || {
	cat "$types"
	exit 1
}
