# SPDX-License-Identifier: MIT
"""Finds the places of functions and static probes (USDT) in a program's file, for the kernel's uprobes."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterator
from ctypes.util import find_library
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NamedTuple

from rtgauge.errors import InputError, MeasureError
from rtgauge.input_file import MIB, json_object, open_regular
from rtgauge.nearest_name import nearest
from rtgauge.target.target_protocol import Target

USDT = "usdt:"
ENDBR64 = bytes.fromhex("f30f1efa")
"""Begins functions on x86-64, and does nothing. The next instruction is cheaper to stop at."""
EMULATED = re.compile(rb"\x41?[\x50-\x57]|\x90|[\xe8\xe9\xeb]|[\x70-\x7f]|\x0f[\x80-\x8f]", re.DOTALL)
"""The instructions on x86-64 that the kernel emulates (arch/x86/kernel/uprobes.c): push, nop, jump, call."""
MOST_BINARY = 512 * MIB
COPY_S = 60.0
MOST_SYMBOLS = 2_000_000
NOTES, BASE, PROBE_NOTE = ".note.stapsdt", ".stapsdt.base", "stapsdt"
"""The sections and the owner of the notes of static probes (SystemTap wiki, UserSpaceProbeImplementation)."""


class CodePlace(NamedTuple):
    """A place in a program's file as uprobe_events takes it: 0xOFFSET, for a probe with a semaphore
    0xOFFSET(0xOFFSET). `stepped`: whether the kernel must execute its instruction by a single step.
    """

    text: str
    stepped: bool


def place_on(target: Target, binary: str, symbol: str) -> CodePlace:
    """Return the place of a symbol in a program's file on a target, as `place_of` does.

    Raises InputError if there is no such file or symbol, MeasureError if the file cannot be fetched.
    """
    with TemporaryDirectory(prefix="rtgauge-") as place:
        folder = Path(place)
        there = target.files_folder(folder)
        if target.run(["cp", "--", binary, there], COPY_S).returncode:
            raise InputError(f"{binary} cannot be read on {target.name}; give the whole path of the program")
        target.fetch(folder, MOST_BINARY)
        try:
            with open_regular(folder / PurePosixPath(binary).name) as file:
                return place_of(file, symbol, binary)
        except OSError as error:
            raise InputError(f"{binary} cannot be read: {error.strerror}") from None


def own_place(target: Target, *, stepped: bool) -> str:
    """Return the place in the engine's file at which it measures what a point costs. Raises MeasureError."""
    line = json_object(target.try_engine("point-place")) or {}
    file, offset = line.get("file"), line.get("stepped_offset" if stepped else "offset")
    if not isinstance(file, str) or not isinstance(offset, int):
        raise MeasureError("the engine cannot find its own file; install rtgauge again")
    return f"{file}:0x{offset:x}"


def place_of(file: BinaryIO, symbol: str, shown: str) -> CodePlace:
    """Return the place of a symbol in a file.

    `symbol`: a function by its mangled or demangled name, `usdt:PROVIDER:NAME`, or 0xADDRESS. `shown`: the
    file's name in errors. Raises InputError if there is no such symbol or the file is not a program.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile  # pyright: ignore[reportMissingTypeStubs]

    try:
        elf: Any = ELFFile(file)
        if symbol.startswith(USDT):
            return CodePlace(_static_probe(elf, symbol, shown), stepped=False)
        offset = _offset(elf, _address(elf, symbol, shown), symbol, shown)
        file.seek(offset)
        code, is_x86 = file.read(16), elf.get_machine_arch() == "x64"
        if is_x86 and code.startswith(ENDBR64):
            offset, code = offset + len(ENDBR64), code[len(ENDBR64) :]
        return CodePlace(f"0x{offset:x}", stepped=is_x86 and EMULATED.match(code) is None)
    except (ELFError, struct.error, ValueError, OverflowError, RecursionError, TypeError, AttributeError):
        raise InputError(f"{shown} is not a program or library, or is damaged") from None


def _address(elf: Any, symbol: str, shown: str) -> int:
    if re.fullmatch(r"0x[0-9a-f]{1,16}", symbol):
        return int(symbol, 16)
    functions = dict(_functions(elf))
    if symbol in functions:
        return functions[symbol]
    candidates = {
        name: (full, address)
        for name, address in functions.items()
        if (full := demangled(name)) is not None and symbol in {full, full.partition("(")[0]}
    }
    if len({address for _, address in candidates.values()}) == 1:
        return next(iter(candidates.values()))[1]
    if candidates:
        names = ", ".join(sorted(full for full, _ in candidates.values())[:4])
        raise InputError(f"{shown} has several functions {symbol}: {names}; give one with its arguments")
    if not functions:
        raise InputError(
            f"{shown} has no symbols, because it was stripped; give the unstripped file, or an address of it "
            "as BINARY:0xADDRESS"
        )
    raise InputError(f"{shown} has no function '{symbol[:80]}'{nearest(symbol, functions)}")


def _functions(elf: Any) -> Iterator[tuple[str, int]]:
    """Yield the functions that the file itself has, by name."""
    symbol_count = 0
    for section in (elf.get_section_by_name(name) for name in (".dynsym", ".symtab")):
        for entry in section.iter_symbols() if hasattr(section, "iter_symbols") else ():
            symbol_count += 1
            if symbol_count > MOST_SYMBOLS:
                return
            if entry["st_info"]["type"] == "STT_FUNC" and entry["st_shndx"] != "SHN_UNDEF":
                yield str(entry.name), int(entry["st_value"])


def _offset(elf: Any, address: int, symbol: str, shown: str) -> int:
    """Return the place in the file of an address, which must be code."""
    for segment in elf.iter_segments("PT_LOAD"):
        inside = address - int(segment["p_vaddr"])
        if 0 <= inside < int(segment["p_filesz"]) and int(segment["p_flags"]) & 1:
            return inside + int(segment["p_offset"])
    raise InputError(f"{symbol[:80]} is not in the code of {shown}")


def _file_offset(elf: Any, address: int) -> int | None:
    """Return the place in the file of an address of data."""
    for segment in elf.iter_segments("PT_LOAD"):
        inside = address - int(segment["p_vaddr"])
        if 0 <= inside < int(segment["p_filesz"]):
            return inside + int(segment["p_offset"])
    return None


def _static_probe(elf: Any, symbol: str, shown: str) -> str:
    section, base = elf.get_section_by_name(NOTES), elf.get_section_by_name(BASE)
    word = elf.elfclass // 8
    code = "<" + ("Q" if word == 8 else "I") * 3
    known: list[str] = []
    for note in section.iter_notes() if section is not None else ():
        description = note["n_descdata"]
        if note["n_name"] != PROBE_NOTE:
            continue
        address, then, semaphore = struct.unpack_from(code, description)
        provider, name = (part.decode(errors="replace") for part in description[3 * word :].split(b"\0")[:2])
        known.append(f"{provider}:{name}")
        if known[-1] != symbol.removeprefix(USDT):
            continue
        moved = int(base["sh_addr"]) - then if base is not None else 0
        place = f"0x{_offset(elf, address + moved, symbol, shown):x}"
        counter = _file_offset(elf, semaphore + moved) if semaphore else None
        return place if counter is None else f"{place}(0x{counter:x})"
    probe_name = symbol.removeprefix(USDT)[:80]
    raise InputError(
        f"'{probe_name}' is not a static probe in {shown}{nearest(probe_name, known) if known else ''}"
    )


@cache
def _demangler() -> Any:
    """Return libstdc++'s demangler; None if this machine has no libstdc++."""
    try:
        library = ctypes.CDLL(find_library("stdc++") or "libstdc++.so.6")
        function = library.__cxa_demangle
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    return function


def demangled(name: str) -> str | None:
    """Return the C++ name of a mangled one, with its arguments. Return None if it is no such name, or if this
    machine has no libstdc++.
    """
    function = _demangler() if name.startswith("_Z") else None
    if function is None:
        return None
    status = ctypes.c_int(0)
    text = function(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return None
    try:
        return ctypes.string_at(text).decode(errors="replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(text))
