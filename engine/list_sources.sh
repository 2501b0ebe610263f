#!/bin/sh
# SPDX-License-Identifier: MIT
# The engine's sources, tests apart, for meson.build.
cd "$(dirname "$0")"
find . -name '*.c' -not -path './tests/*' | cut -c 3- | LC_ALL=C sort
