#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the virtual environment with what the build and rtgauge need, in the versions and with the hashes of tools/locks/run.txt.
# Arguments: the Python, the folder.
set -eu
python=$1
venv=$2

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
	echo "Python 3.11 or newer is needed, and '$python' is not; install one and say: make PYTHON=python3.12" >&2
	exit 1
fi
if ! command -v "${CC:-cc}" >/dev/null 2>&1; then
	echo "A C compiler is needed: sudo apt-get install gcc libc6-dev" >&2
	exit 1
fi
echo "--- make the virtual environment $venv"
made=yes
[ ! -e "$venv" ] || made=no
if ! "$python" -m venv "$venv"; then
	echo "The module venv does not work: sudo apt-get install python3-venv" >&2
	exit 1
fi
echo "--- install the libraries"
"$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --requirement "$(dirname "$0")/locks/run.txt" || {
	echo "The libraries could not be installed: is there a network?" >&2
	[ $made = no ] || rm -rf "$venv"
	exit 1
}
