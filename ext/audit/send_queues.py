# SPDX-License-Identifier: MIT
"""Separates the send queues of real-time CPUs from the ones of the other CPUs (XPS).

A CPU that is in no queue's mask may use every queue, so each of the other CPUs has to keep one.
"""

from __future__ import annotations

from collections.abc import Mapping

OWN_QUEUE = "{own-queue}"


def interface_of(path: str) -> str:
    """Return the folder of the interface that has this queue."""
    return path.partition("/queues/")[0]


def apart(queues: Mapping[str, set[int]], cpus: set[int]) -> dict[str, set[int]]:
    """Return queue -> CPUs for the queues that must change. `queues`: all queues of one interface, with their
    CPUs.

    The real-time CPUs `cpus` leave the queues that they share. If no queue is theirs alone, they get the last
    shared queue. Empty if they share no queue, or if there are too few queues.
    """
    shared = [queue for queue, users in queues.items() if users & cpus and users - cpus]
    if not shared:
        return {}
    new = {queue: queues[queue] - cpus for queue in shared}
    if any(users and users <= cpus for users in queues.values()):
        return new
    given = shared[-1]
    others = [queue for queue in queues if queue != given]
    if not others:
        return {}
    left = new[given].difference(*(queues[queue] for queue in others))
    if left:
        new[others[0]] = queues[others[0]] - cpus | left
    return new | {given: cpus}
