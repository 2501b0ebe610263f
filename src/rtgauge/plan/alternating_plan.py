# SPDX-License-Identifier: MIT
"""Makes plans that measure two sides alternately; the order within each pair is random, but balanced."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import product

from rtgauge.errors import InputError
from rtgauge.known_extensions import from_where
from rtgauge.plan.make_plan import Overrides, Plan, make_plan, parse_setting, read_plan
from rtgauge.plan.matrix import MAX_STEPS
from rtgauge.record.alternation import BLOCK, KEY, Alternation
from rtgauge.record.model import Run, StepKey
from rtgauge.system.deployment.definition import CHECKS, NAMED, parse_deployment
from rtgauge.target.address import is_target
from rtgauge.target.kind import forms

FLATTEST = 8
"""How many of a block's balanced orders are drawn from."""
FREQUENCIES = 512
"""The length of the transform that looks for periods, in pairs; longer than the most pairs of a gate."""


@cache
def first_sides(seed: int, block: int) -> tuple[int, ...]:
    """Return which side (0 or 1) each pair of a block measures first: each side equally often, in a random
    order that no period of the machine fits. Blocks are counted from 0.

    If the machine is slower in every other pair, for example, an order that also alternates would blame one
    side. So each block takes one of the FLATTEST orders with which the blocks so far have the flattest
    spectrum.
    """
    import numpy as np

    orders = [order for order in product((0, 1), repeat=BLOCK) if 2 * sum(order) == BLOCK]
    spectra = np.fft.rfft(np.array(orders) * 2 - 1, FREQUENCIES)
    turn = np.exp(np.arange(FREQUENCIES // 2 + 1) * (-2j * np.pi * BLOCK / FREQUENCIES))
    chosen, so_far = 0, np.zeros_like(turn)
    for at in range(block + 1):
        # Turning the earlier blocks back by one block leaves the size of the sum as it is.
        together = so_far / turn + spectra
        flattest = np.argsort(np.abs(together).max(axis=1), kind="stable")[:FLATTEST]
        chosen = random.Random(f"{seed} {at}").choice(flattest.tolist())  # noqa: S311 - no secret
        so_far = together[chosen]
    return orders[chosen]


def first_side(seed: int, pair: int) -> int:
    """Return which side (0 or 1) a pair measures first. Pairs are counted from 0."""
    return first_sides(seed, pair // BLOCK)[pair % BLOCK]


def alternating_plan(source: str, overrides: Overrides, alternation: Alternation, pairs: int) -> Plan:
    """Make a plan that measures the plan or preset `source` on both sides alternately, in `pairs` pairs.

    A side is one or more words: a target, a deployment, or KEY=VALUE for a parameter of the probes. Raises
    InputError.
    """
    if overrides.repeats is not None:
        raise InputError(
            "--repeats does not work with two sides; give --pairs to say how often to measure both"
        )
    if alternation.boot_between:
        overrides = replace(overrides, boot="each-deployment")
    written, name = read_plan(source)
    first = make_plan(written, name, _with_side(alternation.sides[0], replace(overrides, repeats=1)))
    # With the same seed, the steps of both sides have the same order.
    seeded = replace(overrides, repeats=1, seed=first.seed)
    second = make_plan(written, name, _with_side(alternation.sides[1], seeded))
    for side, plan in zip(alternation.sides, (first, second), strict=True):
        if len(plan.targets) > 1:
            raise InputError(
                f"side {side} would measure the targets {', '.join(plan.targets)}; give the side a single "
                "target"
            )
    if len(first.steps) != len(second.steps):
        raise InputError(
            f"{alternation.sides[0]} has {len(first.steps)} steps and {alternation.sides[1]} has "
            f"{len(second.steps)}; give both sides the same number of steps"
        )
    if 2 * pairs * len(first.steps) > MAX_STEPS:
        raise InputError(f"--pairs {pairs} would make more than {MAX_STEPS} steps; give fewer pairs")
    return replace(
        first,
        targets=list(dict.fromkeys([*first.targets, *second.targets])),
        steps=_in_turn((first.steps, second.steps), first.seed, range(1, pairs + 1)),
        written={**first.written, KEY: alternation.model_dump(mode="json")},
        by_boot=first.by_boot or second.by_boot,
    )


def further_pairs(run: Run, pairs: Iterable[int]) -> list[StepKey]:
    """Return the steps of further pairs, made like the record's first planned pair."""
    sides = tuple([key for key in run.planned if key.repeat == number] for number in (1, 2))
    return _in_turn((sides[0], sides[1]), run.seed or 0, pairs)


def _with_side(side: str, overrides: Overrides) -> Overrides:
    """Return the overrides with one side's words added. Raises InputError if a word is unknown."""
    words = side.split()
    if not words:
        raise InputError("a side is empty; give a target, a deployment or KEY=VALUE")
    for word in words:
        if is_target(word):
            overrides = replace(overrides, targets=[word])
        elif "=" in word and word.partition("=")[0] not in CHECKS:
            key, value = parse_setting(word, "side")
            overrides = replace(overrides, parameters={**overrides.parameters, key: value})
        else:
            try:
                deployment = parse_deployment(word).name
            except InputError as error:
                if "=" in word:
                    raise
                targets = ", ".join(["local", "ssh://HOST", *forms()])
                deployments = f"{', '.join(NAMED)}, or settings"
                instead = f": give a target ({targets}), KEY=VALUE, or a deployment ({deployments})"
                missing = from_where("targets", word.partition(":")[0])
                raise InputError(f"'{word}' is not a side{missing or instead}") from error
            overrides = replace(overrides, deployments=[deployment])
    return overrides


def _in_turn(
    sides: tuple[Sequence[StepKey], Sequence[StepKey]], seed: int, pairs: Iterable[int]
) -> list[StepKey]:
    """Return the steps of both sides, pair by pair."""
    steps: list[StepKey] = []
    for pair in pairs:
        first = first_side(seed, pair - 1)
        for side in (first, 1 - first):
            number = 2 * pair - 1 + side
            steps += [key.model_copy(update={"repeat": number}) for key in sides[side]]
    return steps
