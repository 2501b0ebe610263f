# SPDX-License-Identifier: MIT
"""Does a cycle hold with a device? As a user asks, with a device whose delay is known."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.support.cli import good, invoke, rtgauge

from ext.network.tests.two_namespaces import FAR, TwoNamespaces, udp_far_end

pytestmark = [pytest.mark.real_time, pytest.mark.root]
DELAY_S = 0.1
"""Far more than what a busy machine adds."""


@pytest.fixture(scope="module")
def both() -> Iterator[TwoNamespaces]:
    with TwoNamespaces() as made:
        yield made


def late(_number: int, data: bytes) -> Sequence[bytes]:
    time.sleep(DELAY_S)
    return [data]


def test_a_bound_above_the_delay_holds_and_one_below_fails(both: TwoNamespaces, tmp_path: Path) -> None:
    end, where = udp_far_end(both, late)
    with end:
        plan = tmp_path / "plan.toml"
        plan.write_text(
            f'name = "device"\n[[step]]\nprobe = "path"\npath = "{where}"\ninterval = "500ms"\ncount = 16\n'
            'warm-up = "0s"\n'
        )
        good(rtgauge("run", plan, "--out", tmp_path / "out", before=both.near))
    (record,) = (tmp_path / "out").iterdir()
    page = (record / "report.html").read_text()
    assert "wire and device" in page
    assert "The time of a response" in page
    # "marginal" on a machine with a doubt, such as a host that takes CPU time
    for bound, words in (("400ms", ("holds", "marginal")), ("50ms", ("fails",))):
        completed = invoke("show", record, "--require", f"response<={bound} hardness=50%", "--json")
        (verdict,) = [
            each for each in json.loads(completed.stdout)["run"]["verdicts"] if each["step"] is None
        ]
        assert verdict["word"] in words
        assert "a cycle of 500 ms with " in verdict["reason"]
        if "fails" in words:
            assert verdict["cause"].startswith("card, wire or device: ")
            assert "rule out the card" in verdict["next"]


def test_the_preset_path_measures_a_host_by_icmp(both: TwoNamespaces, tmp_path: Path) -> None:
    words = ("run", "path", "--peer", FAR, "--duration", "1s", "--out", tmp_path, "--json")
    completed = rtgauge(*words, before=both.near)
    document = json.loads(completed.stdout)
    (step,) = document["steps"]
    assert step["key"]["parameters"]["path"] == f"icmp:{FAR}"
    (counts,) = [result["values"] for result in step["results"] if result["name"] == "path"]
    assert counts["cycles"] == 1000
    assert counts["lost"] == counts["foreign"] == 0
    assert document["run"]["requirement"].startswith("period=1ms response<=1ms")


def test_a_document_without_windows(both: TwoNamespaces) -> None:
    """A probe that nobody keeps writes none of a short step, and the document needs none."""
    words = ("probe", "path", "--peer", FAR, "--count", "200", "--json")
    document = json.loads(good(rtgauge(*words, before=both.near)).stdout)
    (counts,) = [result["values"] for result in document["steps"][0]["results"] if result["name"] == "path"]
    assert counts["cycles"] == 200


@pytest.mark.parametrize("words", [("run", "path"), ("probe", "path")])
def test_a_run_without_a_far_end_asks_for_one(words: tuple[str, str], tmp_path: Path) -> None:
    completed = rtgauge(*words, "--out", tmp_path)
    assert completed.returncode == 2
    assert "name the far end: --peer HOST" in completed.stderr
    assert not list(tmp_path.iterdir())
