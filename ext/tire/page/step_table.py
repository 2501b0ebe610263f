# SPDX-License-Identifier: MIT
"""Makes tables of the tire's steps for the page, and tables of its results for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rtgauge.record.marks import is_doubt
from rtgauge.record.model import Step
from rtgauge.report.table import Table, numbers, texts
from rtgauge.report.text import NONE, whole
from rtgauge.units import format_duration, format_time, plural
from rtgauge_ext.tire.analysis.tire_results import TireResults
from rtgauge_ext.tire.page.result_tables import MARKED, cost_grid, frontier_grid, largest_points, speed_grid
from rtgauge_ext.tire.tire_probe import PROBE as TIRE

PROBE = TIRE.name


def tire_values(step: Step) -> dict[str, Any] | None:
    """Return the values of a step's result; None if it is not a step of the tire, or computed nothing."""
    named = (dict(result.values) for result in step.results if result.name == PROBE)
    values = next(named, None) if step.key.probe == PROBE else None
    return values if values is not None and values["steps"] else None


def _rate(per_s: float) -> str:
    """Return node-steps per second with three digits and a unit: 461043681 -> "461 M"."""
    for scale, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if per_s >= scale:
            return f"{per_s / scale:.3g} {letter}"
    return f"{per_s:.3g}"


def _configuration(step: Step, values: dict[str, Any]) -> str:
    parameters = TIRE.own(step.key)
    threads = f"{values['threads']} thread{'s' if values['threads'] > 1 else ''}"
    free = ", free-running" if parameters.free_running else ""
    without = f", without {parameters.without}" if parameters.without != "none" else ""
    return (
        f"{parameters.solver}{free}{without}, {whole(values['nodes'])} nodes, {threads}, {parameters.policy}"
    )


def _step_time(values: dict[str, Any]) -> str:
    least, most = format_time(values["step_min_ns"]), format_time(values["step_max_ns"])
    mean = format_time(values["wall_ns"] / values["steps"])
    of = f", each a mean over a block of {values['block']} steps" if values["block"] > 1 else ""
    return f"{mean} on average ({least} ... {most}{of})"


def _share(part: int, whole_: int) -> str:
    return f"{part / whole_ * 100:.3g} %" if whole_ else NONE


def _pairs(step: Step, values: dict[str, Any]) -> list[list[str]]:
    rows = [["node-steps per second", _rate(values["node_steps_per_s"])], ["a step", _step_time(values)]]
    wall = format_time(values["wall_ns"])
    if values["mode"] == "real-time":
        missed, activations = values["deadline_missed"], values["activations"]
        rows.append(["period", format_duration(TIRE.own(step.key).period_ns)])
        missed_text = f"{whole(missed)} of {whole(activations)}"
        if missed:
            missed_text += f" ({_share(missed, activations)})"
            missed_text += f": {whole(values['late'])} done late, {whole(values['missed'])} not begun"
        rows.append(["deadlines missed", missed_text])
        share = _share(values["wall_ns"], activations * TIRE.own(step.key).period_ns)
        rows.append(["computing", f"{wall}, {share} of the time"])
    else:
        rest = f", without rests of {format_time(values['rest_ns'])}" if values["rest_ns"] else ""
        rows.append(["steps", f"{whole(values['steps'])} in {wall}{rest}"])
    if values["barrier_ns"] is not None:
        barrier = format_time(values["barrier_ns"])
        rows.append(["barrier", f"{barrier} per step, including the wait for the other threads"])
    voluntary = f"{whole(values['voluntary_switches'])} voluntary"
    rows.append(["task switches", f"{voluntary}, {whole(values['involuntary_switches'])} involuntary"])
    rows.append(["CPU time", f"{format_time(values['cpu_ns'])} in all threads together"])
    rows.append(["memory", f"{values['step_bytes'] / 2**20:.3g} MiB for the model"])
    return rows


def _row(step: Step, values: dict[str, Any]) -> list[str]:
    missed = f"{whole(values['deadline_missed'])}/{whole(values['activations'])}"
    missed = NONE if values["deadline_missed"] is None else missed
    name = _configuration(step, values) + ("*" if is_doubt(step.worst) else "")
    mean, longest = format_time(values["wall_ns"] / values["steps"]), format_time(values["step_max_ns"])
    return [name, _rate(values["node_steps_per_s"]), mean, longest, missed]


def tire_grid(steps: Sequence[Step]) -> Table | None:
    """Return one step in full, or a row per step if there are several; None without steps."""
    computed = [(step, values) for step in steps if (values := tire_values(step)) is not None]
    if not computed:
        return None
    if len(computed) == 1:
        step, values = computed[0]
        title = f"Tire: {_configuration(step, values)}, {values['mode']}"
        return Table(title, texts("", ""), _pairs(step, values))
    columns = [*texts(""), *numbers("node-steps/s", "step, mean", "step, max", "deadlines missed")]
    rows = [_row(*pair) for pair in computed]
    notes = [MARKED] if any(row[0].endswith("*") for row in rows) else []
    return Table("Tire", columns, rows, notes)


def steps_in_short(steps: Sequence[Step]) -> str | None:
    """Return a clause like "57 of 1,000 deadlines missed", or the speed of the fastest step; None without
    steps.
    """
    values = [values for step in steps if (values := tire_values(step)) is not None]
    paced = [value for value in values if value["mode"] == "real-time"]
    if paced:
        missed, activations = (
            sum(value[key] for value in paced) for key in ("deadline_missed", "activations")
        )
        runs = f"{plural(len(paced), 'run')} of the tire"
        return f"{whole(missed)} of {whole(activations)} deadlines missed in {runs}"
    if not values:
        return None
    fastest = _rate(max(value["node_steps_per_s"] for value in values))
    return f"up to {fastest} node-steps per second in {plural(len(values), 'run')} of the tire"


def _cost(results: TireResults) -> Table | None:
    grid = cost_grid(results)
    if grid is None or not grid.rows:
        return None
    return replace(grid.only(lambda at: at < 4), title="The cost model (ns)", notes=grid.notes[:1])


def terminal_grids(results: TireResults) -> list[Table]:
    """Return the tables that have data, in the chapter's order."""
    speed = speed_grid(results, largest_points(results), "Real-fast: the largest tire of each")
    made = (speed, frontier_grid(results), _cost(results))
    return [table for table in made if table is not None]
