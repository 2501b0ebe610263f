#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the Debian packages that `run`, `test`, `firmware`, `lab`, `release`, `deb`, `packages` or `bench` want; where it may not, prints the command and goes on.
set -eu

run="python3-venv gcc libc6-dev stress-ng iperf3 rt-tests iproute2 openssh-client"
test="$run clang clang-format clang-tidy libcmocka-dev libclang-rt-dev valgrind trace-cmd socat chromium chromium-driver openssh-server ser2net busybox-static postgresql qemu-user-static gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf libc6-dev-arm64-cross libc6-dev-armhf-cross gcc-riscv64-linux-gnu libc6-dev-riscv64-cross"
lab="$test qemu-system-x86 qemu-system-arm qemu-system-misc opensbi mmdebstrap debian-archive-keyring curl e2fsprogs zstd"
firmware="gcc-arm-none-eabi make nodejs npm"
release="$run gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf gcc-riscv64-linux-gnu libc6-dev-arm64-cross libc6-dev-armhf-cross libc6-dev-riscv64-cross"
deb="mmdebstrap debian-archive-keyring ca-certificates curl"
packages="$lab buildah"
bench="$run valgrind jitterdebugger"

case "${1:-run}" in
run) wanted=$run ;;
test) wanted=$test ;;
firmware) wanted=$firmware ;;
lab) wanted=$lab ;;
release) wanted=$release ;;
deb) wanted=$deb ;;
packages) wanted=$packages ;;
bench) wanted=$bench ;;
*) echo "usage: $0 run|test|firmware|lab|release|deb|packages|bench" >&2; exit 2 ;;
esac

command -v dpkg-query >/dev/null 2>&1 || {
	echo "This is no Debian or Ubuntu; install with your own package manager what is missing of: $wanted"
	exit 0
}

missing=""
for package in $wanted; do
	if [ "$package" = libclang-rt-dev ]; then
		# Debian 12 has it only under the name of its version; a dependency of clang's own version.
		version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\).*/\1/p' | head -n 1)
		[ -n "$version" ] || continue
		package="libclang-rt-$version-dev"
	fi
	if [ "$package" = python3-venv ] && python3 -c 'import ensurepip, venv' 2>/dev/null; then
		continue
	fi
	# Node.js need not be Debian's; its own packages bring npm along.
	if { [ "$package" = nodejs ] && command -v node >/dev/null 2>&1; } || { [ "$package" = npm ] && command -v npm >/dev/null 2>&1; }; then
		continue
	fi
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "--- install the packages$missing"
	export DEBIAN_FRONTEND=noninteractive
	# shellcheck disable=SC2086
	if apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1; then
		exit 0
	fi
	apt-get update -qq || true
	# shellcheck disable=SC2086
	if apt-get install -y -qq --no-install-recommends $missing >/dev/null; then
		exit 0
	fi
	echo "Some packages could not be installed (no network?); going on with what is there. To install them:"
else
	echo "Some packages are missing; going on with what is there. To install them:"
fi
echo "    sudo apt-get install$missing"
