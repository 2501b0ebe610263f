# SPDX-License-Identifier: MIT
"""Writes the chapter's text in the order of the paper's section 4, with this machine's numbers."""

from __future__ import annotations

from collections import Counter

from rtgauge.report.text import whole
from rtgauge.units import format_time, plural
from rtgauge_ext.tire.analysis.prediction import SpeedPoint
from rtgauge_ext.tire.analysis.results import RealTimeMap, TireResults
from rtgauge_ext.tire.analysis.runs import HALO, SEMAPHORE, SERIAL
from rtgauge_ext.tire.page.labels import MEANING_WORDS, period_name, policy_name, threads_name
from rtgauge_ext.tire.page.map_figures import map_title
from rtgauge_ext.tire.page.result_tables import figure, interval

MODEL = (
    "A tire is n point masses on a circle, each joined by a spring and a damper to its two neighbours and "
    "to the mass opposite: n nodes, 3n/2 springs. It "
    "falls under gravity onto a floor that no node can pass. A step simulates 10 ms with the explicit Euler "
    "method: "
    "first the forces of all springs, then velocity and position of "
    "all nodes. Every step costs the same, so a late step is due to the machine."
)
SOLVERS = {
    SERIAL: "serial uses one thread and no lock.",
    SEMAPHORE: "semaphore is algorithm 1 of the paper. Each of i threads has n/i nodes and computes all "
    "springs at them; a binary semaphore for each node guards reads and writes.",
    HALO: (
        "With halo, each thread has an arc and the opposite arc, so that no spoke leaves the thread and only "
        "four borders are shared. All threads meet at one barrier in each step."
    ),
}


def model_words(results: TireResults) -> list[str]:
    """Return the text of sections 4.1 and 4.2: the model, and the solvers that ran."""
    run = dict.fromkeys([point.solver for point in results.points] + [plot.solver for plot in results.maps])
    names = [SOLVERS[name] for name in SOLVERS if name in run]
    known = results.meanings
    meant = [
        f"{word} is {plural(known[key], 'thread')}" for key, word in MEANING_WORDS.items() if key in known
    ]
    here = f"On the {plural(results.cpus, 'CPU')} of this machine"
    counts = f" {here}, the paper's names for numbers of threads mean: {', '.join(meant)}." if meant else ""
    return [MODEL, " ".join(names) + counts]


def _largest(results: TireResults, solver: str, policy: str) -> list[SpeedPoint]:
    paced = [point for point in results.points if not point.free_running]
    points = [point for point in paced if (point.solver, point.policy) == (solver, policy)]
    most = max((point.nodes for point in points), default=0)
    return sorted((point for point in points if point.nodes == most), key=lambda point: point.threads)


def _gain(results: TireResults, solver: str, policy: str) -> str | None:
    points = _largest(results, solver, policy)
    faster = [(point, point.speed_up) for point in points if point.speed_up is not None]
    gains = [
        f"{interval(times)} times as fast on {threads_name(point.threads, results)}"
        for point, times in faster
    ]
    single = next((point for point in points if point.threads == 1), None)
    if single is None:
        return None
    start = (
        f"{solver}, {policy_name(policy)}, {whole(single.nodes)} nodes: a step takes "
        f"{format_time(single.step_ns.value)} on one thread"
    )
    return f"{start}{', and is ' + ', '.join(gains) if gains else ''}."


def fast_words(results: TireResults) -> list[str]:
    """Return the text of section 4.3: the speed-up by threads, and a comparison of solvers and schedulers."""
    policies = sorted({point.policy for point in results.points})
    policies = ["fifo"] if "fifo" in policies else policies
    solvers = [solver for solver in SOLVERS if any(point.solver == solver for point in results.points)]
    gains = [_gain(results, solver, policy) for solver in solvers for policy in policies]
    sentences = [sentence for sentence in gains if sentence is not None]
    paragraphs = [" ".join(sentences)] if sentences else []
    largest = max((ratio.nodes for ratio in results.against_serial), default=0)
    compared = [
        f"{ratio.solver} is {interval(ratio.times)} times as fast as serial at {whole(ratio.nodes)} "
        f"nodes ({policy_name(ratio.policy)})"
        for ratio in results.against_serial
        if ratio.threads == 1 and ratio.nodes == largest
    ]
    if compared:
        paragraphs.append(f"Locks have a cost: {'; '.join(compared)}.")
    beside = _schedulers(results)
    if beside:
        paragraphs.append(beside)
    return paragraphs


def _schedulers(results: TireResults) -> str | None:
    """Compare OTHER with FIFO in the same configuration, by the mean step."""
    steps = {
        (point.solver, point.threads, point.nodes, point.policy): point
        for point in results.points
        if not point.free_running
    }
    ratios: list[float] = []
    apart: list[str] = []
    for (solver, threads, nodes, policy), point in steps.items():
        other = steps.get((solver, threads, nodes, "other"))
        if policy != "fifo" or other is None:
            continue
        ratios.append(other.step_ns.value / point.step_ns.value)
        a, b = point.step_ns, other.step_ns
        if (
            a.low is not None
            and a.high is not None
            and b.low is not None
            and b.high is not None
            and (a.high < b.low or b.high < a.low)
        ):
            apart.append(
                f"{solver} on {threads_name(threads, results)} at {whole(nodes)} nodes ({ratios[-1]:.2f})"
            )
    if not ratios:
        return None
    ordered = sorted(ratios)
    middle = (
        f"in the median, a step under OTHER takes {ordered[len(ordered) // 2]:.2f} times as long as under "
        f"FIFO; the ratios are between {ordered[0]:.2f} and {ordered[-1]:.2f}"
    )
    text = f"{plural(len(ratios), 'configuration')} ran under both OTHER and FIFO: {middle}."
    shown = "; ".join(apart[:5]) + (f"; and {len(apart) - 5} more" if len(apart) > 5 else "")
    return text + (
        f" The intervals of {len(apart)} of these configurations do not overlap: {shown}."
        if apart
        else " All intervals overlap."
    )


MANY_THREADS = 4
"""A map with more thread numbers than this is a pretest of how many are too many, like fig. 8."""


def _many_words(plot: RealTimeMap) -> str:
    """Return the share of missed deadlines by number of threads, for a pretest."""
    missed, deadlines = Counter[int](), Counter[int]()
    for cell in plot.cells:
        missed[cell.threads] += cell.missed
        deadlines[cell.threads] += cell.deadlines
    shares = ", ".join(
        f"{threads}: {figure(100 * missed[threads] / deadlines[threads])} %" for threads in plot.threads
    )
    return (
        f"{map_title(plot)}: measured as in fig. 8 of the paper, to see how many threads are too many. The "
        f"share of missed deadlines for each number of threads is {shares}."
    )


def _map_words(plot: RealTimeMap, results: TireResults) -> str:
    if len(plot.threads) > MANY_THREADS:
        return _many_words(plot)
    parts: list[str] = []
    for edge in plot.frontier:
        who = threads_name(edge.threads, results)
        if edge.misses is None:
            parts.append(
                f"on {who}, every deadline was met at all measured n, up to {whole(edge.holds)} nodes"
            )
        elif edge.holds is None:
            parts.append(f"on {who} a deadline was missed even at the smallest n, {whole(edge.misses)}")
        else:
            kept = f"all were met up to {whole(edge.holds)} nodes"
            parts.append(f"on {who} {kept}, and the first miss is at {whole(edge.misses)}")
        if edge.held_beyond is not None:
            parts[-1] += (
                f", although all were met again at {whole(edge.held_beyond)} nodes, so the border is not "
                "sharp"
            )
    missed = sum(cell.missed for cell in plot.cells)
    late = f"missed deadlines: {whole(missed)} of {whole(plot.deadlines)}"
    return f"{map_title(plot)}: {late}; {'; '.join(parts)}."


def real_time_words(results: TireResults) -> list[str]:
    """Return the text of section 4.4: which configurations keep every deadline, and the frontier."""
    return [_map_words(plot, results) for plot in results.maps]


def search_words(results: TireResults) -> list[str]:
    """Return a sentence with the result of each search."""
    sentences: list[str] = []
    for row in results.frontiers:
        frontier = row.searched
        if frontier is None:
            continue
        configuration = (
            f"{row.solver} on {threads_name(row.threads, results)}, {policy_name(row.policy)}, a step "
            f"every {period_name(row.period_ns)}"
        )
        if frontier.nodes is None:
            sentences.append(
                f"{configuration}: every size missed a deadline, even {whole(frontier.misses)} nodes."
            )
            continue
        runs = f"{plural(frontier.runs, 'run')} with {plural(frontier.deadlines, 'deadline')}, none missed"
        ends = f"ended between {whole(frontier.low)} and {whole(frontier.high)}"
        ended = f"{plural(frontier.bisections, 'bisection')} {ends}"
        smaller = frontier.misses is not None and frontier.misses < frontier.nodes
        late = f" But a run of {whole(frontier.misses)} nodes missed a deadline"
        doubt = f"{late}, so this machine may be late at any size." if smaller else ""
        nodes = f"{'at least ' if frontier.at_limit else ''}{whole(frontier.nodes)} nodes"
        sentences.append(f"{configuration}: {nodes} ({runs}; {ended}).{doubt}")
    return sentences


def cost_words(results: TireResults) -> list[str]:
    """Return the text of section 4.5: the terms of a step's cost, and how well they predict step times."""
    if results.cost is None:
        return []
    known = {
        (part.name, part.solver, part.policy): part.estimate
        for part in results.cost.parts
        if part.estimate is not None
    }
    sentences: list[str] = []
    for (name, _, policy), estimate in known.items():
        if name == "T_ipc":
            spring, mass = known.get(("T_spring", SERIAL, policy)), known.get(("T_mass", SERIAL, policy))
            beside = ""
            if spring is not None and mass is not None:
                terms = f"{figure(spring.value)} ns for a spring and {figure(mass.value)} ns for a mass"
                beside = f", compared with {terms}"
            doubt = (
                "" if estimate.differs_from_zero or estimate.low is None else (" The true cost may be zero.")
            )
            cost = f"a node's semaphore costs {interval(estimate)} ns for each uncontended take and give"
            sentences.append(f"Under {policy_name(policy)} {cost}{beside}.{doubt}")
    paragraphs = [" ".join(sentences)] if sentences else []
    if results.predictions:
        worst = max(results.predictions, key=lambda prediction: abs(prediction.residual))
        ordered = sorted(abs(prediction.residual) for prediction in results.predictions)
        paragraphs.append(
            f"Of {plural(len(ordered), 'configuration')}, half are predicted to within "
            f"{ordered[len(ordered) // 2] * 100:.0f} %; the worst one, {worst.solver} "
            f"under {policy_name(worst.policy)} with {whole(worst.nodes)} nodes on "
            f"{threads_name(worst.threads, results)}, takes {figure(worst.residual + 1)} "
            "times the predicted time. The model ignores caches and contention for locks."
        )
    return paragraphs
