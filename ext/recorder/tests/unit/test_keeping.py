# SPDX-License-Identifier: MIT
"""Which moments stay when there is no room for all."""

from __future__ import annotations

import random

from rtgauge_ext.recorder.keeping import MOST_CULPRITS, OTHERS, Keeping, Kept


def kept(number: int, culprit: str, latency_ns: int, size: int = 4096) -> Kept:
    return Kept(latency_ns, number, "control", culprit, size, "boot")


def offered(moments: list[Kept], room: int) -> Keeping:
    keeping = Keeping()
    for moment in moments:
        removed = keeping.over(room, [moment])
        for each in removed:
            keeping.moments.pop(each.number, None)
        if moment not in removed:
            keeping.moments[moment.number] = moment
    return keeping


def test_a_storm_of_one_cause_pushes_out_only_its_own() -> None:
    rare = [kept(number, f"cause {number}", 1000 + number) for number in range(8)]
    storm = [kept(100 + number, "storm", 10_000 + number) for number in range(5000)]
    random.Random(1).shuffle(storm)
    keeping = offered([*rare, *storm], room=100 * 4096)
    assert [keeping.moments[each.number] for each in rare] == rare
    left = sorted(each.latency_ns for each in keeping.moments.values() if each.culprit == "storm")
    assert left == [10_000 + number for number in range(5000 - 92, 5000)], "the worst of the storm stay"
    assert keeping.bytes <= 100 * 4096


def test_without_room_for_one_of_each_the_worst_of_all_stay() -> None:
    keeping = offered([kept(number, f"cause {number}", number) for number in range(20)], room=5 * 4096)
    assert sorted(keeping.moments) == [15, 16, 17, 18, 19]


def test_a_moment_larger_than_the_room_is_not_kept() -> None:
    keeping = offered([kept(1, "a", 5), kept(2, "b", 9, size=1 << 20)], room=4 * 4096)
    assert sorted(keeping.moments) == [1]


def test_ever_new_culprits_share_one_place() -> None:
    keeping = Keeping()
    for number in range(MOST_CULPRITS + 50):
        culprit = keeping.culprit("control", f"name {number}")
        keeping.moments[number] = kept(number, culprit, number)
    assert len({each.culprit for each in keeping.moments.values()}) == MOST_CULPRITS + 1
    assert keeping.culprit("control", "one more") == OTHERS
    assert keeping.culprit("control", "name 3") == "name 3"
