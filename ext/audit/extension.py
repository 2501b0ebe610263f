# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.core_extension import UNDERSTAND
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="audit",
    line="Checks the settings of a machine against rules.",
    commands={
        "audit": Command(
            UNDERSTAND,
            "Check the machine's settings for real-time use.",
            "rtgauge_ext.audit.audit_command:audit",
        ),
    },
    auditors={"audit": "rtgauge_ext.audit.auditor:AUDITOR"},
    files={"Rules of the audit": "rtgauge_ext.audit.rules:FILE"},
    words={
        "rtgauge audit": (
            "doctor lint diagnose health inspect advice tips config settings sysctl governor cstates "
            "c-states preempt-rt preempt_rt kconfig"
        ),
        "rtgauge audit --facts": (
            "system info sysinfo facts uname hardware machine status env cpu cpus kernel"
        ),
    },
)
