#!/bin/sh
# SPDX-License-Identifier: MIT
# Copies this checkout to a folder without the extensions that are named (or without all), and builds the engine there.
# Arguments: the folder, which is removed first; names of folders in ext/.
# Then, in that folder: PYTHONPATH=src RTGAUGE_ENGINE=build/engine/rtgauge-engine python -m pytest ...
set -eu
cd "$(dirname "$0")/.."
folder=$1
shift
rm -rf "$folder"
mkdir -p "$folder"
git ls-files -z | tar --create --null --files-from=- --ignore-failed-read 2>/dev/null | tar --extract --directory "$folder"
cd "$folder"
[ $# -gt 0 ] || set -- $(ls -d ext/*/ | cut -d / -f 2)
for name in "$@"; do
	[ -d "ext/$name" ] || {
		echo "there is no extension $name; there are: $(ls -d ext/*/ | cut -d / -f 2 | tr '\n' ' ')" >&2
		exit 2
	}
	rm -rf "ext/$name"
done
echo '# SPDX-License-Identifier: MIT' >ext/__init__.py # a package of its own hides the extensions that are installed
{ meson setup build -Dstatic=false -Dbuildtype=plain && meson compile -C build rtgauge-engine drawing.js; } >build.log || {
	cat build.log
	exit 1
}
cp build/drawing.js src/rtgauge/report/ # otherwise, each page makes it anew, which takes seconds
