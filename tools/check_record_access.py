# SPDX-License-Identifier: MIT
"""Checks that the files of a record are reached through record/record_folder.py alone: it opens a record's
folder once, and what is below it through no link.

In the packages that handle records nothing opens, lists or makes a file by its path, and nobody appends a
name to the path of a record, anywhere.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "src/rtgauge"
PACKAGES = (
    "record",
    "report",
    "exporters",
    "analysis",
    "verdict",
    "explain",
    "tire",
    "schedulability/analysis",
    "schedulability/page",
    "study",
)
WAYS = {
    "open", "open_regular", "read_regular", "read_bytes", "read_text", "write_bytes", "write_text", "exists",
    "is_file", "is_dir", "is_symlink", "iterdir",
    "glob", "rglob", "listdir", "scandir", "mkdir", "makedirs", "unlink", "rmtree", "realpath", "resolve",
    "copyfile", "read_parquet", "scan_parquet",
    "read_csv", "scan_csv", "whole_file", "write_whole", "new_file",
}  # fmt: skip
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
    "record/files.py": {"open", "rglob", "is_dir", "is_file", "is_symlink", "unlink", "whole_file"},
    # Of the record that is begun or renamed itself.
    "record/writer.py": {"open", "exists", "mkdir", "is_file", "is_symlink", "resolve", "new_file"},
    # Folders of records, not what is in a record; and a file of a record, which has its own `open`.
    "record/reader.py": {"open", "glob", "exists", "is_dir"},
    "record/windows_file.py": {"open", "open_regular", "read_parquet", "scan_parquet"},
    # Into the folder of the step that is measured, which is made for it, belongs to this user alone and is
    # given as its descriptor.
    "record/window_table.py": {"unlink", "whole_file"},
    "record/moments.py": {"open_regular", "unlink", "new_file", "whole_file"},
    "record/samples.py": {"new_file"},
    # Files that the command line names.
    "report/page_frame.py": {"open", "read_text", "write_whole"},
    "report/figures/files.py": {"mkdir", "write_whole"},
    # And whether a record has a page to be linked.
    "report/site.py": {"mkdir", "write_whole", "realpath", "is_file"},
    "exporters/samples_export.py": {"is_dir", "exists", "whole_file"},
    "exporters/record_export.py": {"whole_file", "write_whole"},
    "tire/state_file.py": {"whole_file"},
    # Templates.
    "verdict/flowchart_file.py": {"read_text", "read_regular"},
    # Names of records, compared.
    "analysis/record_names.py": {"resolve"},
    "analysis/sides.py": {"resolve"},
}
"""Module -> what it may use all the same."""


def _name(call: ast.Call) -> str:
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


def problems() -> list[str]:
    """A line for each way past the record's open folder."""
    found: list[str] = []
    used: dict[str, set[str]] = {}
    for path in sorted(SOURCES.rglob("*.py")):
        module = str(path.relative_to(SOURCES))
        inside = module.startswith(tuple(f"{package}/" for package in PACKAGES))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"src/rtgauge/{module}:{getattr(node, 'lineno', 0)}"
            if _appends(node):
                found.append(
                    f"{where}: a file of a record is `record.folder.file(name)` or `record.file(step, name)`"
                )
            if inside and isinstance(node, ast.Call) and _name(node) in WAYS:
                used.setdefault(module, set()).add(_name(node))
                if _name(node) not in ALLOWED.get(module, set()):
                    found.append(
                        f"{where}: {_name(node)} opens by a path: use record/record_folder.py, or "
                        f"say in {Path(__file__).name} why not"
                    )
    for module, names in ALLOWED.items():
        found += [
            f"{Path(__file__).name}: {module} does not use {name} any more"
            for name in sorted(names - used.get(module, set()))
        ]
    return found


if __name__ == "__main__":
    sys.exit("\n".join(problems()) or None)
