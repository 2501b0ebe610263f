#!/bin/sh
# SPDX-License-Identifier: MIT
# Writes tools/locks anew: the newest versions that pyproject.toml allows, with the hashes of their files, for Python 3.11 and later.
# run.txt is what `make run` installs, test.txt what `make test` does.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check uv
lock() {
	out=$1
	shift
	"$folder/bin/uv" pip compile pyproject.toml "$@" --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --no-emit-index-url --quiet --output-file "$out"
	sed -i '1i # SPDX-License-Identifier: MIT\n# Written by tools/lock.sh.' "$out"
}
lock tools/locks/run.txt --group build
lock tools/locks/release.txt --group build --group release
lock tools/locks/test.txt --group build --group test --group lint --group docs
