"""Assignment on several GPUs: Tables 4 and 5 and Figures 4 and 5 of Date and Nagi, and large costs.

    mpiexec -n 2 python -m bench.suites.ranks_gpu --out ranks.json --costs 10000:int32
    python -m bench report ranks.json --plots docs/images

A rank uses a GPU of its own, and makes its rows there: integers from [0, 10n], or float32 numbers
from [0, 1), so that no host holds the matrix. Or a row has so many pairs only: with 40, a column
at random from each fortieth of all. A run adds its results to those in the file, in place of
earlier ones of the same algorithm, costs and number of ranks. The seconds of a run are those of its
slowest rank, with the checks of the costs, and without what is compiled or linked once a process.
Each result is verified, which is timed apart.

All seconds are of whole calls. The columns of the paper's tables are these steps of a call:
"matrix comp." the matrix compression with the gathering of its lists; "AP search" the forward pass
and the reverse and augmentation passes.

For more GPUs than were measured there is a model of the engine and the classical variant. The steps
in `SCALING` read costs, and take half as long on twice the GPUs; all others take what they take on
q, the most that were measured. Each doubling of the ranks makes each meeting longer by l, which is
what a second rank was measured to add (`latency`):

    t(p) = scaling(q) · q / p + rest(q) + meetings · l · log2(p / q)

Rows that were not measured have the power law through the last two sizes that were. There is no
model of the trees, whose levels both read costs and meet.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.report.ranks_published import COMPRESSION, OVERALL, SEARCH, TABLE4, TABLE5, Table
from bench.report.tables import markdown

SCALING = (
    *("costs", "first duals", "first choice", "pricing"),  # of the engine
    *("initial reduction", "matrix compression", "dual update"),  # of the classical variant
)
STEPS_OF = {  # the columns of the paper's tables
    COMPRESSION: ("matrix compression",),
    SEARCH: ("forward pass", "reverse and augmentation"),
    OVERALL: (),
}
DIVISION = "division of columns"  # before the trees, whose ranks are given rows
GPUS, FAR = (1, 2, 4, 8, 16), (64, 256, 1024)
PAPER, TREE = "hungarian-classical", "hungarian-tree"
WEAK_FROM = 10_000  # rows on one GPU in Table 4

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


def add(data: dict[str, Any], run: dict[str, Any]) -> None:
    """Keep a result, in place of what earlier runs have of its algorithm, costs and ranks.

    So no median is over results of two versions of a code.
    """

    def problem(run: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(run[name] for name in ("algorithm", "n", "dtype", "ranks")), run.get(
            "pairs", 0
        )

    last = len(data["runs"]) - 1
    data["measured"] = [
        known
        for known in data["measured"]
        if known["run"] == last or problem(known) != problem(run)
    ]
    data["measured"].append({**run, "run": last})


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
            add(data, run)
            if MPI.COMM_WORLD.rank == 0:
                told = f"{n} {dtype} {pairs}, {run['ranks']} GPUs: {run['seconds']:.4f} s"
                print(f"{told}, {run['matched']} rows", flush=True)
                if options.out:
                    options.out.write_text(json.dumps(data, indent=1) + "\n")


# -- reporting -------------------------------------------------------------------------------------


class Results:
    """The measured runs of an algorithm on costs of all pairs, or some, medians of repetitions."""

    def __init__(self, data: dict[str, Any], algorithm: str, dtype: str, pairs: int = 0) -> None:
        self.algorithm = algorithm
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

    def _of(self, n: int, ranks: int) -> list[dict[str, Any]]:
        return [run for run in self._runs if (run["n"], run["ranks"]) == (n, ranks)]

    def is_measured(self, n: int, ranks: int) -> bool:
        return bool(self._of(n, ranks))

    def median(self, n: int, ranks: int, *names: str) -> float | None:
        """Seconds of the whole call, or of these steps; None if none of them was timed."""
        runs = self._of(n, ranks)
        if not names:
            return statistics.median(run["seconds"] for run in runs) if runs else None
        timed = [run["steps"] for run in runs if any(name in run["steps"] for name in names)]
        taken = [sum(steps.get(name, 0.0) for name in names) for steps in timed]
        return statistics.median(taken) if taken else None

    def verify(self, n: int, ranks: int) -> float | None:
        runs = [run["verify"] for run in self._of(n, ranks)]
        return statistics.median(runs) if runs else None

    def seconds(self, n: int, ranks: int) -> float | None:
        """Of the whole call: measured, or by the model, if there is one."""
        known = self._most_ranks(n)
        if self.is_measured(n, ranks) or ranks < known or known == 1 or self.algorithm == TREE:
            return self.median(n, ranks)
        whole = self.median(n, known)
        if whole is None:
            return None
        scaling = self.median(n, known, *SCALING) or 0.0
        return whole - scaling * (1 - known / ranks) + self._meeting(n, ranks, known)

    def _most_ranks(self, n: int) -> int:
        """The most ranks on which these rows were measured; 1 if they were not."""
        return max((run["ranks"] for run in self._runs if run["n"] == n), default=1)

    def _meeting(self, n: int, ranks: int, known: int) -> float:
        """Seconds that all meetings take longer than those of `known` ranks."""
        runs = self._of(n, known)
        calls = statistics.median(run.get("communication", {}).get("calls", 0) for run in runs)
        return calls * self._added * math.log2(ranks / known)

    def extrapolated(self, n: int, ranks: int) -> float | None:
        """The same for rows that may not have been measured."""
        known = {size: self.seconds(size, ranks) for size in self.sizes()}
        if n in known:
            return known[n]
        last = [(size, seconds) for size, seconds in known.items() if seconds][-2:]
        if len(last) < 2:
            return None
        (small, before), (large, after) = last
        power = math.log(after / before) / math.log(large / small)
        return after * (n / large) ** power

    def strong(self, n: int, ranks: int, column: str = OVERALL) -> float | None:
        """The efficiency of Table 5, t_1 / (p t_p)."""
        one = self.median(n, 1, *STEPS_OF[column])
        several = self._column(n, ranks, column, self.seconds)
        return one / (ranks * several) if one and several else None

    def weak(self, n: int, ranks: int, column: str = OVERALL) -> float | None:
        """The efficiency of Table 4, t_1 / t_p with rows that grow."""
        one = self.median(WEAK_FROM, 1, *STEPS_OF[column])
        several = self._column(n, ranks, column, self.extrapolated)
        return one / several if one and several else None

    def _column(self, n: int, ranks: int, column: str, overall: Seconds) -> float | None:
        steps = STEPS_OF[column]
        return self.median(n, ranks, *steps) if steps else overall(n, ranks)

    def how(self, n: int, ranks: int) -> str:
        """What a row of a table is."""
        if self.is_measured(n, ranks):
            return "measured"
        return "not measured yet" if self.extrapolated(n, ranks) is None else "model"


Seconds = Callable[[int, int], float | None]
Efficiency = Callable[[int, int, str], float | None]


def report(data: dict[str, Any], threshold: float = 0.0) -> str:
    """Tables 4 and 5 beside the paper's, and large costs."""
    engine = Results(data, "engine", "int32")
    return "\n\n".join(
        [
            *dict.fromkeys(_machine_of(run) for run in data["runs"]),
            *(
                part
                for name in (PAPER, TREE)
                for part in _beside_the_paper(Results(data, name, "int32"))
            ),
            "### The engine at the sizes of Tables 5 and 4\n\n" + _of_the_engine(engine),
            *_tables_of_steps(data),
            "### The engine on float32 costs: seconds by GPUs, the model's in italics\n\n"
            + _modelled(data),
        ]
    )


def _beside_the_paper(results: Results) -> Iterator[str]:
    """Tables 5 and 4 of an algorithm, and what GPUs take of the time of one."""
    name = results.algorithm
    parts = (
        (f"Table 5, {name}: strong scaling, costs from [0, 10n]", TABLE5, results.strong),
        (f"Table 4, {name}: weak scaling, costs from [0, 10n]", TABLE4, results.weak),
    )
    for title, table, efficiency in parts:
        yield f"### {title}\n\n{_beside(results, table, efficiency)}"
    for gpus, count in ((2, "Two"), (4, "Four")):
        both = {n: (_share(results.median, n, gpus), _share(_printed(name), n, gpus))
                for n, _ in TABLE5[name]}  # fmt: skip
        known = [(f"{n:,}", *shares) for n, shares in both.items() if None not in shares]
        if known:
            sizes, ours, theirs = (_listed(column) for column in zip(*known))
            yield (
                f"- {count} GPUs take {ours} percent of the seconds of one, overall, "
                f"at n = {sizes}; {theirs} percent in the paper."
            )


def _beside(results: Results, table: Table, efficiency: Efficiency) -> str:
    """Seconds and efficiencies by column of the paper's table, the paper's below ours."""
    printed = table[results.algorithm]
    columns = [*next(iter(printed.values()))]
    overall = results.extrapolated if table is TABLE4 else results.seconds
    rows: list[list[Any]] = []
    for (n, gpus), published in printed.items():
        cells: list[str] = []
        for column in columns:
            steps = STEPS_OF[column]
            taken = results.median(n, gpus, *steps) if steps else overall(n, gpus)
            cells += [_text(taken), _text(efficiency(n, gpus, column))]
        if results.algorithm == TREE:
            division = results.median(n, gpus, DIVISION)
            apart = division is not None or not results.is_measured(n, gpus)
            cells.append(_text(division) if apart else "not apart")
        rows.append([f"{n:,}", gpus, results.how(n, gpus), *cells])
        theirs = [f"{number:.2f}" for column in columns for number in published[column]]
        rows.append([f"{n:,}", gpus, "*paper's*", *theirs, *[""] * (results.algorithm == TREE)])
    names = [name for column in columns for name in (f"{column}, s", "E")]
    of_which = ["of which division of columns"] * (results.algorithm == TREE)
    return markdown(["n", "GPUs", "", *names, *of_which], rows)


def _listed(values: Sequence[Any]) -> str:
    *first, last = map(str, values)
    return f"{', '.join(first)} and {last}" if first else last


def _printed(name: str) -> Seconds:
    """The seconds overall of Table 5."""
    return lambda n, gpus: TABLE5[name][n, gpus][OVERALL].seconds


def _share(seconds: Seconds, n: int, gpus: int) -> int | None:
    """What so many GPUs take of the seconds on one, in percent."""
    one, several = seconds(n, 1), seconds(n, gpus)
    return round(100 * several / one) if one and several else None


def _of_the_engine(engine: Results) -> str:
    """Seconds, and both efficiencies."""
    rows = [
        [
            f"{n:,}",
            gpus,
            engine.how(n, gpus),
            _text(engine.extrapolated(n, gpus), 4),
            _text(engine.strong(n, gpus)) if (n, gpus) in TABLE5[PAPER] else "",
            _text(engine.weak(n, gpus)) if (n, gpus) in TABLE4[PAPER] else "",
        ]
        for n, gpus in sorted(TABLE5[PAPER].keys() | TABLE4[PAPER].keys())
    ]
    return markdown(["n", "GPUs", "", "engine, s", "strong E", "weak E"], rows)


def _modelled(data: dict[str, Any]) -> str:
    """Seconds of the engine by GPUs."""
    large = Results(data, "engine", "float32")
    rows = [
        [
            f"{n:,}",
            *(
                f"*{_text(large.seconds(n, p), 3)}*"
                if large.how(n, p) == "model"
                else _text(large.seconds(n, p), 3)
                for p in (*GPUS, *FAR)
            ),
        ]
        for n in large.sizes()
    ]
    return markdown(["n", *map(str, (*GPUS, *FAR))], rows)


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
            for p in GPUS
            if results.is_measured(n, p)
        ]  # fmt: skip
        of = f"{pairs} pairs a row, " if pairs else ""
        yield (
            f"### The engine on float32 costs from [0, 1): {of}seconds\n\n"
            + markdown(["n", "GB", "GPUs", "in all", *STEPS, "certificate"], rows)
        )


STEPS = ("costs", "first duals", "first choice", "gathering", "core", "pricing")


# -- figures -------------------------------------------------------------------------------------


class Point(NamedTuple):
    """An efficiency of a figure."""

    gpus: int
    efficiency: float
    is_measured: bool


Points = list[Point]


def figures(data: dict[str, Any]) -> dict[str, Any]:
    """Figures 4 and 5: efficiencies by GPUs, measured or modelled, and the paper's."""
    from bench.report.axes import panels

    ours = {name: Results(data, name, "int32") for name in (PAPER, TREE, "engine")}
    weak, panels_of_weak = panels(3)
    for panel, (name, results) in zip(panels_of_weak, ours.items()):
        columns = (COMPRESSION, OVERALL) if name == PAPER else (OVERALL,)
        curves = {column: weak_points(results, column) for column in columns}
        theirs = {column: printed_points(TABLE4, name, column) for column in columns}
        _draw(panel, curves, theirs)
        panel.set(title=name, ylabel=f"weak efficiency, n = {WEAK_FROM:,} √GPUs", ylim=(0, 1.6))
    strong, panels_of_strong = panels(4)
    shown = ((PAPER, COMPRESSION), (PAPER, OVERALL), (TREE, OVERALL))
    for panel, (name, column) in zip(panels_of_strong, shown):
        sizes = sorted({n for n, _ in TABLE5[name]})
        curves = {f"n = {n:,}": strong_points(ours[name], n, column) for n in sizes}
        theirs = {f"n = {n:,}": printed_points(TABLE5, name, column, n) for n in sizes}
        _draw(panel, curves, theirs)
        panel.set(title=f"{name}: {column}", ylabel="strong efficiency", ylim=(0, 1.1))
    large = Results(data, "engine", "float32")
    sizes = [n for n in large.sizes() if large.strong(n, 2)]
    _draw(panels_of_strong[-1], {f"n = {n:,}": strong_points(large, n) for n in sizes}, {})
    panels_of_strong[-1].set(title="engine, float32 costs", ylabel="strong efficiency")
    panels_of_strong[-1].set(ylim=(0, 1.1))
    return {"figure4": weak, "figure5": strong}


def strong_points(results: Results, n: int, column: str = OVERALL) -> Points:
    """What is known of Figure 5 for so many rows."""
    return _points(results, dict.fromkeys(GPUS, n), column, results.strong)


def weak_points(results: Results, column: str = OVERALL) -> Points:
    """What is known of Figure 4."""
    return _points(results, {gpus: n for n, gpus in TABLE4[PAPER]}, column, results.weak)


def _points(results: Results, rows: dict[int, int], column: str, efficiency: Efficiency) -> Points:
    known = ((gpus, n, efficiency(n, gpus, column)) for gpus, n in rows.items())
    return [Point(gpus, e, results.is_measured(n, gpus)) for gpus, n, e in known if e is not None]


def printed_points(table: Table, name: str, column: str, rows: int | None = None) -> Points:
    """The paper's efficiencies, for so many rows or for rows that grow."""
    return [
        Point(gpus, printed[column].efficiency, True)
        for (n, gpus), printed in table.get(name, {}).items()
        if rows in (None, n)
    ]


def _draw(panel: Any, ours: dict[str, Points], theirs: dict[str, Points]) -> None:
    """Ours in full lines, with open points where they are the model's; the paper's dotted."""
    from bench.report.axes import COLOURS

    for colour, name in zip(COLOURS, ours):
        for points, style, marker, of in (
            (ours[name], "-", "o", ""),
            (theirs.get(name, []), ":", "^", ", paper"),
        ):
            if not points:
                continue
            gpus, efficiencies, _ = zip(*points)
            panel.plot(gpus, efficiencies, style, color=colour, lw=1, label=name + of)
            for is_measured, fill in ((True, colour), (False, "white")):
                at = [point[:2] for point in points if point.is_measured == is_measured]
                if at:
                    panel.plot(*zip(*at), marker, color=colour, markerfacecolor=fill, ms=5)
    panel.set(xlabel="GPUs", xscale="log")
    panel.set_xticks(GPUS, GPUS)
    panel.minorticks_off()
    if ours:
        panel.legend(frameon=False, fontsize=8)


def _text(number: float | None, digits: int = 2) -> str:
    return "" if number is None else f"{number:.{digits}f}"


def _machine_of(run: dict[str, Any]) -> str:
    names = [device["name"] for device in run.get("devices", ())]
    counted = [f"{names.count(name)} × {name}" for name in dict.fromkeys(names)]
    device = run.get("device") or ", ".join(counted) or "no GPU"
    return f"{run['date']}: {device}; sources {run['sources_sha256'][:12]}. {run.get('made', '')}"


if __name__ == "__main__":
    main()
