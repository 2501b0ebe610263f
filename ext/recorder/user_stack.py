# SPDX-License-Identifier: MIT
"""Where in a program a thread was when it broke a rule: names of functions for the results `rule-stack` of
`watch` (docs/formats/stream.md).

The kernel follows frame pointers, but the functions that make system calls have none. So the innermost
frames come from the files' own tables of frames (.eh_frame, DWARF 5, section 6.4), as far as the recorded
part of the stack reaches. A caller is named only if these tables say where its address is.
"""

from __future__ import annotations

import bisect
import re
import struct
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from rtgauge.input_file import MIB, open_regular
from rtgauge.record.model import Result, Step
from rtgauge.report.broken_rules_table import rule_words
from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.report.table import Table, numbers, texts
from rtgauge.report.terminal_table import print_tables
from rtgauge.system.program_symbols import demangled
from rtgauge.units import format_count

if TYPE_CHECKING:
    from rich.console import Console

    from rtgauge.report.record_view import RecordView

RESULT = "rule-stack"
MOST_FRAMES, MOST_SYMBOLS = 12, 2_000_000
MOST_SHOWN, MORE = 6, "..."
MOST_BINARY = 512 * MIB
RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")
BP, SP, RETURN = 6, 7, 16
"""The registers of x86-64 as DWARF numbers them (System V ABI, AMD64, figure 3.36)."""


class FilePlace(NamedTuple):
    """A place in a file: the file's number in the stack, and the offset in it."""

    file: int
    offset: int


@dataclass
class RecordedStack:
    """A stack as the engine describes it. `files`: number -> build ID ("-": unknown) and path. `chain`: the
    kernel's call chain, the innermost first. `code`, `pointers`: what the stack has at a distance from its
    innermost end: an address of code, or (as such a distance) of itself. `bp`: the frame pointer's.
    """

    files: dict[int, tuple[str, str]] = field(default_factory=dict[int, "tuple[str, str]"])
    chain: list[FilePlace] = field(default_factory=list[FilePlace])
    code: dict[int, FilePlace] = field(default_factory=dict[int, FilePlace])
    pointers: dict[int, int] = field(default_factory=dict[int, int])
    bp: int | None = None

    @classmethod
    def parse(cls, text: str) -> RecordedStack:
        """Read the text of the engine. Lines that are none are left out."""
        stack = cls()
        for line in text.splitlines():
            kind, _, rest = line.partition(" ")
            try:
                match kind[:1]:
                    case "m":
                        build_id, _, path = rest.partition(" ")
                        stack.files[int(kind[1:])] = (build_id, path)
                    case "f" | "s":
                        file, offset = rest.split(" ")
                        place = FilePlace(int(file), int(offset, 16))
                        if kind == "f":
                            stack.chain.append(place)
                        else:
                            stack.code[int(kind[1:], 16)] = place
                    case "p":
                        stack.pointers[int(kind[1:], 16)] = int(rest, 16)
                    case "b":
                        stack.bp = int(rest, 16)
                    case _:
                        pass
            except ValueError:
                continue
        return stack


class FrameRule(NamedTuple):
    """How to find the caller's frame: the canonical frame address (CFA) is `register` + `offset`; the return
    address and the caller's frame pointer (None: unchanged) are at these distances from it.
    """

    register: int
    offset: int
    returns_at: int
    bp_at: int | None


class CodeFile:
    """A program or library with its symbols. Raises OSError if the file is not there, ValueError if it is
    damaged or another build.
    """

    def __init__(self, path: str, build_id: str) -> None:
        from elftools.dwarf.callframe import FDE  # pyright: ignore[reportMissingTypeStubs]
        from elftools.elf.elffile import ELFFile  # pyright: ignore[reportMissingTypeStubs]

        self._file = open_regular(Path(path), MOST_BINARY)
        self._elf: Any = ELFFile(self._file)
        if build_id != "-" and build_id != self._build_id():
            raise ValueError
        self._dwarf: Any = self._elf.get_dwarf_info() if self._elf.get_machine_arch() == "x64" else None
        names: dict[int, tuple[int, str]] = {}
        for section in (self._elf.get_section_by_name(name) for name in (".dynsym", ".symtab")):
            for number, entry in enumerate(
                section.iter_symbols() if hasattr(section, "iter_symbols") else ()
            ):
                if number < MOST_SYMBOLS and entry["st_info"]["type"] == "STT_FUNC" and entry["st_value"]:
                    names.setdefault(int(entry["st_value"]), (int(entry["st_size"]), str(entry.name)))
        self._starts = sorted(names)
        self._names = names
        self._rules: list[Any] = []
        if self._dwarf is not None and self._dwarf.has_EH_CFI():
            self._rules = [each for each in self._dwarf.EH_CFI_entries() if isinstance(each, FDE)]
        self._rules.sort(key=lambda each: each.header["initial_location"])
        self._rule_starts = [each.header["initial_location"] for each in self._rules]

    def _build_id(self) -> str:
        section = self._elf.get_section_by_name(".note.gnu.build-id")
        return next((str(note["n_desc"]) for note in section.iter_notes()), "-") if section else "-"

    def address(self, offset: int) -> int | None:
        """Return the address of a place in the file, as its symbols have it."""
        for segment in self._elf.iter_segments("PT_LOAD"):
            inside = offset - int(segment["p_offset"])
            if 0 <= inside < int(segment["p_filesz"]) and int(segment["p_flags"]) & 1:
                return inside + int(segment["p_vaddr"])
        return None

    def function(self, address: int) -> str | None:
        """Return the function at an address, demangled."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        size, name = self._names[self._starts[at]]
        if size and address >= self._starts[at] + size:
            return None
        return RUST_HASH.sub("", (demangled(name) or name).partition("(")[0])

    def line(self, address: int) -> str | None:
        """Return the file and line of the source at an address; None without debug information."""
        if self._dwarf is None or not self._dwarf.has_debug_info:
            return None
        unit = self._unit(address)
        program = None if unit is None else self._dwarf.line_program_for_CU(unit)
        if program is None:
            return None
        before: Any = None
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if before is not None and before.address <= address < state.address:
                files = program["file_entry"]
                number = before.file - (0 if program["version"] >= 5 else 1)
                name = PurePosixPath(files[number].name.decode(errors="replace")).name
                return f"{name}:{before.line}"
            before = None if state.end_sequence else state
        return None

    def _unit(self, address: int) -> Any:
        ranges = self._dwarf.get_aranges()
        offset = None if ranges is None else ranges.cu_offset_at_addr(address)
        return None if offset is None else self._dwarf.get_CU_at(offset)

    def rule(self, address: int) -> FrameRule | None:
        """Return how to find the caller of the code at an address; None if the file does not say."""
        at = bisect.bisect_right(self._rule_starts, address) - 1
        if at < 0:
            return None
        entry = self._rules[at]
        if address >= self._rule_starts[at] + entry.header["address_range"]:
            return None
        row: Any = None
        for each in entry.get_decoded().table:
            if each["pc"] > address:
                break
            row = each
        if row is None or row["cfa"].reg not in {BP, SP} or getattr(row.get(RETURN), "type", "") != "OFFSET":
            return None
        saved = row.get(BP)
        if saved is not None and saved.type not in {"OFFSET", "SAME_VALUE"}:
            return None
        bp_at = saved.arg if saved is not None and saved.type == "OFFSET" else None
        return FrameRule(row["cfa"].reg, row["cfa"].offset, row[RETURN].arg, bp_at)


@lru_cache(maxsize=64)
def code_file(path: str, build_id: str) -> CodeFile | None:
    """Return a file; None if it is not here, damaged, or another build."""
    from elftools.common.exceptions import DWARFError, ELFError

    try:
        return CodeFile(path, build_id)
    except (OSError, ValueError, ELFError, DWARFError, struct.error, TypeError, AttributeError, KeyError):
        return None


def frames_of(stack: RecordedStack) -> list[FilePlace]:
    """Return the frames that are certain, the innermost first."""
    frames = stack.chain[:1]
    sp: int | None = 0
    bp, kernels, walked = stack.bp, True, 1
    """`kernels`: the frame pointer is still the one from which the kernel walked `walked` frames."""
    while frames and len(frames) < MOST_FRAMES:
        rule = _rule(stack, frames[-1], inner=len(frames) == 1)
        if rule is None:
            break
        start = sp if rule.register == SP else bp
        cfa = None if start is None else start + rule.offset
        caller = None if cfa is None else stack.code.get(cfa + rule.returns_at)
        if rule.register == BP and kernels:
            caller = caller or next(iter(stack.chain[walked : walked + 1]), None)
            walked += 1
        if caller is None:
            break
        if rule.bp_at is not None:
            bp = None if cfa is None else stack.pointers.get(cfa + rule.bp_at)
            kernels = kernels and rule.register == BP
        sp = cfa
        frames.append(caller)
    return frames


def _rule(stack: RecordedStack, place: FilePlace, *, inner: bool) -> FrameRule | None:
    build_id, path = stack.files.get(place.file, ("-", ""))
    file = code_file(path, build_id)
    # A return address is after the call, perhaps in the next function.
    address = None if file is None else file.address(place.offset - (not inner))
    try:
        return None if file is None or address is None else file.rule(address)
    except (KeyError, TypeError, AttributeError, ValueError):  # damaged, or of a kind that elftools lacks
        return None


def words_of(stack: RecordedStack) -> str:
    """Return the functions, the innermost first, with their lines if the files have debug information."""
    words: list[str] = []
    named = 0
    """How many words there are up to the last function with a name: below main, libc has none."""
    for number, place in enumerate(frames_of(stack)):
        build_id, path = stack.files.get(place.file, ("-", ""))
        file = code_file(path, build_id)
        address = None if file is None else file.address(place.offset - (number > 0))
        name = None if file is None or address is None else file.function(address)
        line = None if file is None or address is None else file.line(address)
        shown = name or f"{PurePosixPath(path).name}+0x{place.offset:x}"
        words.append(f"{shown} ({line})" if line else shown)
        named = len(words) if name or not number else named
        if name == "main":
            break
    more = [MORE] if named > MOST_SHOWN else []
    return " < ".join([*words[: min(named, MOST_SHOWN)], *more])


class RuleStack(NamedTuple):
    """Where a thread broke a rule: in which functions, and how often of the times whose stacks were taken."""

    task: str
    rule: str
    call: str
    where: str
    stacks: int


def rule_stacks(results: Iterable[Result]) -> list[RuleStack]:
    """Return where threads broke rules, the most frequent place of each rule first."""
    found: Counter[tuple[str, str, str, str]] = Counter()
    for result in results:
        text, count = result.values.get("frames"), result.values.get("count")
        if result.name == RESULT and isinstance(text, str) and isinstance(count, int):
            task, rule, call = (str(result.labels.get(name, "")) for name in ("task", "rule", "call"))
            if words := words_of(RecordedStack.parse(text)):
                found[task, rule, call, words] += count
    rows = [RuleStack(*key, count) for key, count in found.items()]
    return sorted(rows, key=lambda each: (*each[:3], -each.stacks))


def stacks_table(results: Iterable[Result]) -> Table | None:
    """Return a row for each place at which a thread broke a rule; None if no stack is known."""
    rows = [
        [
            each.task,
            rule_words(each.rule, each.call),
            each.where,
            format_count(each.stacks),
        ]
        for each in rule_stacks(results)
    ]
    columns = (
        *texts("thread", "what it did in its cycles", "functions, the innermost first"),
        *numbers("stacks"),
    )
    return Table("The functions that did it", columns, rows) if rows else None


class RulePlaces(Presenter):
    """Shows where in the program threads broke the rules of `watch`."""

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:  # noqa: ARG002
        """Print a table for each step."""
        print_tables(_tables(steps), console)

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:  # noqa: ARG002
        """Return the tables."""
        tables = _tables(steps)
        return (
            Chapter("places", "Places in the program", tables, "where threads broke rules")
            if tables
            else None
        )


def _tables(steps: Sequence[Step]) -> list[Table]:
    found = [stacks_table(step.results) for step in steps]
    return [table for table in found if table is not None]


PLACES = RulePlaces()
