"""Sparse assignment: the engine on CPU and GPU against OR-tools, SPRAL's MC64 and SciPy.

What is timed is the whole call of ours, from a SciPy matrix to the assignment, or on a GPU from
arrays there; and of a rival its solver alone, from the arrays that it wants. OR-tools and SPRAL are
called in turns with ours, and both are kept, because processors change their pace from second to
second. So is the processor time of both, in all threads: on a machine that others share, it tells
more than the clock.

OR-tools takes square problems of integers; other costs are scaled to as large ones as it can take.
SPRAL takes the product of exp(-cost), scaled into what a double can hold, and gives some largest
matching if none is full. Both may miss the optimum by that rounding, so their totals are kept as
"reached".

OR-tools is the wheel `ortools`. SPRAL is that of `cmeel-spral`, called by its C interface; the
environment variable SPRAL names its library, libspral.so. (It needs Debian's libopenblas0,
libgfortran5, and libmetis5 under the name libmetis.so.) It asks for OMP_CANCELLATION=TRUE.
OMP_PROC_BIND must not be set: its OpenMP would tie the threads of all, ours too, to one processor.
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
import operator
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.sparse import csr_array, load_npz, save_npz

import gpumatch as gm
from bench.harness import Contender, Limits, Overrun, Result, Sample, repeat
from bench.peers import in_process
from bench.report.tables import (
    Graph,
    Time,
    describe_run,
    failures,
    markdown,
    mean_and_least,
    milliseconds,
    section,
    time_of,
    times_as_long,
)
from gpumatch.problems.request import Cardinality
from graphs import costs

THREADS = 2
THRESHOLD = 0.05  # seconds of the best rival that make a problem count
OURS, ORTOOLS, SPRAL, SCIPY = "engine", "or-tools", "spral", "scipy"
ON_GPU = "engine on the GPU"
PEERS = (ORTOOLS, SPRAL, SCIPY)
LARGE = 200_000  # rows from which a GPU must be far ahead
_ROOM = 600.0  # of the exponents that a double can hold


# -- problems ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SparseInstance:
    """One problem of the suite, kept as .npz.

    Attributes
    ----------
    name : str
    family : str
        What it shares with problems of other sizes.
    source : tuple
        What `graphs.costs.make` takes; or ``("file", path)`` for minus the logarithms of a matrix.
    cardinality : str
        As in `gm.assign`; rivals that want full assignments are not run on others.
    seed : int
    """

    name: str
    family: str
    source: tuple[Any, ...]
    cardinality: Cardinality = "full"
    seed: int = 1
    suits_spral: bool = True  # which may take many minutes if there is no full assignment

    suffix: ClassVar[str] = ".costs.npz"  # other suites keep graphs of the same names

    @property
    def base(self) -> str:
        """The same: each problem is an original."""
        return self.name

    def takes(self, contender: str) -> bool:
        """Whether a contender is to be measured on it."""
        is_singular = self.cardinality != "full"
        if contender == SPRAL:
            return self.suits_spral
        return not is_singular or contender in (OURS, ON_GPU)

    def facts(self, matrix: csr_array) -> dict[str, Any]:
        """What is kept of the problem in addition to its results."""
        nrows, ncols = matrix.shape
        shape = {"rows": nrows, "cols": ncols, "entries": matrix.nnz}
        more = {"dtype": str(matrix.dtype), "cardinality": self.cardinality, "seed": self.seed}
        return {"family": self.family, **shape, **more}

    def original(self) -> csr_array:
        """The costs, generated or read."""
        kind, *parameters = self.source
        if kind == "file":
            return logarithms(gm.io.read(parameters[0]))
        return costs.make(kind, *parameters, seed=self.seed)

    def of(self, original: csr_array) -> csr_array:
        """The costs, from their original: the same."""
        return original

    @staticmethod
    def save(matrix: csr_array, file: Path) -> None:
        save_npz(file, matrix)

    @staticmethod
    def load(file: Path) -> csr_array:
        return csr_array(load_npz(file))


def logarithms(matrix: Any) -> csr_array:
    """Minus the logarithms of the entries' sizes, without zeros, columns scaled to 1."""
    kept = csr_array(matrix, dtype=float, copy=True)
    kept.sum_duplicates()
    kept.eliminate_zeros()
    logs = np.log(abs(kept.data))
    greatest = np.full(kept.shape[1], -np.inf)
    np.maximum.at(greatest, kept.indices, logs)
    kept.data = greatest[kept.indices] - logs
    return kept


class SparseProblem:
    """A problem's costs, as contenders take them."""

    def __init__(self, instance: SparseInstance, matrix: csr_array, device: str) -> None:
        self.matrix, self.cardinality = matrix, instance.cardinality
        self.facts = instance.facts(matrix)

    @property
    def is_integer(self) -> bool:
        return self.matrix.dtype.kind == "i"

    @cached_property
    def on_gpu(self) -> tuple[Any, ...]:
        """The costs on a GPU."""
        import cupy

        arrays = self.matrix.indptr, self.matrix.indices, self.matrix.data
        return (*map(cupy.asarray, arrays), self.matrix.shape)

    @cached_property
    def owners(self) -> np.ndarray:
        """The row of each entry."""
        return np.repeat(np.arange(self.matrix.shape[0]), np.diff(self.matrix.indptr))


problem = SparseProblem


# -- contenders ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Engine:
    """The library's default, on so many threads; its certificate is checked once."""

    name: str
    threads: int
    backend: Literal["cpu", "cuda"] = "cpu"

    def costs(self, problem: SparseProblem) -> Any:
        return problem.on_gpu if self.backend == "cuda" else problem.matrix

    def measure(self, problem: SparseProblem, limits: Limits) -> Result:
        answer = None

        def sample() -> Sample:
            nonlocal answer
            answer, seconds = self.solve(problem, limits)
            if not answer.proven:
                raise Overrun
            return Sample(seconds, answer.size, more={"objective": answer.objective})

        result = repeat(sample, limits)
        gm.verify(self.costs(problem), answer)
        return result

    def solve(self, problem: SparseProblem, limits: Limits) -> tuple[gm.Assignment, float]:
        costs = self.costs(problem)
        begin = time.perf_counter()
        answer = gm.assign(
            costs,
            cardinality=problem.cardinality,
            backend=self.backend,
            threads=self.threads,
            time_limit=limits.cap,
        )
        return answer, time.perf_counter() - begin


Solver = Callable[[], Callable[[], tuple[int, float]]]
"""Solves, and gives what tells the size and the total of the result, which is not timed."""


@dataclass(frozen=True)
class InTurns:
    """A rival in turns with the engine, whose seconds are kept as ``"ours"``."""

    name: str
    prepare: Callable[[SparseProblem], Solver]
    engine: Engine

    def measure(self, problem: SparseProblem, limits: Limits) -> Result:
        call = self.prepare(problem)
        seconds: list[float] = []
        work: list[float] = []  # processor time of theirs by that of ours

        def sample() -> Sample:
            start = time.process_time()
            _, ours = self.engine.solve(problem, limits)
            turn, begin = time.process_time(), time.perf_counter()
            tell = call()
            theirs, end = time.perf_counter() - begin, time.process_time()
            seconds.append(ours)
            work.append((end - turn) / (turn - start))
            size, reached = tell()
            return Sample(theirs, size, more={"reached": reached})

        result = repeat(sample, limits)
        count = len(result["seconds"])
        return {**result, "ours": seconds[-count:], "work": work[-count:]}


@dataclass(frozen=True)
class SciPy:
    """`min_weight_full_bipartite_matching`, in a process of its own; it drops costs of 0."""

    name: str = SCIPY

    def measure(self, problem: SparseProblem, limits: Limits) -> Result:
        return in_process(_scipy, problem.matrix, limits, _sample)


def _scipy(matrix: csr_array) -> Callable[[], Sample]:
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    raised = matrix.astype(float)
    raised.data += 1 - min(0, raised.data.min(initial=0))

    def call() -> Sample:
        begin = time.perf_counter()
        rows, cols = min_weight_full_bipartite_matching(raised)
        seconds = time.perf_counter() - begin
        return Sample(seconds, rows.size, more={"reached": float(matrix[rows, cols].sum())})

    return call


def _sample(call: Callable[[], Sample]) -> Sample:
    return call()


def ortools(problem: SparseProblem) -> Solver:
    """`SimpleLinearSumAssignment`: cost scaling after Goldberg and Kennedy."""
    from ortools.graph.python.linear_sum_assignment import SimpleLinearSumAssignment

    matrix, n = problem.matrix, problem.matrix.shape[0]
    if matrix.shape != (n, n):
        raise ValueError("OR-tools takes square problems")
    given, unit = matrix.data, 1.0
    if not problem.is_integer:
        unit = min(2.0**30, 2.0**60 / (4.0 * n) ** 2) / max(float(np.ptp(given)), 1e-300)
        given = np.rint((given - given.min()) * unit).astype(np.int64)
    solver = SimpleLinearSumAssignment()
    solver.add_arcs_with_cost(problem.owners, matrix.indices, given)

    def call() -> Callable[[], tuple[int, float]]:
        status = solver.solve()
        if status != solver.OPTIMAL:
            raise ValueError(f"OR-tools says {status}")
        return tell

    def tell() -> tuple[int, float]:
        total = solver.optimal_cost() / unit
        return n, total if problem.is_integer else total + n * float(matrix.data.min())

    return call


def spral(problem: SparseProblem) -> Solver:
    """SPRAL's Hungarian scaling, which is MC64's algorithm, on one thread."""
    library = ctypes.CDLL(os.environ["SPRAL"])
    turned = problem.matrix.tocsc()
    logs = turned.data - turned.data.min()
    value = np.exp(-logs * min(1.0, _ROOM / max(float(logs.max(initial=0)), 1.0)))
    nrows, ncols = turned.shape
    options, told = (ctypes.c_char * 128)(), (ctypes.c_int * 64)()
    library.spral_scaling_hungarian_default_options(options)
    options[4] = b"\1"  # scale_if_singular, after the int array_base
    arrays = [
        turned.indptr.astype(np.int32), turned.indices.astype(np.int32), value,
        np.empty(nrows), np.empty(ncols), np.empty(nrows, np.int32),
    ]  # fmt: skip
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]

    def call() -> Callable[[], tuple[int, float]]:
        library.spral_scaling_hungarian_unsym(nrows, ncols, *pointers, options, told)
        return tell

    def tell() -> tuple[int, float]:
        mates = arrays[-1]
        rows = np.flatnonzero(mates >= 0)
        return rows.size, float(problem.matrix[rows, mates[rows]].sum())

    return call


def contenders(device: str, threads: int) -> list[Contender]:
    """The engine, and the rivals that are installed."""
    engine = Engine(OURS, threads)
    known: list[Contender] = [engine]
    if device == "cuda":
        known.append(Engine(ON_GPU, threads, "cuda"))
    if importlib.util.find_spec("ortools") is not None:
        known.append(InTurns(ORTOOLS, ortools, engine))
    if "SPRAL" in os.environ:
        known.append(InTurns(SPRAL, spral, engine))
    return [*known, SciPy()]


# -- instances -----------------------------------------------------------------------------------

SLOW = (
    "sparse_uniform-100000-120000-8.0-1000000",
    "sparse_uniform-100000-100000-3.0-1000",
    "sparse_uniform-1000-200000-200.0-1000",
)
REAL = ("bayer10", "teko_szdMat", "cage10", "rajat01")


def instances(quick: bool, data: str | None) -> list[SparseInstance]:
    """Structured ones by family, and real matrices."""
    if quick:
        return [
            _made("spread", 300),
            _made("mesh", 7),
            _made("nearest", 60, None, 4, cardinality="maximum"),
        ]
    return [
        _made("spread", 200_000),
        _made("mesh", 18),
        _made("nearest", 20_000, cardinality="maximum"),
        _made("nearest", 100_000, None, 24, cardinality="maximum"),
        *_real(data),
        _made("spread", 20_000),
        _made("circuit", 200_000),
        _made("circuit", 1_000_000),
        _made("kkt", 200_000),
        _made("kkt", 1_000_000),
        *(_made("mesh", 16, high) for high in (10, 10**6)),
        *(_made("power_law", 16, 8, high) for high in (10, 10**6)),
        _made("power_law", 18, 8, 10**6),
        _made("nearest", 30_000, None, 16, 3, cardinality="maximum"),
        _made("nearest", 5_000, None, 16, 64),
        _made("sparse_uniform", 100_000, 120_000, 8.0, 10**6, cardinality="maximum"),
        _made("sparse_uniform", 100_000, 100_000, 3.0, 1000, cardinality="maximum"),
        _made("sparse_uniform", 1000, 200_000, 200.0, 1000),
        _made("linkage", 3_000, cardinality="any"),
        *(_made("goldberg_kennedy", 65_536, 16, kind) for kind in ("high_cost", "low_cost")),
        _made("goldberg_kennedy", 65_536, 16, "two_cost"),
        _made("goldberg_kennedy", 262_144, 16, "low_cost"),
        _made("goldberg_kennedy", 16_384, 16, "geometric"),
        _made("goldberg_kennedy", 4_096, 16, "fixed_cost"),
    ]


def _made(family: str, *parameters: Any, cardinality: Cardinality = "full") -> SparseInstance:
    named = [str(value) for value in parameters if value is not None]
    name = "-".join([family, *named])
    suits_spral = family != "linkage" and name not in SLOW
    return SparseInstance(name, family, (family, *parameters), cardinality, suits_spral=suits_spral)


def _real(data: str | None) -> list[SparseInstance]:
    """The square matrices of numbers that are in the folder."""
    folder = Path(data or ".") / "matrices"
    files = {name: folder / f"{name}.mtx.gz" for name in REAL}
    return [
        SparseInstance(name, "real", ("file", str(file)), "maximum")
        for name, file in files.items()
        if file.exists()
    ]


def warming(quick: bool) -> list[SparseInstance]:
    """Floats and integers, square and not, for which no kernel is compiled twice."""
    return [
        _made("spread", 5_000),
        _made("mesh", 12),
        _made("nearest", 2_000, 2_500, 4, cardinality="maximum"),
        _made("sparse_uniform", 4_000, 5_000, 8.0, 1000, cardinality="maximum"),
    ]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Times and ratios problem by problem, and their means where the best rival takes long."""
    graphs = data["graphs"]
    has_gpu = any(ON_GPU in graph["results"] for graph in graphs.values())
    codes = (OURS, ON_GPU, *PEERS) if has_gpu else (OURS, *PEERS)
    rows = [
        [
            name,
            graph["rows"],
            graph["entries"],
            graph["cardinality"],
            *(milliseconds(time_of(graph, code)) for code in codes),
            best_ratio(graph),
            best_ratio(graph, work_of),
        ]
        for name, graph in graphs.items()
    ]
    header = ["costs", "rows", "entries", "cardinality"]
    header += [f"{code} ms" for code in codes] + [
        "best rival / engine",
        "by processor time",
    ]
    return "\n\n".join(
        [
            *(describe_run(run) for run in data["runs"]),
            *section(
                "Sparse costs" if has_gpu else "Sparse costs on the CPU", markdown(header, rows)
            ),
            *_means(graphs, threshold),
            *_means_on_gpu(graphs),
            *failures(data),
        ]
    )


def ratio_to(graph: Graph, peer: str) -> Time | None:
    """How many times longer a rival takes than the engine, run by run if they took turns."""
    times, result = times_as_long(graph, peer, OURS), graph["results"].get(peer, {})
    if times is None or "ours" not in result:
        return times
    return Time(statistics.median(map(operator.truediv, result["seconds"], result["ours"])))


def work_of(graph: Graph, peer: str) -> Time | None:
    """The same by the processor time of both, of all threads."""
    result = graph["results"].get(peer, {})
    return Time(statistics.median(result["work"])) if "work" in result else None


def best_ratio(
    graph: Graph, ratio_of: Callable[[Graph, str], Time | None] = ratio_to
) -> Time | None:
    """The least of the rivals' ratios."""
    known = [ratio for peer in PEERS if (ratio := ratio_of(graph, peer)) is not None]
    return min(known, key=lambda ratio: ratio.seconds, default=None)


def best_seconds(graph: Graph) -> float:
    """The seconds of the fastest rival."""
    times = [time_of(graph, peer) for peer in PEERS]
    return min((taken.seconds for taken in times if taken is not None), default=math.nan)


def _means_on_gpu(graphs: dict[str, Graph]) -> list[str]:
    """How the engine on the GPU compares with the fastest rival, and with itself on the CPU."""
    large = {name: graph for name, graph in graphs.items() if graph["rows"] >= LARGE}
    lines = []
    for names, what in (
        (PEERS, "the fastest rival takes"),
        ((OURS,), "the engine on the CPU takes"),
    ):
        ratios = []
        for name, graph in large.items():
            known = [times_as_long(graph, other, ON_GPU) for other in names]
            if any(known):
                least = min(filter(None, known), key=lambda ratio: ratio.seconds)
                ratios.append((least, name))
        if ratios:
            mean = mean_and_least(ratios, " as the engine on the GPU")
            lines.append(f"With {LARGE} rows or more, {what} {mean}.")
    return lines


def _means(graphs: dict[str, Graph], threshold: float) -> list[str]:
    long = {name: graph for name, graph in graphs.items() if best_seconds(graph) >= threshold}
    lines = []
    for ratio_of, how in ((ratio_to, ""), (work_of, " of processor time")):
        known = [(best_ratio(graph, ratio_of), name) for name, graph in long.items()]
        ratios = [(ratio, name) for ratio, name in known if ratio is not None]
        if ratios:
            mean = mean_and_least(ratios, f" as the engine{how}")
            lines.append(f"Where the best rival takes {threshold:g} s or more, it takes {mean}.")
    return lines
