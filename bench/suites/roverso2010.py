"""Roverso et al. (INFOS 2010): the forms of Deep Greedy Switching on GEOM, and exact codes.

Gains are distances among points of a square, to be maximised. Sizes are multiples of the paper's
blocks of 256, with three problems of each. What counts is the call from a matrix that is where the
form wants it, for the GPU's forms on the device. All forms begin from the same random assignment,
unless they are called greedy. "dgs gpu" is ours, the other forms are the paper's.

The figures of the paper are not in our copy. What its text says of them is set beside what came
out, as `STATEMENTS`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from typing import Any

from bench import solvers
from bench.costs import CostInstance, Matrices, geom
from bench.harness import Contender
from bench.report.tables import (
    Graph,
    Time,
    by_size,
    markdown,
    mean_time,
    page,
    section,
)
from bench.solvers import Assign

THREADS = 8
THRESHOLD = 0.0  # every problem counts
CLAIM = 0.6  # percent that the paper's results were off at most
EVALUATION_ABOUT = 70  # percent of the paper's code in C
SWITCHING_AT_MOST = 70  # percent of the paper's mixed form
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
    """Figures 1 to 3 as tables, the paper's statements, what DGS misses, which code is faster."""
    groups = by_size(data)
    return page(
        data,
        section("Figure 1: seconds of difference evaluation", figure1(groups)),
        section("Figure 2: share of switching, percent", figure2(groups)),
        section("Figure 3: seconds in all", figure3(groups)),
        section("What the paper says, and what came out", statements(groups)),
        section("Off the optimum, percent, at worst", missed(groups)),
        section("Seconds of exact algorithms", exact(groups)),
        claims(groups),
    )


Groups = dict[int, list[Graph]]


def part_of(graphs: Iterable[Graph], contender: str, part: str) -> Time | None:
    """Mean seconds of a part, if all problems have it."""
    parts = [graph["results"].get(contender, {}).get("parts", {}).get(part) for graph in graphs]
    known = [taken for taken in parts if taken is not None]
    return Time(statistics.fmean(known)) if known else None


def figure1(groups: Groups) -> str:
    """Difference evaluation on the CPU, on the GPU in the mixed form, and in the GPU's forms."""
    columns = (CPU, MIXED_GLOBAL, MIXED_SHARED, GPU_GLOBAL, GPU_SHARED, GPU)
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
    """How much of the CPU's form, of the mixed ones and of the GPU's is switching."""
    columns = (CPU, MIXED_GLOBAL, MIXED_SHARED, GPU_GLOBAL, GPU_SHARED, GPU)
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


# -- the paper's statements ----------------------------------------------------------------------


def times(groups: Groups, slower: tuple[str, str], faster: tuple[str, str]) -> list[float]:
    """How many times longer one takes than the other, by size, on the first problem of each.

    Each is a contender and one of its parts, or "" for the whole call.
    """

    def seconds(graphs: list[Graph], contender: str, part: str) -> Time | None:
        return part_of(graphs, contender, part) if part else mean_time(graphs, contender)

    pairs = [[seconds(graphs[:1], *one) for one in (slower, faster)] for graphs in groups.values()]
    return [
        slow.seconds / fast.seconds
        for slow, fast in pairs
        if slow and fast and not slow.at_least and not fast.at_least
    ]


def exponent(groups: Groups, contender: str) -> float | None:
    """The power of n by which difference evaluation grows, from the smallest n to the largest."""
    known = [
        (n, taken.seconds)
        for n, graphs in groups.items()
        if (taken := part_of(graphs[:1], contender, EVALUATION)) is not None
    ]
    if len(known) < 2:
        return None
    (least, first), (most, last) = known[0], known[-1]
    return math.log(last / first) / math.log(most / least)


def _from_to(values: list[float]) -> str | None:
    return f"{min(values):.3g} to {max(values):.3g}" if values else None


def _shares(groups: Groups, contender: str) -> list[float]:
    shares = (share_of_switching(graphs, contender) for graphs in groups.values())
    return [share for share in shares if share is not None]


def _power(groups: Groups, contender: str) -> str | None:
    power = exponent(groups, contender)
    return None if power is None else f"n^{power:.2g}"


def _worst(groups: Groups, contender: str) -> str | None:
    worst = worst_off([graph for graphs in groups.values() for graph in graphs], contender)
    return None if worst is None else f"{worst:.2g}"


Shown = Callable[[Groups], str | None]


def _evaluation(slower: str, faster: str) -> Shown:
    return lambda groups: _from_to(times(groups, (slower, EVALUATION), (faster, EVALUATION)))


def _call(slower: str, faster: str) -> Shown:
    return lambda groups: _from_to(times(groups, (slower, ""), (faster, "")))


def _evaluation_by_call(evaluated: str, called: str) -> Shown:
    return lambda groups: _from_to(times(groups, (evaluated, EVALUATION), (called, "")))


def _none(_: Groups) -> None:
    return None


STATEMENTS: list[tuple[str, str, Shown, Shown]] = [  # quantity, the paper's, its form's, ours
    (
        "Figure 1: difference evaluation, CPU / GPU with global memory, times",
        "dramatic improvement",
        _evaluation(CPU, MIXED_GLOBAL),
        _evaluation(CPU, GPU),
    ),
    (
        "Figure 1: the same, global / shared memory, times",
        "shared consistently better",
        _evaluation(MIXED_GLOBAL, MIXED_SHARED),
        _evaluation(GPU_GLOBAL, GPU),
    ),
    (
        "Figure 1: growth with global memory",
        "linear",
        lambda groups: _power(groups, MIXED_GLOBAL),
        _none,
    ),
    (
        "Figure 1: growth with shared memory",
        "linear",
        lambda groups: _power(groups, MIXED_SHARED),
        lambda groups: _power(groups, GPU),
    ),
    ("Figure 1: growth on the CPU", "exponential", lambda groups: _power(groups, CPU), _none),
    (
        "section V: difference evaluation on the CPU alone, percent",
        f"around {EVALUATION_ABOUT}",
        lambda groups: _from_to([100.0 - share for share in _shares(groups, CPU)]),
        _none,
    ),
    (
        "Figure 2: switching in the mixed form, percent",
        f"as much as {SWITCHING_AT_MOST}",
        lambda groups: _from_to(_shares(groups, MIXED_SHARED)),
        lambda groups: _from_to(_shares(groups, GPU)),
    ),
    (
        "Figure 3: CPU / GPU, times",
        "an order of magnitude for large n",
        _call(CPU, GPU_SHARED),
        _call(CPU, GPU),
    ),
    (
        "Figure 3: mixed / GPU, times",
        "lost in our copy",
        _call(MIXED_SHARED, GPU_SHARED),
        _call(MIXED_SHARED, GPU),
    ),
    (
        "section VI: evaluation alone in the mixed form / the whole call on the GPU, times",
        "above 1 for large n",
        _evaluation_by_call(MIXED_SHARED, GPU_SHARED),
        _evaluation_by_call(MIXED_SHARED, GPU),
    ),
    (
        "Figure 3: auction on the GPU / DGS on the GPU, times",
        "lost in our copy",
        _call(AUCTION, GPU_SHARED),
        _call(AUCTION, GPU),
    ),
    (
        "section I: off the optimum at worst, percent",
        f"{CLAIM:g}",
        lambda groups: _worst(groups, GPU_SHARED),
        lambda groups: _worst(groups, GPU),
    ),
]


def statements(groups: Groups) -> str:
    """What the text says of each figure beside what the paper's forms and ours did."""
    rows = [[what, said, theirs(groups), ours(groups)] for what, said, theirs, ours in STATEMENTS]
    known = [row for row in rows if row[2] or row[3]]
    return markdown(["", "published", "the paper's forms here", "ours"], known)


# -- the optimum, and exact algorithms -----------------------------------------------------------


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
