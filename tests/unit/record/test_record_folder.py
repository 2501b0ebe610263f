# SPDX-License-Identifier: MIT
"""What is checked of a record is what is used: links and folders that are exchanged at the last moment, and
names that a library reads as something else.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from polars.testing import assert_frame_equal

from rtgauge.cli.main import main
from rtgauge.errors import InputError, RecordError
from rtgauge.exporters.record_export import export, windows_table
from rtgauge.exporters.samples_export import samples_table
from rtgauge.record.facts import Facts, Kernel
from rtgauge.record.moments import MOMENTS
from rtgauge.record.reader import Record
from rtgauge.record.samples import SamplesHeader
from rtgauge.record.windows_file import table_of, write_windows
from rtgauge.record.writer import RecordWriter
from rtgauge.report.record_page import Drawn
from tests.support.figures import save_figures
from tests.support.samples import write_samples
from tests.unit.records import run, step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STEP = "steps/01-wakeup-idle"
OF_A_PROBE = "state.probe"
"""A file that a probe of an extension keeps."""


def make(out: Path, latency: int) -> Path:
    """A record with every kind of file, in which all numbers are `latency`."""
    writer = RecordWriter.create(out, host="h", name="n")
    writer.write_run(run(writer.id))
    recorded, windows = step([latency] * 3)
    folder = writer.step_folder(recorded.id)
    write_samples(
        folder / "samples-0.i64",
        SamplesHeader(series=0, cpu=0, start_ns=0, interval_ns=10**6, warm_up_ns=0),
        [latency] * 3,
    )
    (folder / OF_A_PROBE).write_text(str(latency))
    (folder / MOMENTS).write_bytes(b"no gzip")
    with (folder / "windows-00000.parquet").open("wb") as file:
        write_windows(windows, file)
    writer.commit_step(recorded, windows)
    writer.write_system("local", Facts(kernel=Kernel(release=f"6.{latency}")))
    return writer.finish("complete")


def largest(record: Record) -> int:
    return int(record.windows(record.steps[0]).max_ns.max())


def of_a_probe(record: Record) -> bytes:
    try:
        return record.file(record.steps[0], OF_A_PROBE).read(100)
    except OSError as error:
        raise RecordError(str(error.strerror)) from None


READERS: dict[str, Callable[[Record], object]] = {
    "run.json": lambda record: Record.of(record.folder).run.id,
    f"{STEP}/step.json": lambda record: Record.of(record.folder).steps[0].series[0].max_ns,
    "targets/local/system.json": lambda record: Record.of(record.folder).systems["local"].kernel.release,
    f"{STEP}/blocks.parquet": largest,
    f"{STEP}/windows-00000.parquet": lambda record: windows_table(record).collect()["max_ns"].max(),
    f"{STEP}/samples-0.i64": lambda record: samples_table(record.samples(record.steps[0])[0])[
        "latency_ns"
    ].max(),
    f"{STEP}/{OF_A_PROBE}": of_a_probe,
    f"{STEP}/{MOMENTS}": lambda record: record.moments(record.steps[0]),
}
"""A file of a record -> what is read of it."""


class AtOpening:
    """Does something just before the file of a name is opened, after every check that could have been made
    before.
    """

    def __init__(self) -> None:
        self.name, self.change = "", lambda: None
        sys.addaudithook(self._hear)  # which stays for good

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if (
            self.name
            and event == "open"
            and isinstance(arguments[0], str | os.PathLike)
            and Path(arguments[0]).name == self.name
        ):
            self.name = ""
            self.change()


@pytest.fixture(scope="module", name="opening")
def heard() -> Iterator[AtOpening]:
    opening = AtOpening()
    yield opening
    opening.name = ""


@pytest.mark.parametrize("what", ["file", "folder", "record"])
@pytest.mark.parametrize("name", READERS)
def test_a_swap_during_opening_shows_no_other_file(tmp_path, opening, name, what):
    path, other = make(tmp_path / "runs", 1_000), make(tmp_path / "private", 9_000)
    record = Record.open(path)
    before = None if MOMENTS in name else READERS[name](Record.open(path))

    def exchange() -> None:
        victim, by = {
            "file": (path / name, other / name),
            "folder": ((path / name).parent, (other / name).parent),
            "record": (path, other),
        }[what]
        victim.rename(tmp_path / "moved")
        victim.symlink_to(by)

    opening.name, opening.change = name.rpartition("/")[2], exchange
    try:
        assert READERS[name](record) == before
    except RecordError as error:
        assert "is a link" in str(error) or (
            name == f"{STEP}/{MOMENTS}" and "not a gzip" in str(error).lower()
        )
    assert not opening.name, "nothing was exchanged"


@pytest.mark.parametrize("name", READERS)
def test_a_link_in_place_of_a_file_or_folder_is_refused(tmp_path, name):
    path, other = make(tmp_path / "runs", 1_000), make(tmp_path / "private", 9_000)
    for part in (Path(name), Path(name).parents[-2]) if "/" in name else [Path(name)]:
        (path / part).rename(tmp_path / "moved")
        (path / part).symlink_to(other / part)
        with pytest.raises(RecordError, match="is a link"):
            READERS[name](Record.open(path))
        (path / part).unlink()
        (tmp_path / "moved").rename(path / part)


@pytest.mark.parametrize("name", ["~", "file:", "file:x", "*", "x?[0-9]", "s3:", "http:"])
def test_no_library_reads_the_name_of_a_record(tmp_path, monkeypatch, name):
    """polars takes `~` for the home folder and `file:` for a URL, which led past the checksum."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    other = make(tmp_path / "private", 9_000)
    (home / "steps").symlink_to(other / "steps")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    make(here, 1_000).rename(here / name)
    for below in ("steps", "/steps"):
        assert not Path(name + below, "elsewhere").exists()
    record = Record.open(Path(name))
    assert largest(record) == 1_000
    assert_frame_equal(
        windows_table(record).drop("step").collect(), table_of(record.windows(record.steps[0]))
    )
    export(record, "parquet", Path("out.parquet"), windows=True)


def test_a_record_exchanged_while_drawn_gets_the_page(tmp_path, monkeypatch):
    path, other = make(tmp_path / "runs", 1_000), make(tmp_path / "private", 9_000)
    (path / STEP / MOMENTS).unlink()
    (other / "report.html").write_text("precious")
    draw = Drawn.of

    def exchange(record: Record, timing: object) -> Drawn:
        drawn = draw(record, timing)
        path.rename(tmp_path / "moved")
        path.symlink_to(other)
        return drawn

    monkeypatch.setattr(Drawn, "of", exchange)
    monkeypatch.setattr(sys, "argv", ["rtgauge", "show", "--page", str(path)])
    with pytest.raises(SystemExit):
        main()
    assert (other / "report.html").read_text() == "precious"
    assert (tmp_path / "moved/report.html").stat().st_size > 10_000


def test_a_console_that_is_a_link_shows_nothing_and_is_replaced(tmp_path):
    writer = RecordWriter.create(tmp_path / "runs", host="h", name="n")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    place = writer.write_console("local", b"one")
    place.unlink()
    place.symlink_to(secret)
    writer.write_console("local", b"two")
    assert (place.read_text(), place.is_symlink(), secret.read_text()) == ("two", False, "secret")
    place.parent.rename(tmp_path / "moved")
    place.parent.symlink_to(tmp_path)
    with pytest.raises(InputError, match="is not a folder"):
        writer.write_console("local", b"three")


def test_a_folder_for_figures_that_is_a_link_is_not_followed(tmp_path):
    record = Record.open(make(tmp_path / "runs", 1_000))
    (record.path / STEP / MOMENTS).unlink()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "figures").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is a link"):
        save_figures(record, tmp_path / "figures", formats=("svg",))
    assert not list((tmp_path / "elsewhere").iterdir())


def test_only_this_user_may_write_where_a_step_is_measured(tmp_path):
    old = os.umask(0)
    try:
        writer = RecordWriter.create(tmp_path / "runs", host="h", name="n")
        writer.write_run(run(writer.id))
        recorded, windows = step([1])
        assert writer.step_folder(recorded.id).stat().st_mode & 0o777 == 0o700
        assert writer.commit_step(recorded, windows).stat().st_mode & 0o777 == 0o775
    finally:
        os.umask(old)


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "steps/../../x", "steps//x", "."])
def test_a_name_leads_nowhere_else(tmp_path, name):
    folder = Record.open(make(tmp_path / "runs", 1_000)).folder
    with pytest.raises(ValueError, match="must be a relative path"):
        folder.file(name).open()


def test_more_records_than_descriptors_are_compared(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    path = make(tmp_path / "runs", 1_000)
    (path / STEP / MOMENTS).unlink()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 10, hard))
        records = [Record.open(path) for _ in range(40)]
        assert {largest(record) for record in records} == {1_000}
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
