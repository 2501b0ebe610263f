# SPDX-License-Identifier: MIT
from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from ext.store.tests.stored import contents, run, small, store_json
from rtgauge.errors import InputError
from rtgauge.record.model import VerdictWord
from rtgauge.record.reader import Record, opened_folder
from rtgauge_ext.store.labels import read_labels

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCHEMA = "docs/formats/store.schema.json"


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def store(records: Path, new_store: Callable[[], str]) -> str:
    records.mkdir()
    return new_store()


def test_a_result_has_the_figures_of_the_record(records: Path, store: str) -> None:
    folder = small(records, 1, seconds=30, verdict=VerdictWord.FAILS)
    assert store_json("add", folder, "--store", store)["added"][0]["outcome"] == "added"
    step = Record.open(folder).steps[0]
    assert step.total is not None
    (course,) = store_json("show", "wakeup/latency/idle/as-is", "--store", store)["courses"]
    (point,) = course["points"]
    assert point["record"] == folder.name
    assert point["host"] == "board-7"
    assert point["kernel"] == "6.1.0-18-amd64"
    for name in ("count", "missed", "min_ns", "p50_ns", "p99_ns", "p99_9_ns", "p99_99_ns", "max_ns"):
        assert point[name] == getattr(step.total, name)
    for name in ("p50_ns", "p99_ns", "max_ns"):
        assert point[f"filled_{name}"] == getattr(step.total.filled, name)
    (row,) = store_json("list", "--store", store)["records"]
    assert (row["verdict"], row["steps"], row["missing"]) == ("fails", 1, False)
    assert row["requirement"] == "period=1ms latency<=200us hardness=100%"


def test_a_part_is_found_by_its_labels(records: Path, store: str) -> None:
    store_json("add", small(records, 1), "--store", store)
    (part,) = store_json("show", "wakeup/latency/idle/as-is[cpu=1]", "--store", store)["courses"]
    assert part["series"]["series"] == "wakeup/latency/idle/as-is[cpu=1]"
    (whole,) = store_json("show", "wakeup/*", "--store", store)["courses"]
    assert whole["series"]["series"] == "wakeup/latency/idle/as-is"
    assert len(store_json("show", "*[*", "--store", store)["courses"]) == 2


def test_adding_twice_changes_nothing(records: Path, store: str) -> None:
    folder = small(records, 1)
    store_json("add", folder, "--store", store)
    before = contents(store)
    assert store_json("add", folder, "--store", store)["added"][0]["outcome"] == "unchanged"
    assert contents(store) == before


def test_a_folder_adds_every_record_in_it(records: Path, store: str) -> None:
    for seed in (1, 2, 3):
        small(records, seed)
    assert run("store", "add", records, "--store", store).stdout.count("added: ") == 3
    assert store_json("list", "--store", store, "--last", 2)["total"] == 3
    assert len(store_json("list", "--store", store, "--last", 2)["records"]) == 2


def test_a_changed_record_replaces_itself(records: Path, store: str) -> None:
    folder = small(records, 1)
    store_json("add", folder, "--store", store)
    shutil.rmtree(folder)
    small(records, 1, median_ns={"idle": 50_000})
    assert store_json("add", folder, "--store", store)["added"][0]["outcome"] == "updated"
    (point,) = store_json("show", "wakeup/latency/idle/as-is", "--store", store)["courses"][0]["points"]
    assert point["p50_ns"] > 40_000


def test_a_moved_record_is_the_same(records: Path, store: str, tmp_path: Path) -> None:
    folder = small(records, 1)
    store_json("add", folder, "--store", store)
    moved = folder.rename(tmp_path / "elsewhere")
    assert store_json("add", moved, "--store", store)["added"][0]["outcome"] == "moved"
    (row,) = store_json("list", "--store", store)["records"]
    assert (row["path"], row["missing"]) == (str(moved), False)


def test_another_record_of_the_same_name_is_refused(records: Path, store: str, tmp_path: Path) -> None:
    folder = small(records, 1)
    store_json("add", folder, "--store", store)
    before = contents(store)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy / folder.name)
    assert store_json("add", copy / folder.name, "--store", store)["added"][0]["outcome"] == "unchanged"
    other = small(tmp_path / "other", 1, median_ns={"idle": 50_000})
    with pytest.raises(InputError, match="another record"):
        raise run("store", "add", other, "--store", store).exception or AssertionError
    assert contents(store) == before


def test_what_the_user_says_is_kept_in_the_record(
    records: Path, store: str, new_store: Callable[[], str]
) -> None:
    folder = small(records, 1)
    store_json(
        "add",
        folder,
        "--store",
        store,
        "--commit",
        "4f2a9c1",
        "--label",
        "image=12.3",
        "--machine",
        "bench-3",
    )
    (row,) = store_json("list", "--store", store)["records"]
    assert (row["commit"], row["labels"], row["machines"]) == ("4f2a9c1", {"image": "12.3"}, ["name:bench-3"])
    store = new_store()
    store_json("rebuild", records, "--store", store)
    assert store_json("list", "--store", store)["records"] == [row]
    store_json("add", folder, "--store", store, "--label", "image=", "--label", "by=me", "--relabel")
    (row,) = store_json("list", "--store", store, "--label", "by=me", "--machine", "bench-3")["records"]
    assert (row["commit"], row["labels"]) == ("4f2a9c1", {"by": "me"})
    assert store_json("list", "--store", store, "--label", "by=you")["records"] == []


def labels_of(store: str) -> dict[str, tuple[str | None, dict[str, str]]]:
    return {
        row["record"]: (row["commit"], row["labels"])
        for row in store_json("list", "--store", store)["records"]
    }


def test_labels_of_a_folder_are_given_to_its_new_records_only(records: Path, store: str) -> None:
    """As the tutorial has it: the same folder is added after each release."""
    words = ("store", "add", records, "--store", store)
    old = [small(records, seed).name for seed in (1, 2)]
    run(*words, "--label", "image=12.3", "--commit", "aaa")
    unlabelled = small(records, 3).name
    run(*words)
    new = small(records, 4).name
    reported = run(*words, "--label", "image=12.4", "--commit", "bbb").output
    assert "3 earlier records keep their labels" in reported
    expected: dict[str, tuple[str | None, dict[str, str]]] = {
        **dict.fromkeys(old, ("aaa", {"image": "12.3"})),
        unlabelled: (None, {}),
        new: ("bbb", {"image": "12.4"}),
    }
    assert labels_of(store) == expected
    kept = {name: read_labels(opened_folder(records / name)) for name in expected}
    assert {name: (labels.commit, labels.labels) for name, labels in kept.items()} == expected
    run(*words, "--label", "image=12.5", "--relabel")
    assert {labels["image"] for _, labels in labels_of(store).values()} == {"12.5"}


def test_a_new_record_keeps_the_label_it_came_with(records: Path, store: str) -> None:
    folder = small(records, 1)
    store_json("add", folder, "--store", store, "--label", "site=a")
    store_json("rm", folder, "--store", store)
    store_json("add", records, "--store", store, "--label", "site=b")
    assert labels_of(store) == {folder.name: (None, {"site": "a"})}


@pytest.mark.parametrize(
    ("option", "value", "has"),
    [("--label", "image=12.4", "label image=12.3"), ("--label", "image=", "label image=12.3"),
     ("--commit", "bbb", "commit aaa"), ("--machine", "bench-4", "machine bench-3")],
)  # fmt: skip
def test_another_value_is_refused_without_relabel(
    option: str, value: str, has: str, records: Path, store: str
) -> None:
    words = ("store", "add", small(records, 1), "--store", store)
    run(*words, "--commit", "aaa", "--label", "image=12.3", "--machine", "bench-3")
    before = contents(store)
    refused = run(*words, option, value)
    assert f"already has the {has}; to replace it, add --relabel" in str(refused.exception)
    assert contents(store) == before
    run(*words, option, value, "--relabel")
    assert contents(store) != before


def test_a_missing_label_of_a_record_that_the_store_has_is_added(records: Path, store: str) -> None:
    folder = small(records, 1)
    store_json("add", folder, "--store", store)
    store_json("add", folder, "--store", store, "--label", "image=12.3")
    store_json("add", folder, "--store", store, "--label", "by=me", "--label", "image=12.3")
    assert labels_of(store) == {folder.name: (None, {"image": "12.3", "by": "me"})}


def test_rm_takes_a_record_out_and_leaves_its_folder(records: Path, store: str) -> None:
    folders = [small(records, seed) for seed in (1, 2)]
    store_json("add", *folders, "--store", store)
    before = contents(store)
    assert store_json("rm", folders[0], "--store", store)["removed"] == [folders[0].name]
    assert [row["record"] for row in store_json("list", "--store", store)["records"]] == [folders[1].name]
    assert Record.open(folders[0]).steps
    store_json("rm", folders[1].name, "--store", store)
    assert contents(store) == {"records": [], "series": [], "results": []}
    assert store_json("list", "--store", store, "--machines")["machines"] == []
    store_json("rebuild", records, "--store", store)
    assert contents(store) == before


def test_a_record_that_was_removed_keeps_its_figures(records: Path, store: str) -> None:
    folders = [small(records, seed) for seed in (1, 2)]
    store_json("add", *folders, "--store", store)
    shutil.rmtree(folders[0])
    listed = run("store", "list", "--store", store)
    assert f"{folders[0].name} (gone)" in listed.stdout
    assert "1 record no longer exists" in listed.stderr
    assert "is gone" in run("store", "show", folders[0].name, "--store", store).stdout
    kept = store_json("rebuild", records, "--store", store)
    assert (kept["missing"], kept["read"]) == ([folders[0].name], 1)
    assert store_json("list", "--store", store)["total"] == 2
    store_json("rm", folders[0].name, "--store", store)
    assert [row["record"] for row in store_json("list", "--store", store)["records"]] == [folders[1].name]


def test_boards_of_one_image_stay_apart(records: Path, store: str) -> None:
    def identity(source: str, digits: str) -> dict[str, Any]:
        return {"system": {"identity": {"source": source, "hash": digits}}}

    for seed, (host, facts) in enumerate(
        [
            ("board", identity("dmi", "a" * 32)),
            ("renamed", identity("dmi", "a" * 32)),
            ("board", identity("dmi", "b" * 32)),
            ("board", identity("machine-id", "c" * 32)),
            ("board-2", identity("machine-id", "c" * 32)),
            ("board", {}),
        ]
    ):
        store_json("add", small(records, seed, host=host, **facts), "--store", store)
    machines = store_json("list", "--store", store, "--machines")["machines"]
    assert sorted((row["source"], row["shared"], row["records"]) for row in machines) == [
        ("address", True, 1),
        ("dmi", False, 1),
        ("dmi", False, 2),
        ("machine-id", True, 1),
        ("machine-id", True, 1),
    ]


def test_another_kernel_is_another_configuration(records: Path, store: str) -> None:
    for seed, changes in enumerate(({}, {"memory": {"total_bytes": 1}}, {"kernel": {"release": "6.12"}})):
        store_json("add", small(records, seed, system=changes), "--store", store)
    (course,) = store_json("show", "wakeup/latency/idle/as-is", "--store", store)["courses"]
    assert len({point["configuration"] for point in course["points"]}) == 2
    assert len({point["machine"] for point in course["points"]}) == 1


def test_every_document_is_one_of_the_schema(records: Path, store: str, pytestconfig: pytest.Config) -> None:
    schema = Draft202012Validator(json.loads((pytestconfig.rootpath / SCHEMA).read_text()))
    folder = small(records, 1, verdict=VerdictWord.HOLDS)
    for words in (
        ("add", folder, "--label", "a=b"),
        ("list",),
        ("list", "--series", "--machines"),
        ("show", folder),
        ("show", "wakeup/*"),
        ("rebuild", records),
        ("rm", folder),
    ):
        schema.validate(store_json(*words, "--store", store))


def test_the_text_begins_with_the_answer(records: Path, store: str) -> None:
    folder = small(records, 1)
    store_json("add", folder, "--store", store)
    for words, first in (
        (("list",), "1 record in "),
        (("list", "--series"), "1 series "),
        (("list", "--machines"), "1 machine in "),
        (("show", "wakeup/*"), "wakeup/latency/idle/as-is: 1 result of 1 machine"),
        (("show", folder.name), f"{folder.name}: complete, 1 step on "),
        (("rebuild",), f"{store} is rebuilt from 1 record"),
    ):
        assert run("store", *words, "--store", store).stdout.startswith(first)


def test_series_of_one_name_show_the_parameters_that_differ(
    records: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    folders = [small(records, seed) for seed in (1, 2)]
    file = folders[1] / "steps" / "01-wakeup-idle" / "step.json"
    step = json.loads(file.read_text())
    step["key"]["parameters"]["priority"] = 50
    file.write_text(json.dumps(step))
    store_json("add", *folders, "--store", store)
    lines = run("store", "list", "--series", "--store", store).stdout.splitlines()[2:]
    assert sorted("priority=50" in line for line in lines) == [False, True]
    shown = " ".join(run("store", "show", "wakeup/latency/*", "--store", store).stdout.split())
    assert "(interval=1ms; us)" in shown
    assert "(interval=1ms priority=50; us)" in shown
