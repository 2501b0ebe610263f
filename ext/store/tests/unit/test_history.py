# SPDX-License-Identifier: MIT
"""History: figures of groups, the spread between boots, suspected changes and what changed there."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.signal import lfilter
from tests.support.messages import missing

from ext.store.tests.stored import run, small, store_json
from rtgauge_ext.store.change_points import LENGTHS, OF_PARTS, change_points, largest

if TYPE_CHECKING:
    from pathlib import Path

SERIES = "wakeup/latency/idle/as-is"
NEW = {"kernel": {"release": "6.12.0", "hz": 1000}}


def history(*words: object) -> list[dict[str, Any]]:
    result = run("store", "history", *words, "--json")
    assert result.exception is None, result.exception
    return json.loads(result.stdout)["histories"]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """24 boots of one machine; from the 13th on another kernel, which is twice as slow."""
    folder = tmp_path_factory.mktemp("runs")
    for boot in range(24):
        system = {"boot_id": f"boot-{boot}", **(NEW if boot >= 12 else {})}
        small(
            folder, boot + 1, cpus=(0,), system=system, marks=False, missed_under=(), sigma=0.1,
            median_ns={"idle": (12_000 if boot >= 12 else 6_000) * (1 + 0.01 * (boot * 7 % 5))},
        )  # fmt: skip
    path = str(folder / "store.sqlite")
    if request.param == "postgresql":
        path = request.getfixturevalue("postgresql").database()
    store_json("add", folder, "--store", path)
    return path


def test_a_change_is_suspected_with_what_changed_there(store: str) -> None:
    (history_found,) = history(SERIES, "--store", store, "--quantile", "p50")
    assert [(group["group"], group["runs"]) for group in history_found["groups"]] == [
        ("6.1.0-18-amd64", 12),
        ("6.12.0", 12),
    ]
    (change,) = history_found["changes"]
    assert change["change"] == pytest.approx(1.0, abs=0.03)
    assert change["differs"]["kernel"] == ["6.1.0-18-amd64", "6.12.0"]
    assert change["differs"]["setting:kernel.hz"] == ["250", "1000"]
    assert history_found["boots"] == 24
    assert 0.005 < history_found["spread_between_boots"] < 0.03, "without the change"
    assert history_found["spread_within_boots"] is None
    before, after = history_found["groups"]
    assert before["low_ns"] < before["quantiles_ns"]["p50"] < before["high_ns"] < after["low_ns"]


@pytest.mark.parametrize(
    ("by", "groups"),
    [("day", 1), ("boot", 24), ("machine", 1), ("setting:kernel.hz", 2), ("commit", 1)],
)
def test_history_groups_as_requested(store: str, by: str, groups: int) -> None:
    (history_found,) = history(SERIES, "--store", store, "--by", by)
    assert len(history_found["groups"]) == groups


def test_the_terminal_names_the_change(store: str) -> None:
    text = " ".join(run("store", "history", SERIES, "--store", store, "--quantile", "p50").stdout.split())
    assert re.search(r"suspected change \+[\d.]+ %|suspected change [\d.]+ times at", text)
    assert "kernel 6.1.0-18-amd64 -> 6.12.0" in text
    few = run("store", "history", SERIES, "--store", store, "--last", 5).stdout
    assert "5 boots so far; rtgauge needs 20" in few


@pytest.mark.parametrize(
    ("words", "expected_text"),
    [
        (("nothing",), "'nothing' is not a series in the store; "),
        ((SERIES, "--by", "kernle"), "did you mean 'kernel'"),
        ((SERIES, "--by", "hour"), "there are: boot, commit, day, kernel, label:KEY, machine, setting:NAME"),
        ((SERIES, "--by", "setting:kernel.hx"), "has such a setting; did you mean 'setting:kernel.hz'"),
        (
            (SERIES, "--by", "label:image"),
            "--by label:image: none of the records in the store has such a label",
        ),
        ((SERIES, "--quantile", "p98"), "is not one of p50"),
    ],
)
def test_wrong_words_are_refused(store: str, words: tuple[str, ...], expected_text: str) -> None:
    assert expected_text in str(run("store", "history", *words, "--store", store).exception)


def once_each(folder: Path) -> Path:
    """A store with one boot of each of two machines."""
    store = folder / "once.sqlite"
    for machine in "ab":
        store_json("add", next((folder / machine).iterdir()), "--store", store)
    return store


def test_spread_between_machines_excludes_spread_between_boots(tmp_path: Path) -> None:
    logs = {"a": [0.0, 0.2, 0.4], "b": [0.5, 0.7, 0.9], "c": [1.0, 1.2, 1.4]}
    seeds = iter(range(1, 10))
    for machine, boots in logs.items():
        for boot, log in enumerate(boots):
            record = small(
                tmp_path / machine, next(seeds), cpus=(0,), marks=False, missed_under=(), sigma=0.001,
                seconds=1, system={"boot_id": f"{machine}-{boot}"}, median_ns={"idle": 10_000 * np.exp(log)},
            )  # fmt: skip
            store_json("add", record, "--machine", machine, "--store", tmp_path / "store.sqlite")
    words = (SERIES, "--quantile", "p50", "--store", tmp_path / "store.sqlite")
    # The means are 0.2, 0.7 and 1.2, with a variance of 0.25. Boots vary by 0.2: 0.04 / 3 of it is theirs.
    for actual_result in history(*words):
        assert actual_result["machines"] == 3
        assert actual_result["spread_between_boots"] == pytest.approx(0.2, abs=0.005)
        assert actual_result["spread_between_machines"] == pytest.approx(np.sqrt(0.25 - 0.04 / 3), abs=0.005)
    text = " ".join(run("store", "history", *words).stdout.split())
    assert re.search(r"by 4[0-9]\.[0-9] % between 3 machines", text)
    assert not missing(text, "12 pairs")
    (alone,) = history(*words, "--machine", "a")
    assert alone["spread_between_machines"] is None
    once = history(*words[:-1], once_each(tmp_path))
    assert [actual["spread_between_machines"] for actual in once] == [None, None], "boots may differ as much"


def test_a_doubtful_run_is_in_no_figure(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    certain = small(tmp_path, 1, marks=False)
    doubtful = small(tmp_path, 2, marks=False, median_ns={"idle": 60_000})
    (step,) = (doubtful / "steps").glob("*/step.json")
    content = json.loads(step.read_text())
    content["marks"].append({"name": "steal", "severity": "doubtful", "detail": "stolen"})
    step.write_text(json.dumps(content))
    store_json("add", certain, "--store", path)
    (before,) = history(SERIES, "--store", path)
    store_json("add", doubtful, "--store", path)
    (after,) = history(SERIES, "--store", path)
    (group,) = before["groups"]
    changed = {"runs": 2, "boots": 2, "doubtful": 1, "last": after["groups"][0]["last"]}
    assert after["groups"] == [{**group, **changed}]


# --- change points


def drawn(kind: str, series: int, length: int = 100) -> np.ndarray:
    generator = np.random.default_rng(11)
    values = generator.normal(0, 1, (series, length))
    if kind == "slow boots":
        return values + 10 * (generator.random(values.shape) < 0.15)
    if kind == "drift":
        values[:, 1:] *= np.sqrt(0.75)
        return np.asarray(lfilter([1], [1, -0.5], values, axis=1))
    return generator.standard_t(3, values.shape) if kind == "heavy tails" else values


@pytest.mark.parametrize("kind", ["independent", "drift", "slow boots", "heavy tails"])
def test_series_without_a_change_are_hardly_ever_marked(kind: str) -> None:
    # 1 in 500 of 2,000 is 4; more than 11 come once in a thousand times then.
    assert (largest(drawn(kind, 2_000))[0] > OF_PARTS).sum() <= 11


@pytest.mark.parametrize(("kind", "least"), [("independent", 85), ("slow boots", 25)])
def test_a_change_is_found_near_its_place(kind: str, least: int) -> None:
    changed = drawn(kind, 100)
    changed[:, 60:] += 2.5
    actual = [change_points(row) for row in changed]
    assert sum(any(abs(place - 60) <= 3 for place in places) for places in actual) >= least
    at_its_place = sum(60 in places for places in actual)
    assert at_its_place >= 0.45 * sum(map(bool, actual))


@pytest.mark.parametrize("second", [1, -1, -2])
def test_one_change_does_not_hide_another(second: int) -> None:
    values = drawn("independent", 1, 150)[0] * 0.1
    values[50:] += 1
    values[100:] += second
    assert change_points(values) == pytest.approx([50, 100], abs=1)


@pytest.mark.parametrize("values", [[], [1.0] * 50, list(range(LENGTHS[0] - 1)), [1.0] * 30 + [float("nan")]])
def test_series_without_a_change_have_no_change_points(values: list[float]) -> None:
    assert change_points(values) == []


WHOLE_US, BIN = 1_000, 0.01


def coarse(values_ns: np.ndarray, step_ns: int = WHOLE_US) -> list[int]:
    """The marks of a series whose values are multiples of a step."""
    return change_points(
        np.log(values_ns).tolist(), [max(BIN, step_ns / ns) for ns in values_ns], least=np.log(1.02)
    )


@pytest.mark.parametrize("length", [20, 30, 50, 100])
@pytest.mark.parametrize("factor", [1.01, 1.0133, 1.3, 2.0])
def test_one_boot_in_a_constant_series_is_no_change(length: int, factor: float) -> None:
    for at in range(0, length, 3):
        values = np.full(length, 3_000.0)
        values[at] *= factor
        assert coarse(values, 10) == []


@pytest.mark.parametrize(("median_us", "spread"), [(3.4, 0.05), (3.4, 0.1), (7.5, 0.03), (20.0, 0.05)])
def test_whole_microseconds_are_seldom_marked_but_changes_are(median_us: float, spread: float) -> None:
    generator = np.random.default_rng(5)

    def drawn_ns() -> np.ndarray:
        return median_us * np.exp(generator.normal(0, spread, 60))

    assert sum(bool(coarse(np.round(drawn_ns()) * WHOLE_US)) for _ in range(200)) <= 2
    changed = np.where(np.arange(60) < 36, 1, 2)
    assert sum(bool(coarse(np.round(drawn_ns() * changed) * WHOLE_US)) for _ in range(20)) >= 19


def test_a_large_step_between_constant_levels_is_marked() -> None:
    assert coarse(np.repeat([3_000.0, 6_000.0], 15)) == [15]
    assert coarse(np.repeat([3_000.0, 3_100.0], 50), 10) == [50]
    assert coarse(np.repeat([3_000.0, 3_030.0], 50), 10) == []


def test_runs_of_unknown_boots_count_as_one_boot(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store_json("add", small(tmp_path, 1, repeats=3, loads=("idle", "cpu")), "--store", path)
    (idle,) = history(SERIES, "--store", path)
    (cpu,) = history("wakeup/latency/cpu/as-is", "--store", path)
    assert [(each["boots"], each["boots_counted"]) for each in (idle, cpu)] == [(1, 1), (1, 0)]
    assert [group["boots"] for each in (idle, cpu) for group in each["groups"]] == [1, 1]
    shown = " ".join(run("store", "history", "wakeup/latency/cpu/as-is", "--store", path).stdout.split())
    assert "1 boot so far, 0 of them" in shown
    assert "needs 20 boots" in shown
    folder = tmp_path / "site"
    assert run("store", "site", folder, "--store", path).exception is None
    text = " ".join(re.sub(r"<[^>]+>", " ", (folder / "index.html").read_text()).split())
    boots = r"/as-is board-7 interval=1ms (?:p99 [\d.]+ us )?(\d+)"
    assert re.findall(boots, text) == ["1", "1"]


def test_a_site_has_machines_verdicts_histories_and_records(tmp_path: Path, store: str) -> None:
    folder = tmp_path / "site"
    result = run("store", "site", folder, "--store", store, "--quantile", "p50")
    assert result.exception is None, result.exception
    index = (folder / "index.html").read_text(encoding="utf-8")
    assert [title in index for title in (">Last verdicts<", ">Histories<", ">Machines<", ">Records<")] == [
        True
    ] * 4
    assert 'href="series-wakeup-latency-idle-as-is.html"' in index
    histories = index[index.index(">Histories<") : index.index(">Machines<")]
    (row,) = re.findall(r"<tr>\s*<th.*?</tr>", histories.partition("<tbody>")[2], re.DOTALL)
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
    (line,) = re.findall(r'<polyline points="([^"]+)"', cells[3])
    assert len(line.split()) == int(cells[4]), "a point for each boot"
    assert cells[1] == "board-7", "the machine's name"
    assert re.search(r"p50 [\d.]+ us$", cells[3]), "its last value"
    page = (folder / "series-wakeup-latency-idle-as-is.html").read_text(encoding="utf-8")
    assert "kernel 6.1.0-18-amd64 -&gt; 6.12.0" in page
    assert page.count("data:image/svg+xml;base64,") == 2
    assert "<script" not in index + page
    drawing = base64.b64decode(page.partition("svg+xml;base64,")[2].partition('"')[0]).decode()
    assert "stroke-dasharray" in drawing, "the suspected change"


def test_a_site_links_the_page_of_a_record_and_escapes_names(tmp_path: Path) -> None:
    record = small(tmp_path / "runs", 1, host="<b>&")
    (record / "report.html").write_text("page")
    path = str(tmp_path / "store.sqlite")
    store_json("add", record, "--store", path)
    result = run("store", "site", tmp_path / "a" / "site", "--store", path)
    assert result.exception is None, result.exception
    index = (tmp_path / "a" / "site" / "index.html").read_text(encoding="utf-8")
    assert f'href="../../runs/{record.name}/report.html"' in index
    assert "<b>&" not in index
    machines = index[index.index(">Machines<") : index.index(">Records<")]
    assert re.search(r"<th[^>]*>&lt;b&gt;&amp;</th>\s*<td[^>]*>fails</td>", machines)


def test_without_a_series_each_has_a_line_with_its_last_value(store: str) -> None:
    heading, *lines = run("store", "history", "--store", store, "--quantile", "p50").stdout.splitlines()
    assert "  p50 " in heading
    assert any(line.startswith(SERIES) for line in lines)
