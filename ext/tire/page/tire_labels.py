# SPDX-License-Identifier: MIT
"""Names and orders solvers, policies, threads and periods in the tire's chapter."""

from __future__ import annotations

from collections.abc import Iterable

from rtgauge.units import format_duration, plural
from rtgauge_ext.tire.analysis.runs import SOLVERS
from rtgauge_ext.tire.analysis.tire_results import TireResults

SIMULATED_STEPS = 6000
"""Number of steps in 60 s of simulation, in steps of 10 ms, as in the paper's figures 5 to 7."""
SIMULATED_S = 60
MEANING_WORDS = {
    "one": "one",
    "cores": "one per core",
    "hardware-threads": "one per hardware thread",
    "twice": "two per hardware thread",
}


def solver_name(solver: str, *, free_running: bool = False) -> str:
    """Return the name of a solver, with or without its barrier."""
    return f"{solver}, free-running" if free_running else solver


def policy_name(policy: str) -> str:
    """Return a policy's name in upper case: "fifo" -> "FIFO"."""
    return policy.upper()


def threads_name(threads: int, results: TireResults) -> str:
    """Return a name like "2 threads (one per core)", with the number's first known meaning on this
    machine.
    """
    fitting = (text for word, text in MEANING_WORDS.items() if results.meanings.get(word) == threads)
    meant = next(fitting, None) if threads > 1 else None
    return plural(threads, "thread") + (f" ({meant})" if meant else "")


def by_solver(solvers: Iterable[str]) -> list[str]:
    """Return the distinct solvers in the chapter's order."""
    return sorted(
        set(solvers), key=lambda name: (SOLVERS.index(name) if name in SOLVERS else len(SOLVERS), name)
    )


def period_name(period_ns: int) -> str:
    """Return a period with a space before its unit: "10ms" -> "10 ms"."""
    text = format_duration(period_ns)
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    return f"{digits} {text[len(digits) :]}"
