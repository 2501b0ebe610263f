# SPDX-License-Identifier: MIT
"""tire: simulates a tire on several threads, real-fast or in real time (Garre et al. 2014, sec. 4)."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from rtgauge.probe.common_parameters import (
    CokernelParameters,
    Duration,
    OnOff,
    PolicyParameters,
    TimedParameters,
    engine_options,
)
from rtgauge.probe.descriptor import (
    Bound,
    CommandTrait,
    KeptFile,
    Metric,
    Motion,
    Probe,
    Shown,
    command_line,
)
from rtgauge.validation import DurationNs, between
from rtgauge_ext.tire.motion import frame_message
from rtgauge_ext.tire.state_file import STATE_FILE, export_state

MOST_NODES = 16_000_000
MOST_THREADS = 1024
THREAD_WORDS = ("one", "cores", "hardware-threads", "twice")
"""Words for thread counts, as in the paper: one, one per core, one or two per hardware thread."""
STEP_S = 0.01
NODE_STEP_NS = 20
"""An approximate time, used only to estimate the remaining time."""
MOST_QUANTITY = 1e6
QUANTITIES = {
    "mass_kg": "mass-nkg",
    "radius_m": "radius-nm",
    "height_m": "height-nm",
    "gravity_m_s2": "gravity-nm-s2",
    "speed_m_s": "speed-nm-s",
    "stiffness_n_m": "stiffness-nn-m",
    "damping_ns_m": "damping-nns-m",
}
"""The engine's option for each quantity, in whole billionths of the SI unit."""


def _threads(value: Any) -> Any:
    """Check a number from 1 up, or a word. A text of digits counts as a number."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 6:
        value = int(value)
    if isinstance(value, bool) or not (isinstance(value, int) or value in THREAD_WORDS):
        raise ValueError(f"give a number of threads, or {', '.join(THREAD_WORDS[:-1])} or {THREAD_WORDS[-1]}")
    if isinstance(value, int) and not 1 <= value <= MOST_THREADS:
        raise ValueError(
            f"{value} threads are too {'few' if value < 1 else 'many'}; give 1 to {MOST_THREADS}"
        )
    return str(value)


def _quantity(value: Any) -> Any:
    """Convert a number, or text from the command line, to a number in the SI unit."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise ValueError(f"'{value}' is not a number") from None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("give a number")
    if not 0 <= value <= MOST_QUANTITY:
        raise ValueError(f"{value:g} is out of range; give 0 to {MOST_QUANTITY:g}")
    if value and _billionths(value) == 0:
        raise ValueError(f"{value:g} is too small; the minimum is 1e-9")
    return float(value)


def _positive(value: float) -> float:
    if value == 0:
        raise ValueError("it must be more than 0")
    return value


def _billionths(value: float) -> int:
    return round(Fraction(value) * 10**9)


Threads = Annotated[str, BeforeValidator(_threads)]
"""A number of threads or a word for one, kept as text."""
Quantity = Annotated[float, BeforeValidator(_quantity)]
"""A physical quantity >= 0 in its SI unit."""
Positive = Annotated[Quantity, AfterValidator(_positive)]
"""A physical quantity > 0 in its SI unit."""


class TireParameters(PolicyParameters, TimedParameters, CokernelParameters):
    """Parameters of `tire`."""

    alternatives: ClassVar[tuple[frozenset[str], ...]] = (frozenset({"duration", "steps"}),)

    solver: Literal["serial", "halo", "semaphore"] = Field(
        default="halo",
        description="how threads share the work: halo (fast), semaphore (as in Garre et al.) or serial (one "
        "thread)",
    )
    nodes: int = Field(
        default=4000, description=f"number of point masses, a multiple of 4, from 4 to {MOST_NODES}"
    )
    threads: Threads = Field(
        default="1",
        description="number of threads, or one, cores, hardware-threads or twice (two for each hardware "
        "thread)",
    )
    period_ns: Annotated[DurationNs, between("0s", "1h")] = Field(
        default=0,
        description="time in which each step must end, e.g. 10ms (real-time); 0: compute as fast as "
        "possible (real-fast)",
    )
    priority: int = Field(default=80, ge=1, le=99, description="real-time priority")
    duration_ns: Duration = Field(default=5_000_000_000, description="measured time, e.g. 5s, 1min")
    steps: int | None = Field(
        default=None, ge=1, le=2**60, description="number of steps to measure, instead of a duration"
    )
    without: Literal["none", "springs", "integration"] = Field(
        default="none", description="part of a step to leave out, to find what this part costs"
    )
    free_running: bool = Field(
        default=False,
        description="with the solver semaphore, compute exactly as in Garre et al., so that a neighbour may "
        "be a step ahead",
    )
    mass_kg: Positive = Field(default=10.0, alias="mass", description="mass of the tire, in kg")
    radius_m: Positive = Field(default=0.3, alias="radius", description="radius of the tire, in m")
    height_m: Quantity = Field(
        default=0.5, alias="height", description="initial height of the lowest node above the floor, in m"
    )
    gravity_m_s2: Quantity = Field(default=9.81, alias="gravity", description="gravity in m/s2; 0: none")
    speed_m_s: Quantity = Field(
        default=0.0, alias="speed", description="speed to the right as it rolls, in m/s"
    )
    stiffness_n_m: Positive | None = Field(
        default=None,
        alias="stiffness",
        description="stiffness of a spring, in N/m; default: calculated from the number of nodes and the "
        "mass",
    )
    damping_ns_m: Positive | None = Field(
        default=None,
        alias="damping",
        description="damping of a spring, in N s/m; default: calculated from the number of nodes and the "
        "mass",
    )
    floor: OnOff = Field(default=True, description="whether there is a floor")
    state: bool = Field(default=False, description="keep the final positions and velocities of the nodes")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.steps is not None and "duration_ns" in self.model_fields_set:
            raise ValueError("give duration or steps, not both")
        if not 4 <= self.nodes <= MOST_NODES:
            raise ValueError(
                f"{self.nodes} nodes are too {'few' if self.nodes < 4 else 'many'}; give 4 to {MOST_NODES}"
            )
        if self.nodes % 4:
            below = self.nodes - self.nodes % 4
            raise ValueError(
                f"the number of nodes must be a multiple of 4, for the four quadrants of the tire, not "
                f"{self.nodes}; use {below} or {below + 4}"
            )
        if 0 < self.period_ns < 1000:
            raise ValueError(
                f"a period of {self.period_ns}ns is shorter than the shortest time that a thread can sleep; "
                "give at least 1us"
            )
        if self.steps is not None and self.steps * self.period_ns > 2**61:
            raise ValueError("this many steps would take more than 70 years; give fewer")
        if self.free_running and self.solver != "semaphore":
            raise ValueError("free-running works only with the solver semaphore")
        if self.state and self.without != "none":
            raise ValueError(
                f"a run without {self.without} is not a simulation, so it has no final state; leave state out"
            )
        self._check_threads()
        self._check_stability()
        return self

    def _check_threads(self) -> None:
        if not self.threads.isdigit():
            return
        threads, most = int(self.threads), self.nodes // 2 if self.solver == "halo" else self.nodes
        if self.solver == "serial" and threads != 1:
            raise ValueError(f"the solver serial has only one thread, not {threads}; use halo or semaphore")
        if threads > most:
            what = "pairs of nodes" if self.solver == "halo" else "nodes"
            raise ValueError(
                f"{threads} threads are more than {most} {what}; use at most {most} threads, or more nodes"
            )

    def _check_stability(self) -> None:
        """Check the stability of explicit Euler with steps of 10 ms, as in ext/tire/README.md. The engine
        chooses stable defaults.
        """
        most = most_damping(self.nodes, self.mass_kg)
        stiffness, damping = self.stiffness_n_m or 0.0, self.damping_ns_m
        # A small margin, because the engine decides at the very edge.
        if stiffness * STEP_S > (damping or most) * (1 + 1e-9) or (damping or 0.0) > most * (1 + 1e-9):
            with_damping = "" if damping is None else f" with damping {damping:g} N s/m"
            of_stiffness = (
                f"stiffness {stiffness:g} N/m" if self.stiffness_n_m is not None else "the stiffness"
            )
            raise ValueError(
                f"{of_stiffness}{with_damping} is unstable with steps of 10 ms. With {self.nodes} nodes of "
                f"{self.mass_kg:g} kg in total, the damping must be at most {most:.4g} N s/m and at least "
                f"stiffness x 10 ms, so the stiffness can be at most {most / STEP_S:.4g} N/m; leave both out "
                "to get values that fit"
            )


def most_damping(nodes: int, mass_kg: float) -> float:
    """Return the largest damping of a spring (N s/m) with which explicit Euler is stable.

    It is 2 m / (h lambda); lambda is the largest eigenvalue of the graph's Laplacian.
    """
    return 2 * mass_kg / (nodes * STEP_S * (4 + 2 * math.cos(2 * math.pi / nodes)))


class Tire(Probe[TireParameters]):
    """Simulates point masses and springs on several threads."""

    def arguments(self, parameters: TireParameters, samples_dir: str | None) -> list[str]:
        """Return the engine's command line."""
        options = engine_options(parameters, {"state", "free_running", *QUANTITIES})
        options |= {
            option: _billionths(quantity)
            for name, option in QUANTITIES.items()
            if (quantity := parameters.get(name)) is not None
        }
        if samples_dir is not None and parameters.samples:
            options["samples_dir"] = samples_dir
        if samples_dir is not None and parameters.state:
            options["state"] = str(PurePosixPath(samples_dir) / STATE_FILE)
        return [*command_line(self.name, options), *(["--free-running"] if parameters.free_running else [])]

    def expected_ns(self, parameters: TireParameters) -> int:
        """Return the duration of warm-up and measured phase (ns); without a period, estimated per node."""
        measured_ns = parameters.duration_ns
        if parameters.steps is not None:
            measured_ns = parameters.steps * (parameters.period_ns or parameters.nodes * NODE_STEP_NS)
        return measured_ns + parameters.warm_up_ns


PROBE = Tire(
    name="tire",
    order=100,
    help="a physical simulation on several threads, as fast as possible or one step per period",
    about="""Tire: a physical simulation on several threads, as fast as possible or one step per period.

Point masses on a circle, joined by spring-dampers, fall on a floor. Real-fast measures how many
node-steps the machine computes per second; real-time checks whether each step meets its deadline.
`rtgauge run tire-search` looks for the largest tire that meets every deadline.""",
    examples=(
        "--solver halo --nodes 4000 --threads 2 --steps 6000",
        '--threads cores --period 10ms --require "response<=10ms"',
        "--nodes 40 --steps 100 --state drop.csv",
        "--nodes 12 --period 1ms --gravity 0.002 --speed 0.15 --stiffness 3 --damping 0.03 --live",
    ),
    parameters=TireParameters,
    method=(
        "A simulated tire is computed in steps of 10 ms: as fast as possible, or one step per period, "
        "released by absolute time. All threads meet after each step, and the last one reads the clock. The "
        "deadline of a step is the next release; a step that is not finished by then misses it. A release "
        "also counts as missed if it passed before the threads waited for it."
    ),
    metrics=(
        Metric(
            name="latency",
            plural="latencies",
            bound=Bound(example="period=1ms latency<=200us hardness=100%", preset=None),
        ),
        Metric(
            name="response",
            plural="responses",
            bound=Bound(example="response<=10ms hardness=99.9%", preset=None),
            is_delay=False,
        ),
        Metric(name="slack", plural="slacks", signed=True, is_delay=False),
        Metric(name="step-time", plural="step times", is_delay=False),
    ),
    missed="steps whose release passed before the threads waited for it",
    command=CommandTrait(),
    shown=Shown(folded_above=12, needs_windows=True),
    files={
        "state": KeptFile(
            name=STATE_FILE,
            help=(
                "Write the final positions and velocities to FILE: CSV if it ends in .csv, NumPy if it ends "
                "in .npy, else binary."
            ),
            export=export_state,
        )
    },
    motion=Motion(message=frame_message, script="rtgauge_ext.tire/motion.js"),
)
