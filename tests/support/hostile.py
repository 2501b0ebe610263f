# SPDX-License-Identifier: MIT
"""Records in which somebody changed something and computed the checksums again, and what every command that
reads a record does with them.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import gzip
import hashlib
import io
import json
import os
import random
import re
import shutil
import struct
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from typer import BadParameter

from rtgauge.cli.main import app
from rtgauge.cli.stdio import Escaping
from rtgauge.errors import EXIT_INPUT, RtgaugeError
from tests.support.archives import own_archive
from tests.support.command_line import is_here
from tests.support.mutated_text import places

if TYPE_CHECKING:
    from collections.abc import Callable

ARCHIVE = Path(__file__).parent.parent / "data" / "records" / "records.tar.xz"
LONGEST_S, MOST_BYTES = 20.0, 1 << 30
USAGE_ERROR: type[Exception] = BadParameter.__mro__[1]
MOMENTS = "moments.ndjson.gz"
REQUIREMENT = "period=1ms latency<=200us hardness=99%"
PAGE, TABLE = "{out}/page.html", "{out}/table.parquet"
READERS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (12, ("show", "{record}")),
    (4, ("show", "{record}", "--json")),
    (2, ("show", "{record}", "--require", REQUIREMENT)),
    (6, ("show", "{record}", "--page", PAGE)),
    (5, ("compare", "{record}", "{other}", "--no-intervals", "--no-tails")),
    (1, ("compare", "{other}", "{record}", "--json")),
    (1, ("compare", "{record}", "{other}", "--no-intervals", "--page", PAGE)),
    (3, ("show", "--frequency", "{record}")),
    (1, ("show", "--frequency", "{record}", "--json")),
    (4, ("advise", "{record}", "--require", REQUIREMENT)),
    (1, ("advise", "{record}", "--require", REQUIREMENT, "--json")),
    (3, ("show", "{record}", "--why")),
    (1, ("show", "{record}", "--why", "--json")),
    (1, ("list", "{runs}")),
    (3, ("export", "{record}")),
    (1, ("export", "{record}", "--format", "parquet", "-o", TABLE)),
    (1, ("export", "{record}", "--format", "parquet", "--windows", "-o", TABLE)),
    *(
        (2, ("export", "{record}", "--format", form))
        for form in (
            "json",
            "junit",
            "kcidb",
            "markdown",
            "openmetrics",
        )
    ),
    (2, ("export", "{record}", "--format", "perfetto")),
    (2, ("export", "{record}", "--format", "trace.dat", "-o", "{out}/trace.dat")),
    (2, ("sched", "{record}")),
    (3, ("resume", "{partial}")),
)
"""How often, and the words of every command that reads a record.

A record that is complete has nothing to resume: only what is checked before is done.
"""
READ_HERE = [(weight, words) for weight, words in READERS if is_here(words)]
"""Those for which no extension is missing."""
NUMBERS = (
    0,
    -1,
    1,
    2,
    3,
    2**31 - 1,
    2**31,
    2**32,
    2**53,
    2**62,
    2**63 - 1,
    -(2**63),
    2**63,
    10**18,
    1e-300,
    1e30,
    -1e30,
    0.5,
    1e15,
    -0.0,
)
TEXTS = (
    "", "0", "1", "-", "nan", "inf", "a" * 5_000, "\x1b[2J", "\0", "\ufffe", "\u2028", "\u202e", "<script>",
    "../../../etc/passwd", "/etc/passwd",
    "[red]", "{{ 7 }}", "{0}", "%s", "\ud800", "0-4095", "0-99999999", "1ms", "idle", "latency", "local",
    "ssh://x", "taskset", "tire", "fifo", "~", "file:x",
)  # fmt: skip
SHAPES: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    {"": None},
    [[1, 2]],
    [{}],
    {"a": {"b": [1, "x", None]}},
    [0] * 50,
    [{}] * 50,
)
DTYPES = (
    pl.Int8,
    pl.Int32,
    pl.Int64,
    pl.UInt64,
    pl.Float64,
    pl.String,
    pl.Boolean,
    pl.List(pl.Float64),
    pl.List(pl.String),
    pl.List(pl.List(pl.Int32)),
)


def unpack(folder: Path) -> list[Path]:
    """Unpack the records that real runs have left, and one of each step alone: small records are read fast.

    Gives their folders.
    """
    with own_archive(ARCHIVE) as archive:
        archive.extractall(folder)
    whole = sorted(folder.iterdir())
    for record in whole:
        run = json.loads((record / "run.json").read_text())
        for step in run["steps"]:
            alone = folder / f"{record.name}-{step}"
            shutil.copytree(
                record,
                alone,
                ignore=lambda _, names, step=step: [
                    name for name in names if re.match(r"[0-9]{2}-", name) and name != step
                ],
            )
            verdicts = [verdict for verdict in run["verdicts"] if verdict["step"] in (None, step)]
            (alone / "run.json").write_text(json.dumps(run | {"steps": [step], "verdicts": verdicts}))
    return sorted(folder.iterdir())


class Mutator:
    """Changes something; what, is drawn from `draw` alone."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def value(self, old: Any) -> Any:
        """Another value: often nearly the same in another type."""
        draw = self.draw
        match draw.randrange(8):
            case 0:
                return str(old)
            case 1:
                return [old]
            case 2:
                return {"value": old}
            case 3 if isinstance(old, (int, float)):
                return draw.choice([-old, old * 1000, old + 0.5, float(old), old // 2, old + 1, bool(old)])
            case 4 | 5:
                return draw.choice(NUMBERS)
            case 6:
                return draw.choice(TEXTS)
            case _:
                return copy.deepcopy(draw.choice(SHAPES))

    def _place(self, document: Any) -> tuple[Any, ...]:
        """The path of a value: most often drawn level by level, so that what is in long lists is not most of
        it.
        """
        draw, place, node = self.draw, (), document
        if draw.random() < 0.2:
            return draw.choice(places(document))
        while isinstance(node, (dict, list)) and node and (not place or draw.random() < 0.75):
            key = draw.choice(list(node)) if isinstance(node, dict) else draw.randrange(len(node))
            place, node = (*place, key), node[key]
        return place

    def json(self, document: Any) -> Any:
        """A changed copy of a document."""
        draw = self.draw
        document = json.loads(json.dumps(document))
        for _ in range(draw.choice((1, 1, 2, 3))):
            place = self._place(document)
            if not place:
                if draw.random() < 0.05:
                    return self.value(document)
                continue
            holder = document
            for key in place[:-1]:
                holder = holder[key]
            key = place[-1]
            match draw.randrange(8):
                case 0:
                    del holder[key]
                case 1:  # what is somewhere else
                    other: Any = document
                    for step in self._place(document):
                        other = other[step]
                    holder[key] = copy.deepcopy(other)
                case 2 if isinstance(holder, dict):
                    holder[draw.choice((*TEXTS, *map(str, holder)))] = holder.pop(key)
                case 2 if isinstance(holder, list):
                    holder *= draw.choice((2, 2, 100))
                case _:
                    holder[key] = self.value(holder[key])
        return document

    def bytes(self, content: bytes) -> bytes:
        """Bits flipped, bytes left out or put in."""
        draw, changed = self.draw, bytearray(content)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(max(len(changed), 1))
            match draw.randrange(5):
                case 0:
                    del changed[at:]
                case 1:
                    changed[at:at] = draw.randbytes(draw.randrange(40))
                case 2:
                    del changed[at : at + draw.randint(1, 100)]
                case _ if changed:
                    changed[at] ^= 1 << draw.randrange(8)
        return bytes(changed)

    def windows(self, file: Path) -> None:
        """Another table: values, columns, types."""
        draw = self.draw
        with file.open("rb") as content:
            frame = pl.read_parquet(content.read())
        with contextlib.suppress(pl.exceptions.PolarsError, OverflowError, TypeError, ValueError):
            name = draw.choice(frame.columns)
            match draw.randrange(10):
                case 0:
                    columns = frame.columns
                    draw.shuffle(columns)
                    frame = frame.select(columns)
                case 1:
                    frame = draw.choice(
                        [
                            frame.drop(name),
                            frame.rename({name: draw.choice(["x", "", "CPU"])}),
                            frame.with_columns(pl.lit(1).alias("more")),
                        ]
                    )
                case 2:
                    frame = frame.with_columns(pl.col(name).cast(draw.choice(DTYPES), strict=False))
                case 3:
                    frame = draw.choice(
                        [
                            frame.head(0),
                            frame.head(1),
                            pl.concat([frame] * draw.randint(2, 50)),
                            frame.reverse(),
                            frame.sample(fraction=0.5, seed=1),
                        ]
                    )
                case _:
                    frame = self._rows(frame)
            frame.write_parquet(
                file, compression=draw.choice(("zstd", "uncompressed", "snappy", "gzip", "lz4"))
            )

    def _rows(self, frame: pl.DataFrame) -> pl.DataFrame:
        draw, rows = self.draw, frame.to_dicts()
        for _ in range(draw.randint(1, 3)):
            row, column = draw.choice(rows), draw.choice(frame.columns)
            old = row[column]
            if isinstance(old, list):
                row[column] = draw.choice(
                    [
                        [],
                        None,
                        old * 2,
                        old[::-1],
                        old[:-1],
                        [0] * 30,
                        [-1],
                        [2**31 - 1],
                        [2**64 - 1],
                        [None],
                        [*old, 2**40],
                    ]
                )
            elif isinstance(old, str):
                row[column] = draw.choice(["", "warm-up", "measure", "\0", None, "x" * 10_000])
            else:
                row[column] = draw.choice(
                    [
                        None,
                        0,
                        1,
                        -1,
                        2**31,
                        2**62,
                        2**63 - 1,
                        2**64 - 1,
                        -(2**63),
                        2**47,
                        float("nan"),
                        float("inf"),
                        (old or 0) + 1,
                    ]
                )
        return pl.DataFrame(rows, schema=frame.schema, strict=False)

    def moments(self, file: Path) -> None:
        """Another trace: values of its lines, the kernel's formats, and the bytes of pages."""
        draw = self.draw
        lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
        for line in lines:
            if "pages" in line and draw.random() < 0.3:
                line["pages"] = {
                    cpu: [self._page(page) for page in pages] for cpu, pages in line["pages"].items()
                }
            if "events" in line and draw.random() < 0.5:
                name = draw.choice(sorted(line["events"]))
                line["events"][name] = self._format(line["events"][name])
            if "header_page" in line and draw.random() < 0.1:
                line["header_page"] = self._format(line["header_page"])
        if draw.random() < 0.5:
            at = draw.randrange(len(lines))
            lines[at] = self.json(lines[at])
        file.write_bytes(gzip.compress("\n".join(map(_dumps, lines)).encode(errors="surrogatepass"), 1))

    def _page(self, text: str) -> str:
        page = bytearray(base64.b64decode(text))
        for _ in range(self.draw.randint(1, 8)):
            if page:
                page[self.draw.randrange(min(len(page), 400))] = self.draw.randrange(256)
        return base64.b64encode(page).decode()

    def _format(self, text: str) -> str:
        """The kernel's description of an event, with a field that is empty, has no elements, or lies
        elsewhere.
        """
        draw, lines = self.draw, text.split("\n")
        at = draw.randrange(len(lines))
        number = str(draw.choice((0, 0, 1, 2, 3, 8, 16, 100, 4096, -1, 2**31, 2**63)))
        match draw.randrange(6):
            case 0:
                lines[at] = re.sub(r"size:[0-9]+", f"size:{number}", lines[at])
            case 1:
                lines[at] = re.sub(r"offset:[0-9]+", f"offset:{number}", lines[at])
            case 2:
                lines[at] = re.sub(
                    r"(field:[^;\[]+?)(\[[^\]]*\])?;",
                    rf"\1[{draw.choice(('0', '', '1', '4', '16', '99999999999', 'NR'))}];",
                    lines[at],
                )
            case 3:
                lines[at] = re.sub(
                    r"field:[^;]*;",
                    draw.choice(("field:;", "field: ;", "field:char x[0];", "field:__data_loc char[] x;")),
                    lines[at],
                )
            case 4:
                del lines[at]
            case _:
                lines.insert(at, draw.choice(lines))
        return "\n".join(lines)

    def samples(self, file: Path) -> None:
        """Another header."""
        content = bytearray(file.read_bytes())
        at = self.draw.choice((8, 12, 16, 20, 24, 32, 40, 48, 56))
        number = self.draw.choice(
            [number for number in NUMBERS if isinstance(number, int) and number < 2**63]
        )
        struct.pack_into(
            "<i" if at < 24 else "<q", content, at, number if at >= 24 else (number + 2**31) % 2**32 - 2**31
        )
        file.write_bytes(content)

    def change(self, record: Path) -> str:
        """Change one file of a record, and compute the checksum again; gives its path."""
        draw = self.draw
        files = sorted(
            str(file.relative_to(record))
            for file in record.rglob("*")
            if file.is_file() and "stream" not in file.name
        )
        name = draw.choices(files, [_weight(file) for file in files])[0]
        file = record / name
        if draw.random() < 0.08:
            file.write_bytes(self.bytes(file.read_bytes()))
        elif name.endswith(".json"):
            file.write_text(_dumps(self.json(json.loads(file.read_text()))), errors="surrogatepass")
        elif name.endswith(".parquet"):
            self.windows(file)
        elif name.endswith(MOMENTS):
            self.moments(file)
        elif name.endswith(".i64"):
            self.samples(file)
        if not name.endswith(".json"):
            step = file.parent / "step.json"
            written = json.loads(step.read_text())
            written["checksums"] = {
                **written["checksums"],
                file.name: hashlib.sha256(file.read_bytes()).hexdigest(),
            }
            step.write_text(json.dumps(written))
        return name


def _weight(name: str) -> float:
    return next(
        (
            weight
            for end, weight in (
                ("step.json", 4.0),
                ("run.json", 3.0),
                ("system.json", 2.0),
                (".parquet", 3.0),
                (MOMENTS, 8.0),
                (".i64", 0.5),
            )
            if name.endswith(end)
        ),
        0.2,
    )


def _dumps(document: Any) -> str:
    try:
        return json.dumps(document, ensure_ascii=False)
    except ValueError:  # a number with more digits than Python writes
        return "[" + "9" * 5_000 + "]"


class StartedError(RtgaugeError):
    """A program was to be started, or somebody to be connected to: it is not.

    Only going on with a run needs that.
    """


class Guard:
    """While it watches: what is opened for writing, renamed, made, removed or started outside of the folders
    where a command may.

    `os.open` with a folder's
    descriptor is not seen by its place; for that the files around are compared."""

    WRITES = frozenset(
        (
            "os.rename",
            "os.remove",
            "os.mkdir",
            "os.rmdir",
            "os.symlink",
            "os.link",
            "os.truncate",
            "os.chmod",
            "os.chown",
            "shutil.rmtree",
        )
    )
    STARTS = frozenset(("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect"))

    def __init__(self, *allowed: Path) -> None:
        self.allowed = tuple(f"{folder.resolve()}/" for folder in allowed)
        self.watching = False
        self.seen: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.watching:
            return
        if event == "open":
            path, _, flags = arguments
            if (
                isinstance(path, (str, bytes))
                and isinstance(flags, int)
                and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            ):
                self._note(event, os.fsdecode(path))
        elif event in self.WRITES:
            self._note(
                event,
                os.fsdecode(arguments[0]) if isinstance(arguments[0], (str, bytes, os.PathLike)) else "",
            )
        elif event in self.STARTS:
            raise StartedError(f"{event} {arguments[0]!r}"[:200])

    def _note(self, event: str, path: str) -> None:
        beside = path.startswith("/") and not os.path.normpath(path).startswith(self.allowed)
        if beside and not path.startswith(("/dev/null", "/proc/self/", f"/proc/{os.getpid()}/")):
            self.seen.append(f"{event} {path}")


@dataclass(frozen=True)
class Outcome:
    """What a command did with a record: its exit status, its CPU time (s) and by how much its memory grew
    (bytes); `fault` None: what it should.
    """

    words: tuple[str, ...]
    changed: str
    status: int
    seconds: float
    grown: int
    fault: str | None


class Hostile:
    """Changes records and has them read, in a folder of its own.

    Number and seed alone say what is changed and which command reads it.
    """

    def __init__(self, folder: Path, seed: int, bases: list[Path] | None = None) -> None:
        self.seed = seed
        self.runs, self.out, self._around = folder / "runs", folder / "out", folder / "around"
        for made in (self.runs, self.out, self._around, folder / "bases"):
            made.mkdir()
        self._bases = bases if bases is not None else unpack(folder / "bases")
        (self._around / "precious").write_text("unchanged\n")
        self._others = [base for base in self._bases if (base / "run.json").stat().st_size > 0]
        self._guard = Guard(self.runs, self.out)

    def try_change(self, number: int) -> Outcome:
        """Change a record and have it read."""
        draw = random.Random(f"{self.seed} {number}")
        for stale in (*self.runs.iterdir(), *self.out.iterdir()):
            shutil.rmtree(stale) if stale.is_dir() else stale.unlink()
        words = draw.choices([words for _, words in READ_HERE], [weight for weight, _ in READ_HERE])[0]
        # A whole record has many steps, and takes as long as all of them.
        alone = [base for base in self._bases if re.search(r"-[0-9]{2}-", base.name)]
        candidates = alone if draw.random() < 0.93 else self._bases
        if words[0] == "explain" or "perfetto" in words or "trace.dat" in words:
            candidates = [base for base in candidates if list(base.glob(f"steps/*/{MOMENTS}"))] or candidates
        base = draw.choice(candidates)
        record = self.runs / ("record.partial" if "{partial}" in words else "record")
        shutil.copytree(base, record)
        changed = f"{base.name}: {Mutator(draw).change(record)}"
        given = {"record": record, "partial": record, "runs": self.runs, "other": base, "out": self.out}
        reported = tuple(word.format(**given) if word.startswith("{") else word for word in words)
        return self.run(reported, changed)

    def run(self, words: tuple[str, ...], changed: str) -> Outcome:
        """Run a command as its function; gives what it did."""
        before, output, errors, fault, status = _memory("VmRSS"), _stream(), _stream(), None, 0
        _forget_peak()
        started = time.process_time()
        self._guard.seen.clear()
        self._guard.watching = True
        try:
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
                status = app(list(words), prog_name="rtgauge", standalone_mode=False) or 0
        except StartedError as error:
            fault = None if words[0] == "run" else f"started: {error}"
        except RtgaugeError as error:
            status = error.status
            if "\n" in str(error) or not str(error):
                fault = f"an error of several lines: {error}"
            elif error.status != EXIT_INPUT:
                fault = f"exit status {error.status}: {error}"
        except USAGE_ERROR as error:
            fault = f"the command line: {error}"
        except Exception:  # noqa: BLE001 - what is not expected is what is looked for
            fault = traceback.format_exc()
        except pl.exceptions.PanicException as error:
            fault = f"{type(error).__name__}: {error}"
        finally:
            self._guard.watching = False
        seconds, grown = time.process_time() - started, _memory("VmHWM") - before
        text = _text(errors)
        if fault is None and ("Traceback" in text or "panicked" in text or "Warning" in text):
            fault = f"on standard error: {text[:2_000]}"
        if fault is None and self._guard.seen:
            fault = f"written elsewhere: {self._guard.seen[0]}"
        if fault is None and re.search("[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f\u202e]", _text(output)):
            fault = "a control character on standard output"
        if seconds > LONGEST_S:
            fault = f"{fault or 'slow'}: {seconds:.1f} s"
        if grown > MOST_BYTES:
            fault = f"{fault or 'large'}: {grown >> 20} MiB"
        return Outcome(words, changed, status, seconds, grown, fault)

    def check_around(self) -> None:
        """Raises AssertionError where something beside the record changed."""
        assert sorted(entry.name for entry in self._around.parent.iterdir()) == [
            "around",
            "bases",
            "out",
            "runs",
        ]
        assert [file.name for file in self._around.iterdir()] == ["precious"]
        assert (self._around / "precious").read_text() == "unchanged\n"


def _stream() -> Escaping:
    """A standard output of a command."""
    buffer = io.BytesIO()
    stream = Escaping(buffer, encoding="utf-8", errors="replace", write_through=True)
    stream.unescaped = io.TextIOWrapper(buffer, encoding="utf-8", errors="replace", write_through=True)
    return stream


def _text(stream: Escaping) -> str:
    stream.flush()
    stream.unescaped.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _memory(name: str) -> int:
    return next(
        int(line.split()[1]) * 1024
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith(f"{name}:")
    )


if TYPE_CHECKING:
    Progress = Callable[[int, Outcome], None]
