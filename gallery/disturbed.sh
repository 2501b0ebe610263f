#!/bin/sh
# SPDX-License-Identifier: MIT
# disturbed.sh COMMAND: while COMMAND runs, logger.py runs before all that it measures.
chrt -f 99 python3 logger.py &
trap 'kill $!' EXIT
"$@"
