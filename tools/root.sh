#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes a clean root of a release of Debian or Ubuntu with mmdebstrap, with this machine's certificates.
# Arguments: the release's name, where the root goes (a folder, or /dev/null), further options of mmdebstrap.
set -eu
suite=$1
place=$2
shift 2
set -- --quiet \
	--customize-hook='mkdir -p "$1/etc/ssl/certs" && cp /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/"' "$@"
if [ "$suite" = noble ]; then
	# Ubuntu's keys come from Debian 13, by their hash; dkms is in universe.
	keys=$(mktemp -d)
	trap 'rm -rf "$keys"' EXIT
	package=ubuntu-keyring_2023.11.28.1-0.2_all.deb
	curl --silent --show-error --fail --output "$keys/$package" "https://deb.debian.org/debian/pool/main/u/ubuntu-keyring/$package"
	echo "b2e7ed48431bf9e7978ae810bbdaf253093570d6e3f864e575b7c13554b81174  $keys/$package" | sha256sum --check --quiet
	dpkg-deb --extract "$keys/$package" "$keys"
	chmod 755 "$keys"
	set -- --keyring="$keys/usr/share/keyrings/ubuntu-archive-keyring.gpg" "$@" noble "$place"
	for pocket in noble noble-updates noble-security; do
		set -- "$@" "deb http://archive.ubuntu.com/ubuntu $pocket main universe"
	done
else
	set -- --keyring=/usr/share/keyrings/debian-archive-keyring.gpg "$@" "$suite" "$place"
fi
mmdebstrap "$@"
