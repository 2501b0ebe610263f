# SPDX-License-Identifier: MIT
"""The registry has every mark that is made, and the page of the marks is made from it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tools import reference

from rtgauge.record.marks import Mark, MarkKind, MarkKindBase, Severity, mark_kinds

ROOT = Path(__file__).parents[2]
ENGINE = sorted(
    path
    for path in (*ROOT.glob("engine/**/*.c"), *ROOT.glob("ext/*/engine/**/*.c"))
    if "tests" not in path.parts
)
HOST = sorted(
    path
    for folder in (ROOT / "src" / "rtgauge", ROOT / "ext")
    for path in folder.rglob("*.py")
    if not {"tests", "bench"} & set(path.relative_to(ROOT).parts)
)
OF_EXTENSIONS = {"OVERLOAD"}
"""Marks of the core that only extensions make, each of them several."""
STREAM_MARK = re.compile(r"(?<!void )stream_mark\((.*?)\);$", re.DOTALL | re.MULTILINE)


def test_the_page_has_every_mark() -> None:
    rows = re.findall(r"^\| <a id=\"[\w-]+\"></a>`([\w-]+)` \|", reference.marks_page(), re.MULTILINE)
    assert rows == sorted(mark_kinds())


def engine_marks() -> list[tuple[str, set[Severity], str]]:
    """Names of each call in the engine, its severities, and where it stands."""
    actual: list[tuple[str, set[Severity], str]] = []
    for path in ENGINE:
        for call in STREAM_MARK.findall(path.read_text(encoding="utf-8")):
            severities = {Severity(word.lower()) for word in re.findall(r"SEVERITY_(\w+)", call)}
            head = call.partition("SEVERITY_")[0]
            actual += [(name, severities, path.name) for name in re.findall(r'"([a-z-]+)"', head)]
    return actual


def test_the_engine_makes_only_marks_of_the_registry() -> None:
    made = engine_marks()
    assert len(made) > 20
    for name, severities, place in made:
        kind = mark_kinds().get(name)
        assert kind is not None, f"{place} makes the mark {name}"
        assert severities <= set(kind.value.severities), f"{place}: {name}"


def test_the_host_makes_marks_by_the_registry_only() -> None:
    for path in HOST:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Mark":
                assert path.name == "marks.py", f"{path}:{node.lineno}: use MarkKind.NAME.mark"


def test_severities_given_by_hand_are_of_the_registry() -> None:
    given = 0
    for path in HOST:
        for call in re.findall(
            r"MarkKind\.(\w+)\.mark\(((?:(?!MarkKind).)*?severity=.*?)\)", path.read_text("utf-8"), re.DOTALL
        ):
            given += 1
            for word in re.findall(r"Severity\.(\w+)", call[1].partition("severity=")[2]):
                assert Severity[word] in mark_kinds()[call[0].lower().replace("_", "-")].value.severities, (
                    f"{path}: {call[0]}"
                )
    assert given >= 1


def test_every_mark_is_made_somewhere() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in HOST)
    made = set(re.findall(r"MarkKind\.([A-Z_0-9]+)", text)) | {
        mark_kinds()[name].name for name, _, _ in engine_marks()
    }
    assert {kind.name for kind in mark_kinds().values()} - made - OF_EXTENSIONS == set()


@pytest.mark.parametrize("kind", mark_kinds().values())
def test_every_mark_is_explained(kind: MarkKindBase) -> None:
    """A sentence says what it means; whatever is doubtful or invalid has a remedy."""
    assert re.match(r"\S.*\.$", kind.value.meaning)
    assert not kind.value.remedy.endswith(".")
    assert kind.value.remedy or kind.value.severities == (Severity.NOTE,)
    assert "|" not in kind.value.meaning + kind.value.remedy


def test_a_mark_of_another_version_is_kept() -> None:
    mark = Mark(name="of-the-future", severity=Severity.DOUBTFUL, detail="x")
    assert mark.kind is None
    assert not mark.remedy
    assert MarkKind.STEAL.mark("x").kind is MarkKind.STEAL
