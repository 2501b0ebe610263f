# SPDX-License-Identifier: MIT
"""Pulls a recorder's trigger: `trigger.py PATH TEXT`, with a socket or with trace_marker as PATH."""

import os
import socket
import sys

path, text = sys.argv[1], sys.argv[2].encode()
if path.endswith("trace_marker"):
    marker = os.open(path, os.O_WRONLY)  # once, before the loop
    os.write(marker, text)
else:
    said = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)  # once, before the loop
    said.setblocking(False)
    said.connect(path)
    said.send(text)
