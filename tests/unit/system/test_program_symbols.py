# SPDX-License-Identifier: MIT
"""The places of functions and static probes in programs that gcc made."""

from __future__ import annotations

import io
import platform
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.errors import InputError
from rtgauge.system.program_symbols import CodePlace, demangled, place_of

CODE = bytes.fromhex("55909090deadbeef")
SOURCE = r"""
namespace control { struct Loop { void read(int); void write(int); void write(double); }; }
__attribute__((noinline)) void control::Loop::read(int) { asm volatile("nop"); }
__attribute__((noinline)) void control::Loop::write(int) { asm volatile("nop"); }
__attribute__((noinline)) void control::Loop::write(double) { asm volatile("nop;nop"); }
asm(".globl marked; .type marked, %function; marked: .byte 0x55,0x90,0x90,0x90,0xde,0xad,0xbe,0xef");
asm(".globl guarded; .type guarded, %function; guarded: .byte 0xf3,0x0f,0x1e,0xfa,0x55,0x90,0x90,0x90,0xde,0xad,0xbe,0xef");
asm(".globl stored; .type stored, %function; stored: .byte 0xc6,0x44,0x24,0xf8,0,0xc3");
asm(".pushsection .note.stapsdt,\"\",%note; .balign 4; .4byte 8, 2f-1f, 3; .asciz \"stapsdt\"; 1: .8byte marked, 0, 0;"
    ".asciz \"io\"; .asciz \"done\"; .asciz \"\"; 2: .balign 4; .popsection");
int main() { control::Loop l; l.read(1); l.write(1); l.write(1.0); }
"""
IS_X86_64 = platform.machine() == "x86_64"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    (folder / "loop.cpp").write_text(SOURCE)
    protection = ["-fcf-protection=none"] if IS_X86_64 else []
    command = ["g++", "-no-pie", *protection, folder / "loop.cpp", "-o", folder / "loop"]
    subprocess.run(command, check=True)
    return folder / "loop"


def place_in(program: Path, symbol: str) -> CodePlace:
    with program.open("rb") as file:
        return place_of(file, symbol, str(program))


def code_at(program: Path, place: CodePlace) -> bytes:
    return program.read_bytes()[int(place.text, 16) :][: len(CODE)]


@pytest.mark.parametrize("symbol", ["marked", "usdt:io:done", *(["guarded"] if IS_X86_64 else [])])
def test_a_place_is_where_the_code_is_in_the_file(program: Path, symbol: str) -> None:
    place = place_in(program, symbol)
    assert code_at(program, place) == CODE
    assert not place.stepped


def test_an_instruction_that_is_not_emulated_is_stepped(program: Path) -> None:
    """The bytes are code of x86-64, and rtgauge knows which instructions are stepped there only."""
    assert place_in(program, "stored").stepped == IS_X86_64


def test_functions_of_cpp_have_three_names(program: Path) -> None:
    names = ("_ZN7control4Loop4readEi", "control::Loop::read(int)", "control::Loop::read")
    assert len({place_in(program, name) for name in names}) == 1


def test_an_address_is_that_of_the_program_not_of_its_file(program: Path) -> None:
    names = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    address = re.search(r"^([0-9a-f]+) T marked$", names, re.MULTILINE)
    assert address is not None
    assert place_in(program, f"0x{address[1].lstrip('0')}") == place_in(program, "marked")


@pytest.mark.parametrize(
    ("symbol", "reason"),
    [
        ("control::Loop::write", "several functions control::Loop::write: control::Loop::write"),
        ("markt", "has no function 'markt'; did you mean 'marked'"),
        ("usdt:io:begin", "'io:begin' is not a static probe in"),
        ("0x1", "is not in the code"),
    ],
)
def test_what_is_not_there_is_refused(program: Path, symbol: str, reason: str) -> None:
    with pytest.raises(InputError, match=re.escape(reason)):
        place_in(program, symbol)


def test_a_stripped_program_says_what_to_give(program: Path, tmp_path: Path) -> None:
    subprocess.run(["strip", "-s", program, "-o", tmp_path / "loop"], check=True)
    with pytest.raises(InputError, match="was stripped; give the unstripped file, or an address"):
        place_in(tmp_path / "loop", "marked")


def test_other_files_are_no_programs() -> None:
    with pytest.raises(InputError, match="is not a program or library"):
        place_of(io.BytesIO(b"#!/bin/sh\n"), "main", "script")


def test_names_that_are_not_mangled_stay_as_they_are() -> None:
    assert demangled("main") is None
    assert demangled("_Znonsense") is None


@given(st.data())
def test_a_damaged_program_is_read_or_refused(program: Path, data: st.DataObject) -> None:
    content = bytearray(program.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1) | st.integers(0, 1023))
        content[at] = data.draw(st.integers(0, 255))
    symbol = data.draw(st.sampled_from(["marked", "control::Loop::read", "usdt:io:done", "0x401136"]))
    try:
        place_of(io.BytesIO(bytes(content)), symbol, "damaged")
    except InputError:
        return
