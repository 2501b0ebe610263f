#!/bin/sh
# SPDX-License-Identifier: MIT
# The engine's tests in the builds that find most: plain (gcc), thread sanitizer (gcc), address and undefined sanitizers with fuzzers (clang).
# Then the engines of the sanitizer builds themselves are run; any report of a sanitizer is a failure.
# Last, the engines of other architectures, which `make cross` built, are run under QEMU's user emulation.
set -eu
cd "$(dirname "$0")/../.."

export ASAN_OPTIONS=abort_on_error=0:exitcode=99:detect_stack_use_after_return=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:exitcode=99
export TSAN_OPTIONS=halt_on_error=1:exitcode=99
# An older thread sanitizer cannot live with the address layouts that newer kernels draw.
fixed=""
setarch "$(uname -m)" -R true 2>/dev/null && fixed="setarch $(uname -m) -R"
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# build FOLDER COMPILER [MESON OPTIONS]
build() {
	folder=$1
	compiler=$2
	shift 2
	echo "--- $folder: $compiler $*"
	reconfigure="" # of a folder that is there: a source may be new
	[ ! -f "$folder/build.ninja" ] || reconfigure=--reconfigure
	# shellcheck disable=SC2086
	CC=$compiler meson setup "$folder" $reconfigure -Dengine_tests=true -Dstatic=false "$@" >"$out" 2>&1 || {
		cat "$out"
		exit 1
	}
	ninja -C "$folder" >"$out" 2>&1 || {
		cat "$out"
		exit 1
	}
}

# test_suite FOLDER [MESON TEST OPTIONS]
test_suite() {
	folder=$1
	shift
	# shellcheck disable=SC2086
	$fixed meson test -C "$folder" --no-rebuild --print-errorlogs "$@" >"$out" 2>&1 || {
		cat "$out"
		exit 1
	}
	grep -E '^ *[0-9]+/[0-9]+ ' "$out"
}

# engine FOLDER ARGUMENTS: the last line must say that it ended well, and nothing may be said on standard error.
engine() {
	program=$1/engine/rtgauge-engine
	shift
	echo "$program $*"
	# shellcheck disable=SC2086
	$fixed "$program" "$@" >"$out" 2>"$out.err" || {
		status=$?
		cat "$out.err"
		tail -n 2 "$out"
		rm -f "$out.err"
		echo "$program $* ended with $status" >&2
		exit 1
	}
	if [ -s "$out.err" ]; then
		cat "$out.err"
		rm -f "$out.err"
		exit 1
	fi
	rm -f "$out.err"
	case "$1" in
	read) grep -q '"type":"read"' "$out" ;;
	*) tail -n 1 "$out" | grep -q '"type":"end"' ;;
	esac || {
		tail -n 3 "$out"
		exit 1
	}
}

# engine_runs FOLDER [WAKEUP OPTIONS]
engine_runs() {
	folder=$1
	shift
	policy=other
	[ "$(id -u)" = 0 ] && policy=fifo
	for timer in nanosleep timerfd; do
		engine "$folder" wakeup --go --count 2000 --interval-ns 200000 --policy "$policy" --timer "$timer" "$@"
	done
	# Nothing to record in: that is told, and the rest is measured.
	engine "$folder" wakeup --go --count 200 --policy "$policy" --explain-instance rtgauge-none --explain-cost-ns 100000000 "$@"
	engine "$folder" calibrate
	engine "$folder" noise --go --duration-ns 100000000 --policy "$policy" --memory-lock off
	for extension in ext/*/engine/tests/runs.sh; do
		# shellcheck disable=SC1090
		[ ! -f "$extension" ] || . "$extension"
	done
	engine "$folder" read /proc/self/stat /proc/version '/sys/devices/system/cpu/cpu*/online' /nothing/here
}

build build-plain gcc
test_suite build-plain

build build-tsan gcc -Db_sanitize=thread
test_suite build-tsan
engine_runs build-tsan --memory-lock off

# Address and undefined sanitizers. The fuzzers have a suite of their own and 10 s each.
build build-clang clang -Db_sanitize=address,undefined -Db_lundef=false
test_suite build-clang
engine_runs build-clang

# The emulator runs a program with any policy, but draws its own address layout.
for architecture in aarch64 armhf riscv64 loongarch64; do
	[ "$(uname -m | sed 's/armv[78]l/armhf/')" != "$architecture" ] || continue
	emulator=qemu-$(echo "$architecture" | sed 's/armhf/arm/')-static
	echo "--- build-$architecture: $emulator"
	fixed=$emulator
	engine_runs "build-$architecture" --memory-lock off
done
echo "--- the engine's tests passed"
