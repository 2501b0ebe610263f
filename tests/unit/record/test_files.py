# SPDX-License-Identifier: MIT
"""Writing: never through a link, into the folder that was opened, whole or absent, and the same error for a
full disk everywhere.
"""

from __future__ import annotations

import ast
import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from rtgauge.errors import EXIT_CANNOT_MEASURE, InputError, MeasureError
from rtgauge.exporters.record_export import export
from rtgauge.exporters.samples_export import export_samples
from rtgauge.record.facts import Facts, Kernel
from rtgauge.record.files import clear_errors, for_polars, whole_file, write_whole
from rtgauge.record.reader import Record
from rtgauge.record.record_folder import RecordFolder
from rtgauge.record.samples import SamplesHeader
from rtgauge.record.writer import RecordWriter
from rtgauge.report.compare.comparison_page import html as comparison_html
from rtgauge.report.page_frame import write_page
from rtgauge.report.record_page import render
from tests.support.figures import save_figures
from tests.support.samples import write_samples
from tests.unit.records import run, step

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "src/rtgauge"


@pytest.fixture
def record(tmp_path) -> Record:
    writer = RecordWriter.create(tmp_path / "runs", host="h", name="n")
    writer.write_run(run(writer.id))
    recorded, windows = step([1000, 2000, 3000])
    writer.commit_step(recorded, windows)
    return Record.open(writer.finish("complete"))


def samples_file(folder: Path) -> Path:
    path = folder / "source.i64"
    write_samples(path, SamplesHeader(series=0, cpu=0, start_ns=0, interval_ns=1000, warm_up_ns=0), [1, 2, 3])
    return path


WRITERS = {
    "page.html": render,
    "comparison.html": lambda record, out: write_page(comparison_html([], [record]), out),
    "statistics.csv": lambda record, out: export(record, "csv", out),
    "record.json": lambda record, out: export(record, "json", out),
    "windows.parquet": lambda record, out: export(record, "parquet", out, windows=True),
    "samples.csv": lambda record, out: export_samples({0: samples_file(record.path)}, out),
    "samples.parquet": lambda record, out: export_samples({0: samples_file(record.path)}, out),
    "samples.i64": lambda record, out: export_samples({0: samples_file(record.path)}, out),
    "latency-histogram.svg": lambda record, out: save_figures(record, out.parent, formats=("svg",)),
}
"""Name of a file -> what writes it."""


@pytest.mark.parametrize("name", WRITERS)
def test_nothing_is_written_through_a_link(record, tmp_path, name):
    """Neither one with the file's own name nor one with a name that a file beside it could have."""
    out = tmp_path / "out"
    out.mkdir()
    if name.endswith(".svg"):
        name = save_figures(record, tmp_path / "elsewhere", formats=("svg",))[0].name
        write = WRITERS["latency-histogram.svg"]
    else:
        write = WRITERS[name]
    victim = tmp_path / "victim"
    victim.write_text("precious")
    asides = [f".{name}.partial", f".{name}.tmp", f"{name}.new", f"{Path(name).stem}.new", f"{name}.tmp"]
    for link in (name, *asides):
        (out / link).symlink_to(victim)
    write(record, out / name)
    assert victim.read_text() == "precious"
    assert (out / name).is_file()
    assert not (out / name).is_symlink()
    assert all((out / link).is_symlink() for link in asides)


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_one_error_and_leaves_nothing(record, tmp_path, monkeypatch, name):
    out = tmp_path / "out"
    out.mkdir()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MeasureError, match="disk is full") as error:
        WRITERS[name](record, out / name)
    assert error.value.status == EXIT_CANNOT_MEASURE
    assert list(out.iterdir()) == []


def test_the_temporary_file_has_a_new_name_each_time(tmp_path):
    names = set()
    for _ in range(20):
        with whole_file(tmp_path / "x") as file:
            file.write(b"x")
            (name,) = {entry.name for entry in tmp_path.iterdir()} - {"x"}
        names.add(name)
    assert len(names) == 20
    assert all(len(name) > 32 for name in names)
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]


def test_a_folder_that_is_swapped_meanwhile_gets_nothing(tmp_path):
    out, other = tmp_path / "out", tmp_path / "other"
    out.mkdir()
    other.mkdir()
    with whole_file(out / "x") as file:
        out.rename(tmp_path / "moved")
        out.symlink_to(other)
        file.write(b"text")
    assert list(other.iterdir()) == []
    assert (tmp_path / "moved/x").read_bytes() == b"text"


def test_an_error_or_ctrl_c_leaves_the_old_file(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), whole_file(path) as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]


def test_devices_pipes_and_folders_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    for name, expected_text in (
        ("pipe", "not a regular file"),
        ("stdout", "not a regular file"),
        ("folder", "is a folder"),
    ):
        with (
            pytest.raises(InputError, match=expected_text),
            clear_errors(tmp_path / name, option="-o", kind="file"),
        ):
            write_whole(tmp_path / name, b"x")
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "stdout").is_symlink()


def test_a_record_swapped_while_measured_stays_the_same(tmp_path):
    """Its owner may own the folder around it, not what is written."""
    writer = RecordWriter.create(tmp_path / "runs", host="h", name="n")
    writer.write_run(run(writer.id))
    recorded, windows = step([1])
    folder = writer.step_folder(recorded.id)
    moved, other = tmp_path / "moved", tmp_path / "other"
    (other / "steps" / folder.name).mkdir(parents=True)
    (other / "targets").mkdir()
    before = sorted(other.rglob("*"))
    writer.path.rename(moved)
    writer.path.symlink_to(other)
    (folder / "stream.ndjson").write_text("{}\n")
    subprocess.run(
        ["/bin/sh", "-c", 'echo 1 >"$0/samples-0.i64"', str(folder)], check=True
    )  # the engine writes there too
    writer.commit_step(recorded, windows)
    writer.write_system("local", Facts(kernel=Kernel(release="6")))
    writer.write_session("local", {"step": None})
    writer.write_console("local", b"text")
    writer.write_page("report.html", "page")
    assert sorted(other.rglob("*")) == before
    assert Record.open(moved).run.steps == [recorded.id]
    assert (moved / "report.html").read_text() == "page"
    assert (moved / "steps" / recorded.id / "samples-0.i64").read_text() == "1\n"
    with pytest.raises(InputError):
        RecordWriter(writer.path, writer.id)  # a link now


def partial_record(tmp_path: Path) -> Path:
    writer = RecordWriter.create(tmp_path / "runs", host="h", name="n")
    writer.write_run(run(writer.id))
    writer.commit_step(*step([1]))
    writer.write_system("local", Facts())
    writer.close_partial()
    return writer.path


@pytest.mark.parametrize("name", ["steps", "targets", "steps/01-wakeup-idle", "targets/local"])
@pytest.mark.parametrize("how", ["link", "writable"])
def test_a_record_that_others_can_change_is_not_resumed(tmp_path, name, how):
    path = partial_record(tmp_path)
    if how == "link":
        (path / name).rename(tmp_path / "elsewhere")
        (path / name).symlink_to(tmp_path / "elsewhere")
    else:
        (path / name).chmod(0o777)
    with pytest.raises(InputError, match="cannot be resumed"):
        RecordWriter.open_partial(path)
    # The user's own link to a record is no danger.
    whole = partial_record(tmp_path / "second")
    (tmp_path / "link").symlink_to(whole)
    assert RecordWriter.open_partial(tmp_path / "link").path == whole


@pytest.mark.root
@pytest.mark.parametrize("name", [".", "steps", "targets/local"])
def test_a_record_of_another_user_is_not_resumed(tmp_path, name):
    path = partial_record(tmp_path)
    os.chown(path / name, 65534, 65534)
    with pytest.raises(InputError, match="another user"):
        RecordWriter.open_partial(path)


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path):
    program = (
        "import os, signal, sys; from rtgauge.record.record_folder import RecordFolder; from pathlib import Path\n"
        "with RecordFolder.open(Path(sys.argv[1])).whole_file('x') as file:\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, tmp_path],
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    (left,) = tmp_path.iterdir()
    (tmp_path / ".other.tmp").write_text("of the user")
    folder = RecordFolder.open(tmp_path)
    with folder.whole_file("y") as file:
        file.write(b"y")
        file.flush()
        assert not left.exists()
        folder.write("z", b"z")  # the first writer is not killed
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other.tmp", "y", "z"]


WAYS_TO_WRITE = {
    "write_text",
    "write_bytes",
    "open",
    "copyfile",
    "copy",
    "copy2",
    "write_parquet",
    "write_csv",
    "rename",
    "replace",
}
ALLOWED = {
    # Into folders that this process made under a name that cannot be foreseen, or that only the user can
    # write in.
    "ext/lab/image.py", "ext/lab/boot_guest.py", "ext/lab/kernel_image.py", "ext/lab/userland.py", "ext/lab/headers.py",
    "ext/lab/packages.py",
    "target/engine_path.py", "ext/signal/kernel_modules.py",
    # Into the step's folder, below the record's descriptor; the writer renames the record itself.
    "record/writer.py",
    "runner/engine.py", "ext/cokernel/autotune.py", "ext/instrument/measurers/instrument_latmon.py",
    "ext/importers/other_tool.py", "load/lifecycle.py", "target/ssh_target.py",
    # An unreadable store is moved aside under its own name.
    "ext/store/adding.py",
    # The options of a trace instance, which are files of the kernel.
    "ext/recorder/markers.py",
    # Its own journal of labgrid places, with a name that cannot be foreseen; the guard holds it locked.
    "ext/labgrid/places.py",
    # Logs: what a program prints goes into them while it runs.
    "ext/bisect/bisect_search.py",
    # The records of a failed try of a fleet, in its own folder.
    "ext/fleet/fleet.py",
}  # fmt: skip


def writes(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in WAYS_TO_WRITE:
        return False
    arguments = [
        word.value
        for word in [*call.args, *(word.value for word in call.keywords)]
        if isinstance(word, ast.Constant)
    ]
    match call.func.attr:
        case "open":
            return any(
                isinstance(word, str) and word[:1] in {"w", "a", "x"} and len(word) <= 3 for word in arguments
            )
        case "replace":
            return (
                len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred)
            )  # Path.replace; str.replace has two
        case "copy":
            return isinstance(call.func.value, ast.Name) and call.func.value.id == "shutil"
        case "write_parquet" | "write_csv":
            return (
                bool(call.args) and isinstance(call.args[0], ast.Name) and call.args[0].id in {"out", "path"}
            )
        case "rename":
            return not (
                isinstance(call.func.value, ast.Name) and call.func.value.id in {"os", "frame", "table"}
            )
        case _:
            return True


def test_there_is_one_way_to_write():
    """A new writer uses `whole_file`, or says here why it need not."""
    extensions = (
        path
        for path in ROOT.glob("ext/*/**/*.py")
        if not {"tests", "bench", "firmware"} & set(path.parts[-3:-1])
    )
    others = {
        str(path.relative_to(SOURCES if path.is_relative_to(SOURCES) else ROOT))
        for path in (*SOURCES.rglob("*.py"), *extensions)
        if any(isinstance(node, ast.Call) and writes(node) for node in ast.walk(ast.parse(path.read_text())))
    }
    assert "runner/engine.py" in others
    assert others <= ALLOWED


@pytest.mark.parametrize("how", ["write_parquet", "sink_parquet", "write_csv"])
def test_a_full_disk_is_reported_wherever_polars_meets_it(tmp_path, how):
    """Its own error may say nothing of it: `Invalid thrift: transport error`.

    A limit on the size of files stands for a disk of that size.
    """
    import polars as pl

    table = pl.DataFrame({"a": range(2_000), "b": [[1.5, 2.5]] * 2_000})
    path = tmp_path / "x"

    def write() -> None:
        with (
            clear_errors(path, option="-o", kind="file"),
            whole_file(path) as file,
            for_polars(file) as writer,
        ):
            getattr(table.lazy() if how == "sink_parquet" else table, how)(writer)

    table = table if how != "write_csv" else table.drop("b")
    write()
    size, limits = path.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    path.unlink()
    try:
        for most in (0, 1, 100, size // 2, size - 300, size - 9, size - 1):
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
            with pytest.raises(MeasureError, match=r"^the disk is full: .*/x cannot be written"):
                write()
            assert not list(tmp_path.iterdir())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    write()
    with (
        pytest.raises(pl.exceptions.ColumnNotFoundError),
        path.open("wb") as file,
        for_polars(file) as writer,
    ):
        table.select("c").write_parquet(writer)
