# SPDX-License-Identifier: MIT
"""Tests of what is recorded by the kernel's tracepoints."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

needs_tracefs = pytest.mark.skipif(os.geteuid() != 0 or "tracefs" not in Path("/proc/filesystems").read_text(), reason="needs root and tracefs")
"""Only root may open tracefs, and a kernel built without tracing has none."""
