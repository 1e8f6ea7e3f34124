"""Roverso et al. (INFOS 2010): the forms of Deep Greedy Switching on GEOM, and exact codes.

Gains are distances among points of a square, to be maximised. Sizes are multiples of the paper's
blocks of 256, with three problems of each. What counts is the call from a matrix that is where the
form wants it, for the GPU's forms on the device. All forms begin from the same random assignment,
unless they are called greedy.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from bench import solvers
from bench.costs import CostInstance, Matrices, geom
from bench.harness import Contender
from bench.solvers import Assign
from bench.tables import (
    Graph,
    Time,
    by_size,
    describe_run,
    failures,
    markdown,
    mean_time,
    section,
)

THREADS = 8
THRESHOLD = 0.0  # every problem counts
CLAIM = 0.6  # percent that the paper's results were off at most
CPU, MIXED_GLOBAL, MIXED_SHARED = "dgs cpu", "dgs mixed global", "dgs mixed shared"
GPU_GLOBAL, GPU_SHARED, GPU = "dgs gpu global", "dgs gpu shared", "dgs gpu"
GREEDY_CPU, GREEDY = "dgs cpu greedy", "dgs gpu greedy"
FORMS = (CPU, MIXED_GLOBAL, MIXED_SHARED, GPU_GLOBAL, GPU_SHARED, GPU, GREEDY_CPU, GREEDY)
ON_GPU = {  # evaluation, switching, start
    MIXED_GLOBAL: ("global", "sequential", "random"),
    MIXED_SHARED: ("shared", "sequential", "random"),
    GPU_GLOBAL: ("global", "parallel", "random"),
    GPU_SHARED: ("shared", "parallel", "random"),
    GPU: ("block", "parallel", "random"),
    GREEDY: ("block", "parallel", "greedy"),
}
AUCTION, AUCTION_CPU = "auction gpu", "auction cpu"
EXACT = (
    "hungarian-tree gpu",
    "hungarian-classical gpu",
    AUCTION,
    "shortest-augmenting-path",
    AUCTION_CPU,
    "lapx",
    "scipy",
)
SIZES = (1024, 2048, 4096, 6144, 8192, 10_240)
SEEDS = (0, 1, 2)
EVALUATION, SWITCHING = "difference evaluation", "switching"


# -- contenders and problems ---------------------------------------------------------------------

problem = Matrices


def contenders(device: str, threads: int) -> list[Contender]:
    """The forms of DGS and the exact algorithms; those that need a GPU on ``"cuda"`` only."""
    on_gpu: list[Contender] = [
        *(
            Assign(
                name,
                "dgs",
                "cuda",
                options={"evaluation": evaluation, "switching": switching, "start": start},
                is_exact=False,
            )
            for name, (evaluation, switching, start) in ON_GPU.items()
        ),
        *(
            Assign(f"{name} gpu", name, "cuda")
            for name in ("hungarian-tree", "hungarian-classical")
        ),
        Assign(AUCTION, "auction", "cuda"),
    ]
    return [
        *(on_gpu if device == "cuda" else []),
        Assign(CPU, "dgs", "cpu", options={"switching": "sequential"}, is_exact=False),
        Assign(GREEDY_CPU, "dgs", "cpu", options={"start": "greedy"}, is_exact=False),
        Assign("shortest-augmenting-path", "shortest-augmenting-path", "cpu", threads),
        Assign(AUCTION_CPU, "auction", "cpu", threads),
        *solvers.peers(on_device=False),
    ]


def instances(quick: bool, data: str | None) -> list[CostInstance]:
    """Sizes in rising order, three problems of each; the CPU runs on the first only."""
    if quick:
        return [geom(16), geom(32)]
    return [
        geom(n, seed, ("*",) if seed == SEEDS[0] else ("dgs gpu*", "* gpu"))
        for n in SIZES
        for seed in SEEDS
    ]


def warming(quick: bool) -> list[CostInstance]:
    return [geom(64, seed=9)]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Figures 1 to 3 as tables, what DGS misses, and which code is faster."""
    groups = by_size(data)
    return "\n\n".join(
        [
            *(describe_run(run) for run in data["runs"]),
            *section("Figure 1: seconds of difference evaluation", figure1(groups)),
            *section("Figure 2: share of switching, percent", figure2(groups)),
            *section("Figure 3: seconds in all", figure3(groups)),
            *section("Off the optimum, percent, at worst", missed(groups)),
            *section("Seconds of exact algorithms", exact(groups)),
            *claims(groups),
            *failures(data),
        ]
    )


Groups = dict[int, list[Graph]]


def part_of(graphs: Iterable[Graph], contender: str, part: str) -> Time | None:
    """Mean seconds of a part, if all problems have it."""
    parts = [graph["results"].get(contender, {}).get("parts", {}).get(part) for graph in graphs]
    known = [taken for taken in parts if taken is not None]
    return Time(statistics.fmean(known)) if known else None


def figure1(groups: Groups) -> str:
    """Difference evaluation on the CPU and, in the mixed form, on the GPU."""
    columns = (CPU, MIXED_GLOBAL, MIXED_SHARED)
    rows = [
        [n, *(part_of(graphs, name, EVALUATION) for name in columns)]
        for n, graphs in groups.items()
    ]
    return markdown(["n", *columns], rows)


def share_of_switching(graphs: list[Graph], contender: str) -> float | None:
    """Of the time of difference evaluation and switching together, in percent."""
    evaluation, switching = (part_of(graphs, contender, part) for part in (EVALUATION, SWITCHING))
    if evaluation is None or switching is None:
        return None
    return 100.0 * switching.seconds / (switching.seconds + evaluation.seconds)


def figure2(groups: Groups) -> str:
    """How much of the CPU's form and of the mixed ones is switching."""
    columns = (CPU, MIXED_GLOBAL, MIXED_SHARED)
    rows = []
    for n, graphs in groups.items():
        shares = [share_of_switching(graphs, name) for name in columns]
        rows.append([n, *(None if share is None else f"{share:.0f}" for share in shares)])
    return markdown(["n", *columns], rows)


def figure3(groups: Groups) -> str:
    """The whole call, form by form, and the auction."""
    columns = (*FORMS, AUCTION)
    rows = [[n, *(mean_time(graphs, name) for name in columns)] for n, graphs in groups.items()]
    return markdown(["n", *columns], rows)


def off(graph: Graph, contender: str) -> float | None:
    """What a form misses of the optimum, in percent; None if either is not known."""
    results = graph["results"].values()
    optimum = next(
        (r["objective"] for r in results if "objective" in r and "failed" not in r), None
    )
    reached = graph["results"].get(contender, {}).get("reached")
    if optimum is None or reached is None:
        return None
    return 100.0 * (optimum - reached) / optimum


def worst_off(graphs: Iterable[Graph], contender: str) -> float | None:
    """The most of several problems."""
    known = [missed for graph in graphs if (missed := off(graph, contender)) is not None]
    return max(known, default=None)


def missed(groups: Groups) -> str:
    """What each form misses, at worst."""
    rows = []
    for n, graphs in groups.items():
        worst = [worst_off(graphs, name) for name in FORMS]
        rows.append([n, *(None if value is None else f"{value:.2g}" for value in worst)])
    return markdown(["n", *FORMS], rows)


def exact(groups: Groups) -> str:
    """The exact algorithms' whole calls."""
    rows = [[n, *(mean_time(graphs, name) for name in EXACT)] for n, graphs in groups.items()]
    return markdown(["n", *EXACT], rows)


def claims(groups: Groups) -> list[str]:
    """The 0.6 %, and the sizes at which DGS is faster than every exact algorithm."""
    lines = []
    every = [graph for graphs in groups.values() for graph in graphs]
    for name in FORMS:
        known = [missed for graph in every if (missed := off(graph, name)) is not None]
        if known:
            within = sum(missed <= CLAIM for missed in known)
            lines.append(
                f"- {name}: within {CLAIM:g} % on {within} of {len(known)} problems, "
                f"{max(known):.3g} % at worst."
            )
    for name in (GPU, CPU):
        for n, graphs in groups.items():
            first = lead(graphs, name)
            if first is not None:
                longer = f"takes {first[0]} times as long as {name}"
                lines.append(f"- n = {n:,}: {first[1]}, the fastest exact code, {longer}.")
    return ["\n".join(lines)] if lines else []


def lead(graphs: list[Graph], contender: str) -> tuple[Time, str] | None:
    """How many times longer the fastest exact algorithm takes, and which it is."""
    ours = mean_time(graphs, contender)
    times = {name: taken for name in EXACT if (taken := mean_time(graphs, name)) is not None}
    if ours is None or not times:
        return None
    rival = min(times, key=lambda name: times[name].seconds)
    return Time(times[rival].seconds / ours.seconds, times[rival].at_least), rival
