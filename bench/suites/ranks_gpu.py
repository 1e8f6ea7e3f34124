"""Assignment on several GPUs: Tables 4 and 5 and Figures 4 and 5 of Date and Nagi, and large costs.

    mpiexec -n 2 python -m bench.suites.ranks_gpu --out ranks.json --costs 10000:int32
    1000000:float32:40 python -m bench report ranks.json --plots docs/images

A rank uses a GPU of its own, and makes its rows there: integers from [0, 10n], or float32 numbers
from [0, 1), so that no host holds the matrix. Or a row has so many pairs only: with 40, a column
at random from each fortieth of all. A run adds its results to those in the file. The seconds of a
run are those of its slowest rank, with the checks of the costs, and without what is compiled or
linked once a process. Each result is verified, which is timed apart.

For more GPUs than were measured there is a model. The steps in `SCALING` read costs, and take their
seconds on one GPU divided by p; all others take what they take on two. Each doubling of the ranks
makes each meeting longer by l, which is what a second rank was measured to add (`latency`):

    t(p) = scaling(1) / p + rest(2) + meetings · l · (log2(p) - 1)

Where one GPU has no room, scaling(1) is twice scaling(2). For the trees, whose levels both read
costs and meet, the first two terms are the curve through both measurements, a + b / p. Rows that
were not measured have the power law through the last two sizes that were.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.report.tables import markdown

SCALING = (
    *("costs", "first duals", "first choice", "pricing"),  # of the engine
    *("initial reduction", "matrix compression", "dual update"),  # of the classical variant
)
MEASURED, MODELLED, FAR = (1, 2), (4, 8, 16), (64, 256, 1024)
TABLE5 = (10_000, 14_142, 20_000)
TABLE4 = {1: 10_000, 2: 14_142, 4: 20_000, 8: 28_284, 16: 40_000}  # GPUs: rows
PAPER, TREE = "hungarian-classical", "hungarian-tree"
PUBLISHED = {
    (10_000, 1): 11.07, (10_000, 2): 8.15, (10_000, 4): 7.84, (10_000, 8): 7.39, (10_000, 16): 7.17,
    (14_142, 1): 18.25, (14_142, 2): 12.94, (14_142, 4): 11.03, (14_142, 8): 9.98,
    (14_142, 16): 9.50,
    (20_000, 1): 28.50, (20_000, 2): 19.47, (20_000, 4): 15.07, (20_000, 8): 13.00,
    (20_000, 16): 12.03,
}  # fmt: skip
"""Seconds of CU-CLASS by rows and GPUs, Table 5."""
PUBLISHED_WEAK = {1: 1.00, 2: 0.83, 4: 0.69, 8: 0.56, 16: 0.44}
"""Efficiencies of CU-CLASS by GPUs, Table 4."""
PUBLISHED_TREE = {
    (10_000, 1): 16.52, (10_000, 2): 15.12, (10_000, 4): 15.78, (10_000, 8): 16.61,
    (10_000, 16): 18.30,
    (14_142, 1): 24.19, (14_142, 2): 20.65, (14_142, 4): 20.55, (14_142, 8): 21.59,
    (14_142, 16): 23.50,
    (20_000, 1): 38.30, (20_000, 2): 29.21, (20_000, 4): 26.22, (20_000, 8): 27.47,
    (20_000, 16): 30.21,
}  # fmt: skip
"""The same of CU-TREE."""
PUBLISHED_TREE_WEAK = {1: 1.00, 2: 0.80, 4: 0.61, 8: 0.44, 16: 0.28}

_UNIFORM = """
    unsigned long long x = first + static_cast<unsigned long long>(i);
    x = (x + 1) * 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    x ^= x >> 31;
    const double part = static_cast<double>(x >> 11) * 0x1p-53;
    cost = static_cast<T>(is_whole ? floor(part * range) : part * range);
"""


# -- measuring -------------------------------------------------------------------------------------


def uniform(first: int, shape: tuple[int, int], dtype: str, most: float) -> Any:
    """Numbers from [0, most) on the device, those from `first` on of one long sequence."""
    import cupy

    make = cupy.ElementwiseKernel(
        "uint64 first, float64 range, bool is_whole", "T cost", _UNIFORM, "uniform_costs"
    )
    costs = cupy.empty(shape, dtype)
    make(np.uint64(first), most, np.dtype(dtype).kind == "i", costs)
    return costs


def rows_on_device(n: int, dtype: str, pairs: int, begin: int, end: int) -> Any:
    """These rows of the costs, of all pairs or of some; they do not depend on the ranks.

    If some, n is a multiple of their number: else some columns would have none.
    """
    import cupy

    most = 10.0 * n + 1 if np.dtype(dtype).kind == "i" else 1.0
    rows, each = end - begin, pairs or n
    costs = uniform(begin * each, (rows, each), dtype, most)
    if not pairs:
        return costs
    stride = n // pairs
    cols = uniform((n + begin) * each, (rows, each), "int32", stride)
    cols += cupy.arange(pairs, dtype=np.int32) * stride
    indptr = cupy.arange(rows + 1, dtype=np.int64) * pairs
    return indptr, cols.ravel(), costs.ravel(), (rows, n)


def measure(
    n: int, dtype: str, algorithm: str, time_limit: float | None = None, pairs: int = 0
) -> dict[str, Any]:
    """One run on all ranks; the same on each."""
    import cupy
    from mpi4py import MPI

    import gpumatch
    from gpumatch.distributed.communicator import even_starts

    comm = MPI.COMM_WORLD
    cupy.cuda.Device(comm.rank % cupy.cuda.runtime.getDeviceCount()).use()
    begin, end = even_starts(n, comm.size)[[comm.rank, comm.rank + 1]].tolist()
    block = rows_on_device(n, dtype, pairs, begin, end)
    seconds = []
    for run in ("assign", "verify"):
        cupy.cuda.Device().synchronize()
        comm.Barrier()
        start = time.perf_counter()
        if run == "assign":
            a = gpumatch.distributed.assign(
                block, backend="cuda", algorithm=algorithm, time_limit=time_limit
            )
        elif a.proven:
            gpumatch.distributed.verify(block, a)
        seconds.append(comm.allreduce(time.perf_counter() - start, MPI.MAX))
    del block
    cupy.get_default_memory_pool().free_all_blocks()
    return {
        "n": n,
        "dtype": dtype,
        "pairs": pairs,
        "algorithm": algorithm,
        "ranks": comm.size,
        "seconds": seconds[0],
        "verify": seconds[1],
        "objective": a.objective,
        "gap": a.gap,
        "proven": a.proven,
        "matched": a.size,
        "levels": a.stats["levels"],
        "steps": a.stats["seconds"],
        "communication": a.stats["communication"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--costs", nargs="+", default=["10000:int32"], metavar="ROWS:DTYPE[:PAIRS]")
    parser.add_argument("--algorithm", default="engine")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="for a problem")
    options = parser.parse_args()
    from mpi4py import MPI

    from bench import machine

    data: dict[str, Any] = {"suite": "ranks-gpu", "settings": {"threshold": 0.0}}
    data |= {"runs": [], "measured": []}
    if options.out and options.out.exists():
        data = json.loads(options.out.read_text())
    data["runs"].append(machine.describe())
    costs = [(*text.split(":"), "0")[:3] for text in options.costs]
    known = set()
    for n, dtype, pairs in costs:
        if (dtype, pairs) not in known:  # what is compiled and loaded once a process
            known.add((dtype, pairs))
            measure(int(n), dtype, options.algorithm, options.time_limit, int(pairs))
        for _ in range(options.repeats):
            run = measure(int(n), dtype, options.algorithm, options.time_limit, int(pairs))
            data["measured"].append({**run, "run": len(data["runs"]) - 1})
            if MPI.COMM_WORLD.rank == 0:
                told = f"{n} {dtype} {pairs}, {run['ranks']} GPUs: {run['seconds']:.4f} s"
                print(f"{told}, {run['matched']} rows", flush=True)
                if options.out:
                    options.out.write_text(json.dumps(data, indent=1) + "\n")


# -- reporting -------------------------------------------------------------------------------------


class Results:
    """The measured runs of an algorithm on costs of all pairs, or some, medians of repetitions."""

    def __init__(self, data: dict[str, Any], algorithm: str, dtype: str, pairs: int = 0) -> None:
        self._runs = [
            run
            for run in data["measured"]
            if (run["algorithm"], run["dtype"], run.get("pairs", 0)) == (algorithm, dtype, pairs)
            and run.get("proven", True)
        ]
        by_gpus = data.get("latency", {}).get("by_gpus")
        self._added = (by_gpus["2"]["8"][2] - by_gpus["1"]["8"][2]) / 1e6 if by_gpus else 0.0

    def sizes(self) -> list[int]:
        return sorted({run["n"] for run in self._runs})

    def median(self, n: int, ranks: int, *names: str) -> float | None:
        """Seconds in all, or in these steps."""
        runs = [run for run in self._runs if (run["n"], run["ranks"]) == (n, ranks)]
        if not runs:
            return None
        if names:
            return statistics.median(sum(run["steps"].get(s, 0.0) for s in names) for run in runs)
        return statistics.median(self._seconds(run) for run in runs)

    def _seconds(self, run: dict[str, Any]) -> float:
        return float(run["seconds"])

    def verify(self, n: int, ranks: int) -> float | None:
        runs = [run["verify"] for run in self._runs if (run["n"], run["ranks"]) == (n, ranks)]
        return statistics.median(runs) if runs else None

    def modelled(self, n: int, ranks: int) -> float | None:
        """Seconds as measured, or by the model."""
        if ranks in MEASURED:
            return self.median(n, ranks)
        whole, scaling = self.median(n, 2), self.median(n, 2, *SCALING)
        if whole is None or scaling is None:
            return None
        of_one = self.median(n, 1, *SCALING)
        alone = 2 * scaling if of_one is None else of_one
        return alone / ranks + whole - scaling + self._meeting(n, ranks)

    def _meeting(self, n: int, ranks: int) -> float:
        """Seconds that all meetings take longer than those of two ranks."""
        runs = [run for run in self._runs if (run["n"], run["ranks"]) == (n, 2)]
        calls = statistics.median(run.get("communication", {}).get("calls", 0) for run in runs)
        return calls * self._added * (math.log2(ranks) - 1)

    def extrapolated(self, n: int, ranks: int) -> float | None:
        """The same for rows that may not have been measured."""
        known = {size: self.modelled(size, ranks) for size in self.sizes()}
        if n in known:
            return known[n]
        last = [(size, seconds) for size, seconds in known.items() if seconds][-2:]
        if len(last) < 2:
            return None
        (small, before), (large, after) = last
        power = math.log(after / before) / math.log(large / small)
        return after * (n / large) ** power

    def strong(self, n: int, ranks: int) -> float | None:
        """The paper's efficiency, t_1 / (p t_p)."""
        one, several = self.median(n, 1), self.modelled(n, ranks)
        return one / (ranks * several) if one and several else None


class Trees(Results):
    """Those of the tree variant, without the division of rows into columns before it."""

    def _seconds(self, run: dict[str, Any]) -> float:
        return float(run["seconds"] - run["steps"].get("division of columns", 0.0))

    def modelled(self, n: int, ranks: int) -> float | None:
        one, two = self.median(n, 1), self.median(n, 2)
        if ranks in MEASURED or one is None or two is None:
            return self.median(n, ranks)
        scaling = 2 * (one - two)
        return one - scaling + scaling / ranks + self._meeting(n, ranks)


def report(data: dict[str, Any], threshold: float = 0.0) -> str:
    """Tables 4 and 5 beside the paper's, and large costs."""
    ours, paper = (Results(data, name, "int32") for name in ("engine", PAPER))
    strong = [
        [
            f"{n:,}", p, _how(p),
            _text(ours.modelled(n, p), 4), _text(ours.strong(n, p)),
            _text(paper.modelled(n, p)), _text(paper.strong(n, p)),
            f"{PUBLISHED[n, p]:.2f}", _text(PUBLISHED[n, 1] / (p * PUBLISHED[n, p])),
        ]
        for n in TABLE5
        for p in (*MEASURED, *MODELLED)
    ]  # fmt: skip
    weak = [
        [
            f"{n:,}", p, _how(p), *(_text(_weak(r, p)) for r in (ours, paper)),
            f"{PUBLISHED_WEAK[p]:.2f}",
        ]
        for p, n in TABLE4.items()
    ]  # fmt: skip
    names = ["n", "GPUs", "", "engine, s", "E", "classical, s", "E", "paper, s", "E"]
    trees = Trees(data, TREE, "int32")
    return "\n\n".join(
        [
            *dict.fromkeys(_machine_of(run) for run in data["runs"]),
            "### Table 5: strong scaling, costs from [0, 10n]\n\n" + markdown(names, strong),
            "### Table 4: weak scaling efficiency\n\n"
            + markdown(["n", "GPUs", "", "engine", "classical", "paper"], weak),
            *(_tables_of_trees(trees) if trees.sizes() else ()),
            *_tables_of_steps(data),
            "### The engine on more GPUs, float32 costs: modelled seconds\n\n" + _modelled(data),
        ]
    )


def _modelled(data: dict[str, Any]) -> str:
    """Seconds of the engine by GPUs."""
    large = Results(data, "engine", "float32")
    counts = (*MEASURED, *MODELLED, *FAR)
    rows = [[f"{n:,}", *(_text(large.modelled(n, p), 3) for p in counts)] for n in large.sizes()]
    return markdown(["n", *map(str, counts)], rows)


def _tables_of_steps(data: dict[str, Any]) -> Iterator[str]:
    """The steps of the engine, of all pairs and of some."""
    kinds = {run.get("pairs", 0) for run in data["measured"] if run["dtype"] == "float32"}
    for pairs in sorted(kinds):
        results = Results(data, "engine", "float32", pairs)
        rows = [
            [
                f"{n:,}", f"{n * (8 * pairs or 4 * n) / 1e9:.1f}", p,
                _text(results.median(n, p), 3),
                *(_text(results.median(n, p, step), 3) for step in STEPS),
                _text(results.verify(n, p), 2),
            ]
            for n in results.sizes()
            for p in MEASURED
            if results.median(n, p)
        ]  # fmt: skip
        of = f"{pairs} pairs a row, " if pairs else ""
        yield (
            f"### The engine on float32 costs from [0, 1): {of}seconds\n\n"
            + markdown(["n", "GB", "GPUs", "in all", *STEPS, "certificate"], rows)
        )


def _tables_of_trees(trees: Results) -> tuple[str, str]:
    """Tables 5 and 4 of the tree variant beside the paper's."""
    strong = [
        [
            f"{n:,}", p, _how(p),
            _text(trees.modelled(n, p)), _text(trees.strong(n, p)),
            _text(trees.median(n, p, "forward pass")),
            f"{PUBLISHED_TREE[n, p]:.2f}",
            _text(PUBLISHED_TREE[n, 1] / (p * PUBLISHED_TREE[n, p])),
        ]
        for n in TABLE5
        if trees.median(n, 1)
        for p in (*MEASURED, *MODELLED)
    ]  # fmt: skip
    weak = [
        [f"{n:,}", p, _how(p), _text(_weak(trees, p)), f"{PUBLISHED_TREE_WEAK[p]:.2f}"]
        for p, n in TABLE4.items()
        if _weak(trees, p)
    ]
    names = ["n", "GPUs", "", "trees, s", "E", "of which forward pass", "paper, s", "E"]
    return (
        "### Table 5, alternating trees\n\n" + markdown(names, strong),
        "### Table 4, alternating trees\n\n" + markdown(["n", "GPUs", "", "trees", "paper"], weak),
    )


STEPS = ("costs", "first duals", "first choice", "gathering", "core", "pricing")


def figures(data: dict[str, Any]) -> dict[str, Any]:
    """Figures 4 and 5: efficiencies by GPUs, measured or modelled, and the paper's."""
    from bench.report.axes import draw_lines, panels

    counts, n = [*MEASURED, *MODELLED], max(TABLE5)
    ours = {name: Results(data, name, "int32") for name in ("engine", PAPER)}
    trees: dict[str, Results] = {TREE: Trees(data, TREE, "int32")}
    weak, panels_of_weak = panels(2)
    strong, panels_of_strong = panels(3)
    for place, kinds, published, published_weak in (
        (0, ours, PUBLISHED, PUBLISHED_WEAK),
        (1, trees, PUBLISHED_TREE, PUBLISHED_TREE_WEAK),
    ):
        known = {"paper": (counts, [published_weak[p] for p in counts])}
        lines = {name: (list(TABLE4), [_weak(r, p) for p in TABLE4]) for name, r in kinds.items()}
        draw_lines(panels_of_weak[place], known | lines, marker="o")
        label = "weak efficiency, n = 10,000 √GPUs"
        panels_of_weak[place].set(xlabel="GPUs", ylabel=label, ylim=(0, 1.6))
        known = {"paper": (counts, [published[n, 1] / (p * published[n, p]) for p in counts])}
        lines = {name: (counts, [r.strong(n, p) for p in counts]) for name, r in kinds.items()}
        draw_lines(panels_of_strong[place], known | lines, marker="o")
        label = f"strong efficiency, n = {n:,}"
        panels_of_strong[place].set(xlabel="GPUs", ylabel=label, ylim=(0, 1.1))
    large = Results(data, "engine", "float32")
    sizes = [n for n in large.sizes() if large.strong(n, 2)]
    lines = {f"n = {n:,}": (counts, [large.strong(n, p) for p in counts]) for n in sizes}
    draw_lines(panels_of_strong[2], lines, marker="o")
    panels_of_strong[2].set(xlabel="GPUs", ylabel="the engine, float32 costs", ylim=(0, 1.1))
    return {"figure4": weak, "figure5": strong}


def _weak(results: Results, ranks: int) -> float | None:
    """The paper's efficiency, t_1 / t_p with rows that grow."""
    one, several = results.median(TABLE4[1], 1), results.extrapolated(TABLE4[ranks], ranks)
    return one / several if one and several else None


def _how(ranks: int) -> str:
    return "measured" if ranks in MEASURED else "model"


def _text(number: float | None, digits: int = 2) -> str:
    return "" if number is None else f"{number:.{digits}f}"


def _machine_of(run: dict[str, Any]) -> str:
    names = [device["name"] for device in run.get("devices", ())]
    counted = [f"{names.count(name)} × {name}" for name in dict.fromkeys(names)]
    device = run.get("device") or ", ".join(counted) or "no GPU"
    return f"{run['date']}: {device}; sources {run['sources_sha256'][:12]}. {run.get('made', '')}"


if __name__ == "__main__":
    main()
