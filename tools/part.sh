#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs one part of the tests and prints how long it took. Arguments: its name, the command.
set -u
name=$1
shift
begin=$(date +%s)
echo "--- $name"
"$@"
status=$?
seconds=$(($(date +%s) - begin))
if [ "$status" = 0 ]; then
	echo "--- $name: $seconds s"
else
	echo "--- $name: failed after $seconds s"
fi
exit "$status"
