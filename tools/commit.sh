#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints the commit of the sources in this folder, with "+" if files differ from it; of a source distribution the one that it was made from; else nothing.
cd "$(dirname "$0")/.."
if [ -f COMMIT ]; then
	cat COMMIT
elif commit=$(git rev-parse --short=12 HEAD 2>/dev/null) && [ "$(git rev-parse --show-toplevel)" = "$(pwd -P)" ]; then
	[ -z "$(git status --porcelain --untracked-files=no)" ] || commit=$commit+
	printf '%s\n' "$commit"
fi
