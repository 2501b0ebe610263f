# SPDX-License-Identifier: MIT
"""Nothing that a record, a target, a plan or another user wrote commands the terminal, whatever prints it;
figures and pages take it too.
"""

from __future__ import annotations

import ast
import json
import os
import pty
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from rtgauge.cli.main import main
from rtgauge.escape import escaped, one_line
from rtgauge.exporters.record_export import export
from rtgauge.record.facts import Facts
from rtgauge.record.reader import Record
from rtgauge.record.writer import RecordWriter
from rtgauge.report.record_page import html
from tests.support.figures import save_figures
from tests.unit.records import run, step

SOURCES = Path(__file__).parents[2] / "src/rtgauge"
HOSTILE = "a\x1b]0;b\x07\x9b31m\u202ec\u2066\0\ufffe\u2028d\u200be\U000e0041"
UNSAFE = [c for c in HOSTILE if not c.isprintable()]


class CommandResult(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def is_safe(text: str) -> bool:
    return not any(c in text for c in UNSAFE)


@pytest.fixture
def command(capfd, monkeypatch) -> Callable[..., CommandResult]:
    """Runs a command as the program does."""

    def call(*words: object) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["rtgauge", *map(str, words)])
        monkeypatch.setattr(sys, "stdout", sys.stdout)
        monkeypatch.setattr(sys, "stderr", sys.stderr)
        with pytest.raises(SystemExit) as end:
            main()
        sys.stdout.flush()
        captured = capfd.readouterr()
        return CommandResult(end.value.code or 0, captured.out, captured.err)

    return call


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A record with hostile text wherever text can be."""
    writer = RecordWriter.create(tmp_path / "runs", host="h", name="n")
    writer.write_run(
        run(writer.id).model_copy(
            update={
                "plan": {"name": HOSTILE},
                "command": ["rtgauge", HOSTILE],
                "targets": [HOSTILE],
                "requirement": None,
            }
        )
    )
    recorded, windows = step([1_000, 2_000, 3_000] * 10, load=HOSTILE)
    recorded.marks[:] = []
    recorded.tool = recorded.end_reason = HOSTILE
    recorded.key = recorded.key.model_copy(update={"targets": {"self": HOSTILE}})
    recorded.parameters |= {HOSTILE: HOSTILE}
    writer.commit_step(recorded, windows)
    facts = Facts.model_validate({"host": HOSTILE, "kernel": {"release": HOSTILE}, HOSTILE: [HOSTILE]})
    writer.write_system(HOSTILE, facts)
    return writer.finish("complete")


def test_every_control_and_format_character_is_escaped():
    wrong = [
        hex(code)
        for code in range(0x110000)
        if (unicodedata.category(chr(code)) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and code not in {9, 10})
        != (escaped(chr(code)) != chr(code))
        and unicodedata.category(chr(code)) not in {"Cn", "Mn"}
    ]
    assert wrong == []


def test_what_is_escaped_means_the_same_in_json():
    assert json.loads(escaped(json.dumps(HOSTILE, ensure_ascii=False))) == HOSTILE
    assert escaped(escaped(HOSTILE)) == escaped(HOSTILE)
    assert one_line("a\nb\tc") == "a\\nb\\tc"
    assert escaped("a\nb\tc – 日本 ≥ é") == "a\nb\tc – 日本 ≥ é"


@pytest.mark.parametrize(
    "words",
    [
        ("show",),
        ("show", "--json"),
        ("export",),
        ("export", "--format", "json"),
        ("show", "--frequency"),
        ("show", "--page=/dev/null/x"),
    ],
)
def test_commands_on_a_hostile_record(command, path, words):
    completed = command(words[0], path, *words[1:])
    assert "Traceback" not in completed.stderr
    assert is_safe(completed.stdout)
    assert is_safe(completed.stderr)
    assert "\\u001b" in completed.stdout or "--frequency" in words or words[-1].startswith("--page")


def test_json_is_what_it_was(command, path):
    document = json.loads(command("show", path, "--json").stdout)
    assert document["run"]["plan"] == {"name": HOSTILE}


def test_a_table_in_a_file(path, tmp_path):
    export(Record.open(path), "csv", tmp_path / "x.csv")
    assert is_safe((tmp_path / "x.csv").read_text())


def test_names_of_folders(command, path):
    path.rename(path.with_name("a\x1b[2J\u202eb\nc"))
    os.mkdir(os.fsencode(path.parent) + b"/\xff\xfe")  # noqa: PTH102 - a name that is not UTF-8
    (Path(os.fsdecode(os.fsencode(path.parent) + b"/\xff\xfe")) / "run.json").write_text("{}")
    completed = command("list", path.parent)
    assert is_safe(completed.stdout + completed.stderr)
    assert "complete" in completed.stdout


@pytest.mark.parametrize(
    "text",
    [
        '[[step]]\n"a\\u001b[2J" = 1',
        'name = "\\u202e"',
        '[[step]]\nload = "\\u009b31m"',
        '[[step]]\nprobe = "\\u001b]0;x"',
        'require = "\\u001b[2J"\n[[step]]',
        'targets = ["\\u001b[2J"]\n[[step]]',
        "\x1b",
        '"\x9b"',
    ],
)
def test_errors_in_plans(command, tmp_path, text):
    (tmp_path / "p.toml").write_text(text, encoding="utf-8")
    completed = command("run", tmp_path / "p.toml")
    assert completed.returncode == 2
    assert is_safe(completed.stderr)
    assert completed.stderr.count("\n") == 1


def test_errors_in_words_of_the_command_line(command):
    for words in (
        ("show", "a\x1b[2J\nb"),
        ("run", "\u202e"),
        ("advise", "--require", "\x9b", "x"),
        ("\x1b[2J",),
        ("run", "--\x1b[2J"),
    ):
        completed = command(*words)
        assert completed.returncode == 2
        assert is_safe(completed.stderr)
        assert completed.stderr.count("\n") == 1


def test_a_terminal_gets_our_colours_and_nobody_elses(path):
    """What rich draws is no text of a record."""
    controller, terminal = pty.openpty()
    program = [sys.executable, "-c", "from rtgauge.cli.main import main; main()", "show", str(path)]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "PYTHONUTF8": "1"}
    with subprocess.Popen(
        program, stdout=terminal, stderr=terminal, stdin=subprocess.DEVNULL, env=environment
    ) as process:
        os.close(terminal)
        output = b""
        try:
            while piece := os.read(controller, 65536):
                output += piece
        except OSError:  # EIO: the other end is closed
            pass
    os.close(controller)
    assert process.returncode == 0
    text = output.decode()
    assert "\x1b[" in text
    assert "\x1b]" not in text
    assert "\x9b" not in text
    assert "\u202e" not in text
    assert "\\u001b]0;b" in text.replace("\r\n", "")


def test_figures_of_hostile_names(path, tmp_path):
    """Each of these ended the process in a panic."""
    files = save_figures(Record.open(path), tmp_path / "figures")
    assert {file.suffix for file in files} == {".png", ".svg", ".pdf"}
    assert all(file.stat().st_size > 500 for file in files)
    assert all(is_safe(file.read_text()) for file in files if file.suffix == ".svg")


def test_the_page_of_hostile_names(path):
    text = html(Record.open(path))
    shown = text[: text.index("<script")]
    assert is_safe(shown)
    data = text[text.index('id="report-data">') :]
    data = data[data.index(">") + 1 : data.index("</script>")]
    assert is_safe(json.dumps(json.loads(data)["figures"], ensure_ascii=False))


def test_commands_print_to_the_console_that_escapes():
    plain = [
        str(path)
        for path in (SOURCES / "cli").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        and node.module == "rich.console"
        and any(name.name == "Console" for name in node.names)
    ]
    assert plain == []
