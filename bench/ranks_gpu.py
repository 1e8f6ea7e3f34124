"""Assignment on several GPUs: Tables 4 and 5 and Figures 4 and 5 of Date and Nagi, and large costs.

    mpiexec -n 2 python -m bench.ranks_gpu --out ranks.json --costs 10000:int32 100000:float32
    python -m bench report ranks.json --plots docs/images

A rank uses a GPU of its own, and makes its rows there: integers from [0, 10n], or float32 numbers
from [0, 1), so that no host holds the matrix. A run adds its results to those in the file. The
seconds of a run are those of its slowest rank, with the checks of the costs, and without what is
compiled or linked once a process. Each result is verified, which is timed apart.

For more GPUs than were measured there is a model. The steps in `SCALING` read costs, and take their
seconds on one GPU divided by p; all others take what they take on two:

    t(p) = scaling(1) / p + rest(2)

For the trees, whose levels both read costs and meet, it is the curve through both measurements:

    t(p) = a + b / p
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.tables import markdown

SCALING = (
    *("costs", "first choice", "pricing"),  # of the engine
    *("initial reduction", "matrix compression", "dual update"),  # of the classical variant
)
MEASURED, MODELLED = (1, 2), (4, 8, 16)
TABLE5 = (10_000, 14_142, 20_000)
TABLE4 = {1: 10_000, 2: 14_142}  # GPUs: rows
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


def rows_on_device(n: int, dtype: str, begin: int, end: int) -> Any:
    """These rows of the costs, which do not depend on the ranks."""
    import cupy

    make = cupy.ElementwiseKernel(
        "uint64 first, float64 range, bool is_whole", "T cost", _UNIFORM, "uniform_costs"
    )
    is_whole = np.dtype(dtype).kind == "i"
    costs = cupy.empty((end - begin, n), dtype)
    make(np.uint64(begin * n), 10.0 * n + 1 if is_whole else 1.0, is_whole, costs)
    return costs


def measure(n: int, dtype: str, algorithm: str, time_limit: float | None = None) -> dict[str, Any]:
    """One run on all ranks; the same on each."""
    import cupy
    from mpi4py import MPI

    import gpumatch
    from gpumatch.distributed.communicator import even_starts

    comm = MPI.COMM_WORLD
    cupy.cuda.Device(comm.rank % cupy.cuda.runtime.getDeviceCount()).use()
    begin, end = even_starts(n, comm.size)[[comm.rank, comm.rank + 1]].tolist()
    block = rows_on_device(n, dtype, begin, end)
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
    parser.add_argument("--costs", nargs="+", default=["10000:int32"], metavar="ROWS:DTYPE")
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
    costs = [text.partition(":")[::2] for text in options.costs]
    for dtype in sorted({dtype for _, dtype in costs}):
        measure(300, dtype, options.algorithm)  # compiles and loads
    for n, dtype in costs:
        for _ in range(options.repeats):
            run = measure(int(n), dtype, options.algorithm, options.time_limit)
            data["measured"].append({**run, "run": len(data["runs"]) - 1})
            if MPI.COMM_WORLD.rank == 0:
                told = f"{n} {dtype}, {run['ranks']} GPUs: {run['seconds']:.4f} s"
                print(f"{told}, {run['matched']} rows", flush=True)
                if options.out:
                    options.out.write_text(json.dumps(data, indent=1) + "\n")


# -- reporting -------------------------------------------------------------------------------------


class Results:
    """The measured runs of an algorithm, medians over repetitions."""

    def __init__(self, data: dict[str, Any], algorithm: str, dtype: str) -> None:
        self._runs = [
            run
            for run in data["measured"]
            if (run["algorithm"], run["dtype"]) == (algorithm, dtype) and run.get("proven", True)
        ]

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
        whole, scaling, one = self.median(n, 2), self.median(n, 2, *SCALING), self.median(n, 1)
        if whole is None or scaling is None or one is None:
            return None
        return (self.median(n, 1, *SCALING) or 0.0) / ranks + whole - scaling

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
        return one - scaling + scaling / ranks


def report(data: dict[str, Any], threshold: float = 0.0) -> str:
    """Tables 4 and 5 beside the paper's, and large costs."""
    ours, paper = (Results(data, name, "int32") for name in ("engine", PAPER))
    strong = [
        [
            f"{n:,}", p, "measured" if p in MEASURED else "model",
            _text(ours.modelled(n, p), 4), _text(ours.strong(n, p)),
            _text(paper.modelled(n, p)), _text(paper.strong(n, p)),
            f"{PUBLISHED[n, p]:.2f}", _text(PUBLISHED[n, 1] / (p * PUBLISHED[n, p])),
        ]
        for n in TABLE5
        for p in (*MEASURED, *MODELLED)
    ]  # fmt: skip
    weak = [
        [f"{n:,}", p, *(_text(_weak(r, p)) for r in (ours, paper)), f"{PUBLISHED_WEAK[p]:.2f}"]
        for p, n in TABLE4.items()
    ]
    names = ["n", "GPUs", "", "engine, s", "E", "classical, s", "E", "paper, s", "E"]
    large = Results(data, "engine", "float32")
    rows = [
        [
            f"{n:,}", f"{n * n * 4 / 1e9:.0f}", p, _text(large.median(n, p), 3),
            *(_text(large.median(n, p, step), 3) for step in STEPS),
            _text(large.verify(n, p), 2),
        ]
        for n in large.sizes()
        for p in MEASURED
        if large.median(n, p)
    ]  # fmt: skip
    trees = Trees(data, TREE, "int32")
    return "\n\n".join(
        [
            *(_machine_of(run) for run in data["runs"]),
            "### Table 5: strong scaling, costs from [0, 10n]\n\n" + markdown(names, strong),
            "### Table 4: weak scaling efficiency\n\n"
            + markdown(["n", "GPUs", "engine", "classical", "paper"], weak),
            *(_tables_of_trees(trees) if trees.sizes() else ()),
            "### The engine on float32 costs from [0, 1): seconds\n\n"
            + markdown(["n", "GB", "GPUs", "in all", *STEPS, "certificate"], rows),
        ]
    )


def _tables_of_trees(trees: Results) -> tuple[str, str]:
    """Tables 5 and 4 of the tree variant beside the paper's."""
    strong = [
        [
            f"{n:,}", p, "measured" if p in MEASURED else "model",
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
        [f"{n:,}", p, _text(_weak(trees, p)), f"{PUBLISHED_TREE_WEAK[p]:.2f}"]
        for p, n in TABLE4.items()
        if _weak(trees, p)
    ]
    names = ["n", "GPUs", "", "trees, s", "E", "of which forward pass", "paper, s", "E"]
    return (
        "### Table 5, alternating trees\n\n" + markdown(names, strong),
        "### Table 4, alternating trees\n\n" + markdown(["n", "GPUs", "trees", "paper"], weak),
    )


STEPS = ("costs", "first choice", "gathering", "core", "pricing")


def figures(data: dict[str, Any]) -> dict[str, Any]:
    """Figures 4 and 5: efficiencies by GPUs, measured or modelled, and the paper's."""
    from bench.axes import draw_lines, panels

    figure, (left, right) = panels(2)
    counts = [*MEASURED, *MODELLED]
    n = max(TABLE5)
    lines: dict[str, Any] = {
        "paper": (counts, [PUBLISHED[n, 1] / (p * PUBLISHED[n, p]) for p in counts])
    }
    for name in ("engine", PAPER):
        lines[name] = (counts, [Results(data, name, "int32").strong(n, p) for p in counts])
    draw_lines(left, lines, marker="o")
    left.set(xlabel="GPUs", ylabel=f"strong efficiency, n = {n:,}", ylim=(0, 1.1))
    large = Results(data, "engine", "float32")
    draw_lines(
        right,
        {
            f"n = {n:,}": (counts, [large.strong(n, p) for p in counts])
            for n in large.sizes()
            if large.strong(n, 2)
        },
        marker="o",
    )
    right.set(xlabel="GPUs", ylabel="the engine, float32 costs", ylim=(0, 1.1))
    return {"figure5": figure}


def _weak(results: Results, ranks: int) -> float | None:
    """The paper's efficiency, t_1 / t_p with rows that grow."""
    one, several = (results.median(TABLE4[p], p) for p in (1, ranks))
    return one / several if one and several else None


def _text(number: float | None, digits: int = 2) -> str:
    return "" if number is None else f"{number:.{digits}f}"


def _machine_of(run: dict[str, Any]) -> str:
    names = [device["name"] for device in run.get("devices", ())]
    counted = [f"{names.count(name)} × {name}" for name in dict.fromkeys(names)]
    device = run.get("device") or ", ".join(counted) or "no GPU"
    return f"{run['date']}: {device}; sources {run['sources_sha256'][:12]}. {run.get('made', '')}"


if __name__ == "__main__":
    main()
