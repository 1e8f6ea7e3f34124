"""Date, Nagi (Parallel Computing 57, 2016), section 6: both Hungarian variants, on GPU and cores.

Costs are integers drawn uniformly from [0, n/10], [0, n] and [0, 10n]. There are three instances of
each size and range, with five repetitions of each. The paper's OMP-1 and OMP-8 are the library's
`hungarian-tree` on one and eight threads. Its CU-CLASS and CU-TREE are `hungarian-classical` and
`hungarian-tree` with ``search="paper"`` on the GPU; "ours" is `hungarian-tree` as it is by default.
RAFT's solver, which continues the authors' own CU-TREE, SciPy and lapx are measured too. One
problem of 50,000 rows in float32, 10 GB, is for ours alone, because of its size.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from typing import Any

from bench import solvers
from bench.costs import CostInstance, Matrices, uniform
from bench.harness import Contender
from bench.report.tables import (
    Graph,
    Time,
    geometric_mean,
    markdown,
    mean_time,
    page,
    section,
    time_of,
)
from bench.solvers import Assign

THREADS = 8
THRESHOLD = 0.0  # every problem counts
OMP1, OMP8, CLASSICAL, TREE = PUBLISHED = "OMP-1", "OMP-8", "CU-CLASS", "CU-TREE"
OURS = "ours"
ON_GPU = (CLASSICAL, TREE, OURS)
RIVALS = ("raft", "lapx", "scipy")
FACTORS = (0.1, 1.0, 10.0)
SEEDS = (0, 1, 2)
SMALL = range(500, 5001, 500)
LARGE = (5000, 10_000, 15_000, 20_000)
AIMED = (5000, 10_000, 20_000)  # where the variants are to be no slower than RAFT
BINS = 7  # columns of Table 2, five iterations each

# The paper's: seconds on a K20X (CU) and an Opteron 6276 (OMP).
TABLE1 = {  # the optimum; seconds of the four
    500: (568.0, 0.07, 0.13, 0.51, 0.45),
    1000: (1161.0, 0.31, 0.34, 0.60, 0.50),
    1500: (1730.3, 0.79, 0.66, 0.68, 0.70),
    2000: (2352.3, 1.55, 1.03, 0.84, 0.82),
    2500: (2861.0, 2.35, 1.36, 0.86, 0.87),
    3000: (3467.3, 3.92, 1.93, 0.98, 1.32),
    3500: (4066.0, 5.41, 2.50, 1.11, 1.48),
    4000: (4715.7, 7.48, 3.21, 1.19, 1.56),
    4500: (5291.7, 9.27, 3.79, 1.24, 1.59),
    5000: (5812.0, 11.64, 4.35, 1.39, 1.70),
}
TABLE2 = {
    1000: (866, 96, 26, 6, 6),
    2000: (1745, 177, 47, 18, 10, 3),
    3000: (2608, 203, 143, 24, 10, 6, 6),
    4000: (3473, 254, 184, 52, 21, 11, 4, 1),
    5000: (4316, 354, 231, 61, 10, 22, 4, 2),
}
COMPRESSION, FORWARD, UPDATE, TOTAL = STEPS = (
    "matrix compression",
    "forward pass",
    "dual update",
    "total",
)
TABLE3_HAS = {  # the columns that it has for each code
    OMP8: (FORWARD, UPDATE, TOTAL),
    CLASSICAL: STEPS,
    TREE: (FORWARD, UPDATE, TOTAL),
}
_NO, _NONE = (None,), (None, None)  # steps that were not needed
# fmt: off
TABLE3 = {  # the optimum, initial assignments; seconds by step of OMP-8, CU-CLASS and CU-TREE
    (0.1, 5000): (1.0, 5000.0, *_NONE, 1.87, *_NO, *_NONE, 0.44, *_NONE, 0.51),
    (0.1, 10_000): (0.7, 10_000.0, *_NONE, 6.18, *_NO, *_NONE, 0.63, *_NONE, 1.15),
    (0.1, 15_000): (0.7, 15_000.0, *_NONE, 13.99, *_NO, *_NONE, 0.97, *_NONE, 1.55),
    (0.1, 20_000): (0.3, 20_000.0, *_NONE, 26.42, *_NO, *_NONE, 1.41, *_NONE, 2.05),
    (1.0, 5000): (5795.3, 4326.7, 3.91, 0.00, 4.92, 0.08, 0.81, 0.08, 1.43, 0.90, 0.03, 1.39),
    (1.0, 10_000): (11748.3, 8653.3, 12.35, 0.00, 15.83, 0.32, 1.25, 0.22, 2.44, 1.48, 0.05, 2.17),
    (1.0, 15_000): (17439.0, 13032.7, 27.98, 0.00, 36.61, 0.69, 1.65, 0.51, 3.85, 2.18, 0.07, 3.21),
    (1.0, 20_000): (23393.3, 17350.0, 49.03, 0.00, 65.77, 1.34, 2.03, 0.87, 5.69, 2.75, 0.11, 4.22),
    (10.0, 5000): (5795.3, 4049.3, 8.11, 0.01, 9.00, 0.72, 2.52, 0.66, 4.40, 3.14, 0.22, 3.86),
    (10.0, 10_000): (11748.3, 8140.3, 30.59, 0.02, 33.90,
        2.81, 4.28, 1.95, 9.74, 5.52, 0.46, 6.67),
    (10.0, 15_000): (17439.0, 12193.7, 68.80, 0.03, 77.11,
        8.01, 5.79, 5.92, 20.78, 7.96, 0.83, 9.81),
    (10.0, 20_000): (23393.3, 16268.7, 121.88, 0.04, 137.98,
        12.99, 7.18, 8.36, 30.05, 10.34, 1.06, 12.81),
}
# fmt: on
PARTS = {  # the paper's steps: names that the algorithms have for them
    COMPRESSION: ("compression", COMPRESSION),
    FORWARD: ("forward", FORWARD),
    UPDATE: (UPDATE,),
}


# -- contenders ----------------------------------------------------------------------------------

problem = Matrices


def contenders(device: str, threads: int) -> list[Contender]:
    """The paper's four and the peers; those that need a GPU on ``"cuda"`` only."""
    on_gpu = [
        Assign(CLASSICAL, "hungarian-classical", "cuda", is_verified=True),
        Assign(TREE, "hungarian-tree", "cuda", options={"search": "paper"}, is_verified=True),
        Assign(OURS, "hungarian-tree", "cuda", is_verified=True),
    ]
    return [
        *(on_gpu if device == "cuda" else []),
        *(peer for peer in solvers.peers(on_device=device == "cuda") if peer.name == "raft"),
        Assign(OMP8, "hungarian-tree", "cpu", threads),
        Assign(OMP1, "hungarian-tree", "cpu"),
        *(peer for peer in solvers.peers(on_device=False)),
    ]


# -- problems ------------------------------------------------------------------------------------


def instances(quick: bool, data: str | None) -> list[CostInstance]:
    """The aims first, the largest one among them, then the rest of Table 3 and Table 1."""
    if quick:
        return [*(uniform(20, factor) for factor in FACTORS), uniform(40, 1.0)]
    aimed = [(n, factor) for n in AIMED for factor in FACTORS]
    rest = [(n, factor) for n in LARGE if n not in AIMED for factor in FACTORS]
    small = [(n, 1.0) for n in SMALL if n not in LARGE]
    return [
        *(uniform(n, f, seed, _measured(n, seed)) for n, f in aimed for seed in SEEDS),
        largest(50_000),
        *(uniform(n, f, seed, _measured(n, seed)) for n, f in (*rest, *small) for seed in SEEDS),
    ]


def _measured(n: int, seed: int) -> tuple[str, ...]:
    """The contenders that are measured.

    Above 1,000 rows, the CPU's codes are measured on the first instance of a size only. Of the
    large sizes, they are measured only on those of `AIMED`, and without the slowest code.
    """
    if n <= 1000 or (seed == SEEDS[0] and n <= SMALL[-1]):
        return ("*",)
    if seed != SEEDS[0] or n not in AIMED:
        return (*ON_GPU, "raft")
    return (*ON_GPU, "raft", OMP8, "lapx", *(("scipy",) if n <= 10_000 else ()))


def largest(n: int) -> CostInstance:
    """Costs past the range of 32-bit offsets."""
    source = "uniform_float", n
    return CostInstance(f"float32-{n}", "float32", source, dtype="float32", only=(OURS,))


def warming(quick: bool) -> list[CostInstance]:
    """A small problem of each type of costs.

    On the GPU there are larger ones as well, because CuPy compiles other reductions for them.
    """
    sizes = () if quick else (500, 1000, 5000)
    larger = (uniform(n, 1.0, seed=9, only=ON_GPU) for n in sizes)
    return [uniform(64, 1.0, seed=9), largest(64), *larger]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Tables 1, 2 and 3 with the paper's figures, and the ratios to the peers."""
    groups = grouped(data)
    ranges = zip(FACTORS, ("n/10", "n", "10n"))
    tables = {
        "Table 1: seconds, costs from [0, n]": table1(groups),
        "Table 2: assignments found, costs from [0, n]": table2(groups),
        **{f"Table 3: seconds, costs from [0, {name}]": table3(groups, f) for f, name in ranges},
    }
    return page(
        data,
        (part for title, table in tables.items() for part in section(title, table)),
        means(groups),
        _of_the_largest(data),
    )


Groups = dict[tuple[float, int], list[Graph]]


def grouped(data: dict[str, Any]) -> Groups:
    """The instances of each range and size, by factor and n, in order."""
    groups: Groups = {}
    for graph in data["graphs"].values():
        kind, _, factor = graph["family"].partition(" x")
        if kind == "uniform":
            groups.setdefault((float(factor), graph["rows"]), []).append(graph)
    return dict(sorted(groups.items()))


def part_of(graphs: Sequence[Graph], contender: str, step: str) -> Time | None:
    """Mean seconds of one of the paper's steps."""
    known = [graph["results"].get(contender, {}).get("parts") for graph in graphs]
    taken = [sum(parts.get(name, 0.0) for name in PARTS[step]) for parts in known if parts]
    return Time(statistics.fmean(taken)) if taken else None


def objective(graphs: Sequence[Graph]) -> str | None:
    """The mean optimum of the instances."""
    known = [
        next((r["objective"] for r in graph["results"].values() if "objective" in r), None)
        for graph in graphs
    ]
    values = [value for value in known if value is not None]
    return f"{statistics.fmean(values):.1f}" if values else None


def initial(result: dict[str, Any]) -> tuple[int, list[int]]:
    """Assignments before the first update of the duals, and those of each iteration after it.

    Our first search on the GPU already updates the duals, so none is initial there.
    """
    found, updates = result["found"], result["updates"]
    first = next((i for i, made in enumerate(updates) if made), len(updates))
    return sum(found[:first]), found[first:]


def initial_mean(graphs: Sequence[Graph], contender: str) -> str | None:
    """The mean of the initial assignments."""
    counts = [before for before, _ in _split(graphs, contender)]
    return f"{statistics.fmean(counts):.1f}" if counts else None


def _split(graphs: Sequence[Graph], contender: str) -> list[tuple[int, list[int]]]:
    """`initial` of each instance."""
    results = [graph["results"].get(contender, {}) for graph in graphs]
    return [initial(result) for result in results if "found" in result]


def table1(groups: Groups) -> str:
    """Seconds on the small instances, each beside the paper's."""
    rows = []
    for (factor, n), graphs in groups.items():
        if factor != 1.0 or n > SMALL[-1]:
            continue
        optimum, *seconds = TABLE1.get(n, (None,) * (1 + len(PUBLISHED)))
        row: list[Any] = [n, objective(graphs), optimum]
        for name, printed in zip(PUBLISHED, seconds):
            row += [mean_time(graphs, name), printed]
        rows.append([*row, *(mean_time(graphs, name) for name in (OURS, *RIVALS))])
    beside = (title for name in PUBLISHED for title in (name, f"paper's {name}"))
    return markdown(["n", "optimum", "paper's optimum", *beside, OURS, *RIVALS], rows)


def table2(groups: Groups) -> str:
    """Assignments by five iterations, mean of the instances; the paper's below its CU-TREE."""
    rows: list[list[Any]] = []
    for (factor, n), graphs in groups.items():
        if factor != 1.0 or (n not in TABLE2 and n > SMALL[0]):
            continue
        for contender in ON_GPU:
            if split := _split(graphs, contender):
                rows.append([n, contender, *(f"{count:.0f}" for count in _binned(split))])
            if contender == TREE and n in TABLE2:
                printed = TABLE2[n]
                rows.append([n, f"*paper's {TREE}*", *printed, *[None] * (BINS + 2 - len(printed))])
    bins = (f"[{5 * k + 1}-{5 * k + 5}]" for k in range(BINS))
    return markdown(["n", "found by", "initial", *bins, "later"], rows)


def _binned(split: Sequence[tuple[int, list[int]]]) -> list[float]:
    """Means: initial assignments, those of five iterations at a time, and all later ones."""
    ends = [*range(0, 5 * BINS + 1, 5), None]
    bins = [
        statistics.fmean(sum(after[begin:end]) for _, after in split)
        for begin, end in itertools.pairwise(ends)
    ]
    return [statistics.fmean(before for before, _ in split), *bins]


def table3(groups: Groups, factor: float) -> str:
    """Seconds on the large instances, by code and step; the paper's below each of its codes."""
    rows: list[list[Any]] = []
    for (of, n), graphs in groups.items():
        if of != factor or (n in SMALL and n not in LARGE):
            continue
        published = _published(of, n)
        for name in (*TABLE3_HAS, OURS, *RIVALS):
            total = mean_time(graphs, name)
            if total is not None:
                has = TABLE3_HAS.get(name, (FORWARD, UPDATE))
                parts = (part_of(graphs, name, s) if s in has else None for s in STEPS[:-1])
                counts = objective(graphs), initial_mean(graphs, name)
                rows.append([n, name, *counts, *parts, total])
            if name in published:
                rows.append([n, f"*paper's {name}*", *published[name]])
    return markdown(["n", "by", "optimum", "initial", *STEPS], rows)


def _published(factor: float, n: int) -> dict[str, list[float | None]]:
    """What Table 3 prints for each of its codes: optimum, initial assignments, seconds by step."""
    if (factor, n) not in TABLE3:
        return {}
    optimum, initially, *seconds = TABLE3[factor, n]
    left = iter(seconds)
    printed = {name: dict(zip(steps, left)) for name, steps in TABLE3_HAS.items()}
    return {name: [optimum, initially, *map(steps.get, STEPS)] for name, steps in printed.items()}


def ratios(groups: Groups, contender: str, rival: str) -> dict[str, Time]:
    """By instance, how many times longer the rival takes than the contender."""
    found = {}
    for graphs in groups.values():
        for graph in graphs:
            ours, theirs = time_of(graph, contender), time_of(graph, rival)
            if ours is not None and theirs is not None and not ours.at_least:
                slower = Time(theirs.seconds / ours.seconds, theirs.at_least)
                found[f"{graph['group']}-s{graph['seed']}"] = slower
    return found


def means(groups: Groups) -> list[str]:
    """Geometric mean and least of the ratios of each rival to the GPU's codes."""
    lines = []
    aimed = {key: graphs for key, graphs in groups.items() if key[1] in AIMED}
    pairs = [*itertools.product((*RIVALS, OMP8), (OURS, TREE, CLASSICAL)), (TREE, OURS)]
    for among in (aimed, groups):
        for rival, contender in pairs:
            known = ratios(among, contender, rival)
            if known:
                worst = min(known, key=lambda name: known[name].seconds)
                where = _sizes(among, contender, rival) if among is aimed else "in all"
                lines.append(
                    f"- {rival} takes {geometric_mean(known.values())} times as long as "
                    f"{contender} {where} (geometric mean, {len(known)} problems), "
                    f"{known[worst]} times at least ({worst})."
                )
        if groups.keys() == aimed.keys():
            break
    return ["\n".join(lines)] if lines else []


def _sizes(groups: Groups, contender: str, rival: str) -> str:
    """The sizes at which both are known."""
    known = {n for (f, n), graphs in groups.items() if ratios({(f, n): graphs}, contender, rival)}
    return "at n = " + " and ".join(f"{n:,}" for n in sorted(known))


def _of_the_largest(data: dict[str, Any]) -> list[str]:
    """A line for the problem that is there for its size."""
    lines = []
    for graph in data["graphs"].values():
        result = graph["results"].get(OURS, {})
        if graph["family"] == "float32" and "certificate" in result:
            parts = ", ".join(
                f"{step} {part_of([graph], OURS, step)} s"
                for step in ("forward pass", "dual update")
            )
            lines.append(
                f"n = {graph['rows']:,}, float32: {OURS} takes {time_of(graph, OURS)} s ({parts}); "
                f"its certificate was checked in {result['certificate']:.3g} s."
            )
    return lines
