# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.core_extension import KEEP
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="store",
    line="Keeps the figures of many records in a database, with their history and their site.",
    commands={
        "store": Command(
            KEEP,
            "Keep the figures of many records, with history and site.",
            "rtgauge_ext.store.cli.store_command:app",
        )
    },
    documents={
        "history.schema.json": "rtgauge_ext.store.history:DOCUMENT",
        "store.schema.json": "rtgauge_ext.store.document:DOCUMENT",
    },
    words={
        "rtgauge store history SERIES": "history trend timeline",
        "rtgauge store add RECORD": "db database archive save upload push keep",
        "rm -r with the folder of a record, or rtgauge store rm RECORD": "rm remove delete del",
        "rtgauge store site": "site publish website",
    },
    gone={"store rebuild --drop-missing": "use rtgauge store rm RECORD"},
)
