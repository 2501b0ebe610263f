# SPDX-License-Identifier: MIT
"""Checks that files which somebody else may have made are opened only in the ways that are safe.

- record/record_folder.py reaches the files of a record: it opens the folder once, and what is below it
  through no link.
- record/own_folder.py reaches the files that decide what rtgauge runs, writes or deletes: only this user may
  have made them.
- input_file.py reads a file that the command line names: a regular one of limited size.

In the packages that handle records nothing opens, lists or makes a file by its path, and nobody appends a
name to the path of a record, anywhere. In the packages with commands and their folders nothing opens, makes
or removes one.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src/rtgauge"
PACKAGES = (
    "record",
    "report",
    "exporters",
    "ext/exporters",
    "ext/network",
    "ext/papers",
    "analysis",
    "verdict",
    "explain",
    "ext/store/page",
    "ext/tire",
    "ext/schedulability/analysis",
    "ext/schedulability/page",
    "ext/signal/page",
    "study",
)
"""Packages that handle records."""
COMMANDS = (
    "cli",
    "ext/bisect",
    "ext/fleet",
    "ext/importers",
    "ext/instrument",
    "ext/lab",
    "ext/last_boot",
    "ext/recorder",
    "ext/store",
    "ext/tune",
)
"""Packages with commands that have folders of their own."""
CHANGES = {
    "open", "read_bytes", "read_text", "write_bytes", "write_text", "mkdir", "makedirs", "unlink", "rmdir",
    "rmtree", "copyfile", "copy2", "copytree", "symlink_to", "write_whole", "whole_file", "new_file",
    "read_parquet", "scan_parquet", "read_csv", "scan_csv",
}  # fmt: skip
"""Ways to open, make or remove a file by its path."""
WAYS = CHANGES | {
    "open_regular", "read_regular", "exists", "is_file", "is_dir", "is_symlink", "iterdir", "glob", "rglob",
    "listdir", "scandir", "realpath", "resolve", "real_path",
}  # fmt: skip
"""Also ways to read or find a file by its path."""
ALLOWED = {
    # The way itself, and what it is made of.
    "record/record_folder.py": {
        "open",
        "open_regular",
        "listdir",
        "mkdir",
        "unlink",
        "rmtree",
        "whole_file",
        "new_file",
    },
    "record/files.py": {
        "listdir",
        "open",
        "rglob",
        "exists",
        "is_dir",
        "is_file",
        "is_symlink",
        "unlink",
        "whole_file",
    },
    # Of the record that is begun or renamed itself.
    "record/writer.py": {
        "open",
        "exists",
        "mkdir",
        "is_file",
        "is_symlink",
        "real_path",
        "rmdir",
        "new_file",
    },
    # Folders of records, not what is in a record; and a file of a record, which has its own `open`.
    "record/reader.py": {"open", "glob", "exists", "is_dir"},
    "record/windows_file.py": {"open", "open_regular", "read_parquet", "scan_parquet"},
    # Into the folder of the step that is measured, which is made for it, belongs to this user alone and is
    # given as its descriptor.
    "record/window_table.py": {"unlink", "whole_file"},
    "record/moments.py": {"open_regular", "unlink", "new_file", "whole_file"},
    "ext/instrument/samples_file.py": {"new_file"},
    # Files that the command line names.
    "report/page_frame.py": {"read_text", "write_whole"},
    "report/figures/figure_files.py": {"mkdir", "write_whole"},
    # And whether a record has a page to be linked.
    "ext/store/page/site.py": {"mkdir", "write_whole", "realpath", "is_file"},
    "exporters/samples_export.py": {"whole_file"},
    "exporters/record_export.py": {"whole_file", "write_whole"},
    "ext/exporters/kcidb_options.py": {"is_dir"},  # the sources of a kernel
    "ext/tire/state_file.py": {"whole_file"},
    # Templates.
    "ext/papers/advise/flowchart_file.py": {"read_text", "read_regular"},
    # The way to folders of one's own.
    "record/own_folder.py": {"open", "exists", "is_symlink", "mkdir", "whole_file"},
    # Files of the package, of the kernel, and descriptors.
    "cli/stdio.py": {"open"},
    # The output of a program, in the step's folder.
    "ext/importers/other_tool.py": {"open", "read_text"},
    "cli/watch_command.py": {"read_text"},
    # Files that the command line names, replaced whole.
    "cli/gate_command.py": {"write_whole"},
    # Lines of somebody's file in blocks, and the kernel's files about a port.
    "ext/instrument/csv_levels.py": {"read_csv"},
    "ext/instrument/link.py": {"read_text"},
    # Into the folder of the step that is measured.
    "ext/instrument/measurers/instrument.py": {"whole_file"},
    "ext/instrument/measurers/instrument_latmon.py": {"open"},
    # Fixed places below /etc.
    "ext/tune/tuning_installation.py": {"mkdir", "symlink_to", "unlink", "write_whole"},
    # Fixed places below /etc and /var/lib, the kernel's files, and a recorder's own open folder.
    "ext/recorder/folder.py": {"whole_file"},
    "ext/recorder/trigger_socket.py": {"open", "unlink"},
    "ext/recorder/remote_status.py": {"mkdir", "write_bytes"},  # into a temporary folder of its own
    "ext/recorder/examples/trigger.py": {"open"},
    "ext/recorder/markers.py": {"open", "read_text", "write_text"},
    "ext/recorder/fitness.py": {"read_text"},
    "ext/recorder/status.py": {"read_text"},
    "ext/recorder/surroundings.py": {"read_text"},
    "ext/recorder/thresholds.py": {"open"},
    "ext/recorder/program.py": {"read_text"},
    "ext/recorder/recorder.py": {"read_text"},
    "ext/recorder/tracing.py": {"mkdir", "rmdir"},
    "ext/recorder/triggers.py": {"read_text"},
    # In the lab's folders, which paths.py checks, and what is made there.
    "ext/lab/paths.py": {"open"},
    "ext/lab/accelerator.py": {"read_bytes", "read_text", "write_whole"},
    "ext/lab/boot_guest.py": {"open", "unlink"},
    "ext/lab/cpio.py": {"read_bytes"},
    "ext/lab/disk.py": {"unlink"},
    "ext/lab/guest.py": {"read_bytes", "unlink", "write_whole"},
    "ext/lab/headers.py": {"copytree", "mkdir", "read_text", "rmtree", "symlink_to"},
    "ext/lab/image.py": {
        "copyfile",
        "open",
        "read_bytes",
        "read_text",
        "rmtree",
        "write_bytes",
        "write_text",
    },
    "ext/lab/kernel_image.py": {"write_bytes"},
    "ext/lab/packages.py": {"mkdir", "open", "unlink", "write_text"},
    "ext/lab/running_guests.py": {"read_bytes", "read_text", "rmtree", "unlink", "write_whole"},
    "ext/lab/ssh.py": {"read_text", "unlink", "write_whole"},
    "ext/lab/userland.py": {"copy2", "mkdir", "read_bytes"},
    # Names of records, compared.
    "analysis/record_names.py": {"resolve"},
    "analysis/sides.py": {"resolve"},
    "analysis/baselines.py": {"resolve"},
    "ext/papers/advise/advisor.py": {"real_path"},
}
"""Module -> what it may use all the same."""


def _name(call: ast.Call) -> str:
    """Return the name of the called function; empty for `open` of a class of rtgauge, or of a file in an open
    record.
    """
    called = call.func
    if isinstance(called, ast.Attribute) and called.attr == "open":
        owner = called.value
        if isinstance(owner, ast.Name) and owner.id == "opener":  # of targets
            return ""
        if isinstance(owner, ast.Name) and owner.id[:1].isupper() and owner.id != "Path":
            return ""
        if (
            isinstance(owner, ast.Call)
            and isinstance(owner.func, ast.Attribute)
            and owner.func.attr == "file"
        ):
            return ""
    return (
        call.func.attr
        if isinstance(call.func, ast.Attribute)
        else call.func.id
        if isinstance(call.func, ast.Name)
        else ""
    )


def _appends(node: ast.AST) -> bool:
    """Whether it is `record.path / ...`."""
    if (
        not isinstance(node, ast.BinOp)
        or not isinstance(node.op, ast.Div)
        or not isinstance(node.left, ast.Attribute)
        or node.left.attr != "path"
    ):
        return False
    owner = node.left.value
    return isinstance(owner, ast.Name) and owner.id in {"record", "opened", "each"}


def _ways(module: str) -> set[str]:
    """Return the ways that a module may not use."""
    package = module.rpartition("/")[0] + "/"
    if package.startswith(tuple(f"{name}/" for name in PACKAGES)):
        return WAYS
    return CHANGES if package.startswith(tuple(f"{name}/" for name in COMMANDS)) else set()


def problems() -> list[str]:
    """A line for each way past the record's open folder."""
    found: list[str] = []
    used: dict[str, set[str]] = {}
    extensions = (
        path for path in ROOT.glob("ext/*/**/*.py") if not {"tests", "bench", "firmware"} & set(path.parts)
    )
    for path in sorted([*SOURCES.rglob("*.py"), *extensions]):
        module = str(path.relative_to(SOURCES if path.is_relative_to(SOURCES) else ROOT))
        ways = _ways(module)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
            if _appends(node):
                found.append(
                    f"{where}: a file of a record is `record.folder.file(name)` or `record.file(step, name)`"
                )
            if isinstance(node, ast.Call) and _name(node) in ways:
                used.setdefault(module, set()).add(_name(node))
                if _name(node) not in ALLOWED.get(module, set()):
                    found.append(
                        f"{where}: {_name(node)} opens by a path: use record/record_folder.py, "
                        f"record/own_folder.py or input_file.py, or say in {Path(__file__).name} why not"
                    )
    for module, names in ALLOWED.items():
        if module.startswith("ext/") and not (ROOT / module).exists():
            continue  # an extension that is not there
        found += [
            f"{Path(__file__).name}: {module} does not use {name} any more"
            for name in sorted(names - used.get(module, set()))
        ]
    return found


if __name__ == "__main__":
    sys.exit("\n".join(problems()) or None)
