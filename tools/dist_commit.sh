#!/bin/sh
# SPDX-License-Identifier: MIT
# Called by `meson dist`: a source distribution has no repository, so its commit stands in a file.
set -eu
commit=$(sh "$MESON_SOURCE_ROOT/tools/commit.sh")
printf '%s\n' "$commit" >"$MESON_DIST_ROOT/COMMIT"
# The same commit gives the same bytes, whatever the umask.
touch --date="@${SOURCE_DATE_EPOCH:-$(date +%s)}" "$MESON_DIST_ROOT/COMMIT"
chmod 644 "$MESON_DIST_ROOT/COMMIT"
