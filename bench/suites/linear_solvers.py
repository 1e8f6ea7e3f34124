"""What solvers of sparse linear systems ask for: decompositions, scalings, and solves with them.

Contenders and what their seconds are of:

    dmperm      the Dulmage–Mendelsohn decomposition, the whole call; "blocks" are kept
    pyomo       Pyomo's `dulmage_mendelsohn`, which stands on networkx; coarse only
    components  `strongcomp`: the strong components of the pattern as it is, in order
    ecl-scc     ECL-SCC's components on a GPU, in no order: the time that it prints, of its kernels
    product     `maximum_product_matching` with its scaling, the whole call
    spral       SPRAL's Hungarian scaling, on one thread, in turns with ``product``: "ours", "work"
    natural     SciPy's SuperLU with pivots from the diagonal (diag_pivot_thresh=0), and a solve
    partial     the same with its default, partial pivoting
    splu        `gpumatch.linalg.splu` with diag_pivot_thresh=0, and a solve
    static      cuDSS on the matrix as it is, with its defaults, and a solve
    cudss       `gpumatch.linalg.cudss`, and a solve

On a GPU, ``dmperm`` and ``product`` are also measured on the host's processor, and cuDSS takes the
place of SuperLU if nvmath-python is installed. Its matrices come from the host.

Of solves, "residual" is ||b - A x|| / ||b|| with b = A 1 in 2-norms (None if it is not finite), and
"fill" the entries of L and U. On a GPU, matrices are on the device.

Pyomo is the wheel `pyomo`. SPRAL is as for `bench.sparse_solvers`. The environment
variable ECL_SCC names ECL-SCC's program (github.com/burtscher/ECL-SCC).
"""

from __future__ import annotations

import contextlib
import importlib.util
import operator
import os
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.sparse import csr_array

import gpumatch as gm
from bench.harness import Contender, Limits, Result, Sample, repeat
from bench.report.tables import (
    Graph,
    Time,
    geometric_mean,
    markdown,
    mean_and_least,
    milliseconds,
    page,
    section,
    time_of,
    times_as_long,
    work_in_turns,
)
from bench.sparse_costs import Npz, SparseInstance, SparseProblem, logarithms
from bench.sparse_solvers import InTurns, Solver, spral
from graphs import delaunay, grid, matrices
from graphs.sweeps import sweep

Told = tuple[int, dict[str, Any]]  # the size of a result, and what else is kept

THREADS = 2
THRESHOLD = 0.02  # seconds of SPRAL that make a matrix count
PATTERN = "dmperm", "pyomo"
SCALING = "product", "spral"
SOLVES = "natural", "partial", "splu"
SOLVES_ON_GPU = "static", "cudss"
EVERY_SOLVE = *SOLVES, *SOLVES_ON_GPU
ON_CPU = " on the CPU"
BOTH = "dmperm", "product"  # measured there, too, if there is a GPU
LARGE = 200_000  # rows from which a GPU must be far ahead


# -- matrices ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MatrixInstance(Npz):
    """One matrix of the suite, kept as .matrix.npz.

    Attributes
    ----------
    name, family : str
    make : callable
        Gives the matrix.
    contenders : tuple of str
        What is measured on it.
    """

    name: str
    family: str
    make: Callable[[], csr_array]
    contenders: tuple[str, ...]

    suffix: ClassVar[str] = ".matrix.npz"  # other suites keep costs of the same names

    def takes(self, contender: str) -> bool:
        """True if a contender is to be measured on it."""
        return contender.removesuffix(ON_CPU) in self.contenders

    def original(self) -> csr_array:
        """The matrix, generated or read."""
        return csr_array(self.make())


class MatrixProblem:
    """A matrix as contenders take it."""

    def __init__(self, instance: MatrixInstance, matrix: csr_array, device: str) -> None:
        self.instance, self.matrix, self.device = instance, matrix, device
        rows, cols = matrix.shape
        self.facts = {
            "family": instance.family, "rows": rows, "cols": cols, "entries": matrix.nnz
        }  # fmt: skip

    @cached_property
    def given(self) -> Any:
        """CSR arrays with the values, on the device or the host."""
        arrays = self.matrix.indptr, self.matrix.indices, self.matrix.data.astype(float)
        if self.device == "cuda":
            import cupy

            arrays = tuple(map(cupy.asarray, arrays))
        return (*arrays, self.matrix.shape)

    @property
    def backend(self) -> Literal["cpu", "cuda"]:
        return "cuda" if self.device == "cuda" else "cpu"

    @cached_property
    def on_host(self) -> MatrixProblem:
        """The same, given on the host."""
        return self if self.device == "cpu" else MatrixProblem(self.instance, self.matrix, "cpu")

    @cached_property
    def pattern(self) -> Any:
        """CSR arrays of the pattern, there."""
        indptr, indices, _, shape = self.given
        return indptr, indices, shape

    @cached_property
    def costs(self) -> SparseProblem:
        """Minus the logarithms of the entries, for SPRAL."""
        instance = SparseInstance("", "", (), "full")
        return SparseProblem(instance, logarithms(self.matrix), "cpu")


problem = MatrixProblem


# -- contenders ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A function of a problem: it gives the size of its result, and what else is kept."""

    name: str
    call: Callable[[MatrixProblem, int], Told]
    threads: int
    device: str = "cpu"

    def measure(self, problem: MatrixProblem, limits: Limits) -> Result:
        return repeat(lambda: self._sample(problem), limits)

    def _sample(self, problem: MatrixProblem) -> Sample:
        if self.device == "cpu":
            problem = problem.on_host
        problem.given  # noqa: B018  on the device before the clock starts
        begin = time.perf_counter()
        size, more = self.call(problem, self.threads)
        if self.device == "cuda":
            import cupy

            cupy.cuda.get_current_stream().synchronize()
        seconds = time.perf_counter() - begin
        return Sample(seconds, size, more={"of": self.name, **more})


def _dmperm(problem: MatrixProblem, threads: int) -> Told:
    d = gm.linalg.dmperm(problem.pattern, backend=problem.backend, threads=threads)
    return int(d.rr[3]), {"blocks": len(d.r) - 1}


def _components(problem: MatrixProblem, threads: int) -> Told:
    _, r = gm.linalg.strongcomp(problem.pattern, backend=problem.backend)
    return problem.matrix.shape[0], {"blocks": len(r) - 1}


def _pyomo(problem: MatrixProblem, threads: int) -> Told:
    from pyomo.contrib.incidence_analysis.dulmage_mendelsohn import dulmage_mendelsohn

    rows, _ = dulmage_mendelsohn(problem.matrix.tocoo())
    return problem.matrix.shape[0] - len(rows.unmatched), {}


def _product(problem: MatrixProblem, threads: int) -> Told:
    s = gm.linalg.maximum_product_matching(problem.given, backend=problem.backend, threads=threads)
    return s.size, {"log_product": s.log_product}


def _solve(
    problem: MatrixProblem,
    factor: Callable[[csr_array], Any],
    fill_of: Callable[[Any], int] = operator.attrgetter("nnz"),
) -> Told:
    """Factor and solve; a solver's overflows are part of the result."""
    matrix = problem.matrix.astype(float)
    right = matrix @ np.ones(matrix.shape[0])
    with np.errstate(all="ignore"):
        lu = factor(matrix)
        rest = np.linalg.norm(right - matrix @ lu.solve(right)) / np.linalg.norm(right)
    residual = float(rest) if np.isfinite(rest) else None
    return matrix.shape[0], {"residual": residual, "fill": int(fill_of(lu))}


def _natural(problem: MatrixProblem, threads: int) -> Told:
    from scipy.sparse.linalg import splu

    return _solve(problem, lambda matrix: splu(matrix.tocsc(), diag_pivot_thresh=0.0))


def _partial(problem: MatrixProblem, threads: int) -> Told:
    from scipy.sparse.linalg import splu

    return _solve(problem, lambda matrix: splu(matrix.tocsc()))


def _splu(problem: MatrixProblem, threads: int) -> Told:
    def factor(matrix: csr_array) -> Any:
        return gm.linalg.splu(matrix, diag_pivot_thresh=0.0, threads=threads)

    return _solve(problem, factor)


class _Static:
    """cuDSS's factors of a matrix as it is."""

    def __init__(self, matrix: csr_array) -> None:
        from nvmath.sparse.advanced import DirectSolver

        self.solver = DirectSolver(matrix, np.zeros(matrix.shape[0]))
        self.solver.plan()
        self.solver.factorize()

    def solve(self, right: np.ndarray) -> np.ndarray:
        self.solver.reset_operands(b=right)
        return self.solver.solve()


def _of_cudss(factor: Callable[[csr_array], Any]) -> Callable[[MatrixProblem, int], Told]:
    """Factor and solve by cuDSS, and give the GPU's memory back."""

    def call(problem: MatrixProblem, threads: int) -> Told:
        with contextlib.ExitStack() as until_end:

            def factored(matrix: csr_array) -> Any:
                system = factor(matrix)
                until_end.callback(system.solver.free)
                return system

            return _solve(problem, factored, lambda it: it.solver.factorization_info.lu_nnz)

    return call


@dataclass(frozen=True)
class _Product:
    """``product`` as SPRAL's turns need it: it solves the matrix, not its logarithms."""

    threads: int

    def solve(self, problem: MatrixProblem, limits: Limits) -> tuple[Any, float]:
        begin = time.perf_counter()
        s = gm.linalg.maximum_product_matching(problem.given, threads=self.threads)
        return s, time.perf_counter() - begin


def _spral(problem: MatrixProblem) -> Solver:
    return spral(problem.costs)


@dataclass(frozen=True)
class EclScc:
    """ECL-SCC's program on a file of the pattern; each run is a process."""

    name: str = "ecl-scc"

    def measure(self, problem: MatrixProblem, limits: Limits) -> Result:
        matrix = problem.matrix
        with tempfile.NamedTemporaryFile(suffix=".egr") as file:
            for part in ([matrix.shape[0], matrix.nnz], matrix.indptr, matrix.indices):
                file.write(np.asarray(part, np.int32).tobytes())
            file.flush()
            return repeat(lambda: self._sample(file.name, matrix.shape[0], limits), limits)

    def _sample(self, file: str, rows: int, limits: Limits) -> Sample:
        printed = subprocess.run(
            [os.environ["ECL_SCC"], file],
            env=os.environ | {"CUDA_MODULE_LOADING": "EAGER"},
            timeout=limits.cap,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        (seconds,) = re.findall(r"compute time: (\S+) s", printed)
        (blocks,) = re.findall(r"number of SCCs: (\d+)", printed)
        return Sample(float(seconds), rows, more={"blocks": int(blocks)})


def contenders(device: str, threads: int) -> list[Contender]:
    """The library's functions, and the rivals that are installed."""
    on_device = [("dmperm", _dmperm), ("components", _components), ("product", _product)]
    known: list[Contender] = [Call(name, call, threads, device) for name, call in on_device]
    if device == "cuda":
        known += [Call(name + ON_CPU, call, threads) for name, call in on_device if name in BOTH]
        if importlib.util.find_spec("nvmath") is not None:
            factors: tuple[Callable[[csr_array], Any], ...] = _Static, gm.linalg.cudss
            known += [
                Call(name, _of_cudss(factor), threads)
                for name, factor in zip(SOLVES_ON_GPU, factors)
            ]
        return [*known, EclScc()] if "ECL_SCC" in os.environ else known
    if importlib.util.find_spec("pyomo") is not None:
        known.append(Call("pyomo", _pyomo, 1))
    if "SPRAL" in os.environ:
        known.append(InTurns("spral", _spral, _Product(threads)))  # type: ignore[arg-type]
    solves = [("natural", _natural), ("partial", _partial), ("splu", _splu)]
    return [*known, *(Call(name, call, threads) for name, call in solves)]


# -- instances -----------------------------------------------------------------------------------

REAL = ("bayer10", "teko_szdMat", "cage10")


def instances(quick: bool, data: str | None) -> list[MatrixInstance]:
    """Patterns, matrices by family and size, and real ones."""
    if quick:
        return [
            _made("circuit", 300, (*PATTERN, "components", *SCALING, *EVERY_SOLVE)),
            MatrixInstance("grid-12", "pattern", partial(grid, 12, 0.65, seed=1), PATTERN),
        ]
    large = ("dmperm", *SCALING, *SOLVES_ON_GPU)
    return [
        MatrixInstance("grid-224", "pattern", partial(grid, 224, 0.65, seed=1), PATTERN),
        MatrixInstance("grid-1024", "pattern", partial(grid, 1024, 0.65, seed=1), ("dmperm",)),
        MatrixInstance("delaunay-20", "pattern", partial(delaunay, 20, seed=1), ("dmperm",)),
        *_sweeps(),
        *_real(data),
        *(_made(family, 5_000, (*PATTERN, *SCALING, *EVERY_SOLVE)) for family in matrices.FAMILIES),
        MatrixInstance("random-100", "nvmath-python#56", _random, EVERY_SOLVE),
        *(_made(family, 200_000, large) for family in matrices.FAMILIES),
        _made("kkt", 1_000_000, ("dmperm", *SCALING)),
        *(_made(family, 1_000_000, SCALING) for family in ("circuit", "power_flow", "recycle")),
        _made("kkt", 2_800_000, SCALING),
    ]


def _made(family: str, n: int, contenders: tuple[str, ...]) -> MatrixInstance:
    make = partial(matrices.make, family, n, seed=1)
    return MatrixInstance(f"{family}-{n}", family, make, contenders)


def _sweeps() -> list[MatrixInstance]:
    """Meshes as ECL-SCC was measured on: of the sizes of its examples, and a swirl."""
    shapes: dict[str, dict[str, Any]] = {
        "sweep-star": {"nx": 512, "ny": 640},
        "sweep-toroid": {"nx": 64, "ny": 64, "nz": 48},
        "sweep-cold-flow": {"nx": 128, "ny": 128, "nz": 128, "bend": 0.02},
        "sweep-bent": {"nx": 512, "ny": 640, "bend": 0.2},
        "sweep-swirl": {"nx": 128, "ny": 128, "nz": 128, "swirl": 3.0},
    }
    return [
        MatrixInstance(name, "sweep", partial(sweep, **given), ("components", "ecl-scc"))
        for name, given in shapes.items()
    ]


def _random() -> csr_array:
    """Random values without a large diagonal, n = 100."""
    rng = np.random.default_rng(0)
    return csr_array(rng.random((100, 100)) * (rng.random((100, 100)) < 0.3))


def _real(data: str | None) -> list[MatrixInstance]:
    folder = Path(data or ".") / "matrices"
    files = {name: folder / f"{name}.mtx.gz" for name in REAL}
    files["west0067"] = Path(__file__).parents[2] / "datasets" / "west0067.mtx.gz"
    return [
        MatrixInstance(name, "real", partial(gm.io.read, file), (*PATTERN, *SCALING, *EVERY_SOLVE))
        for name, file in files.items()
        if file.exists()
    ]


def warming(quick: bool) -> list[MatrixInstance]:
    """One matrix and one singular pattern, small, for all functions."""
    return [
        _made("kkt", 3_000, ("dmperm", "components", *SCALING, *EVERY_SOLVE)),
        MatrixInstance("grid-40", "pattern", partial(grid, 40, 0.65, seed=1), PATTERN),
    ]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Times, ratios to the rivals, and residuals before and after."""
    graphs = data["graphs"]
    parts = _table("Decompositions", graphs, _decomposition, PATTERN_HEADER)
    parts += _table("Scalings", graphs, _scaling, SCALING_HEADER)
    for title, names in (("Solves", SOLVES), ("Solves on a GPU", SOLVES_ON_GPU)):
        parts += _table(title, graphs, partial(_solves, names), _solves_header(names))
    parts += _table("GPU and CPU", graphs, _on_both, BOTH_HEADER)
    return page(data, parts, _mean(graphs, threshold), _means_on_gpu(graphs))


PATTERN_HEADER = ["matrix", "rows", "entries", "blocks", "ms", "Pyomo ms", "Pyomo / ours"]
PATTERN_HEADER += ["ECL-SCC ms", "ECL-SCC / ours"]
SCALING_HEADER = [
    "matrix",
    "rows",
    "entries",
    "ms",
    "SPRAL ms",
    "SPRAL / ours",
    "by processor time",
]
BOTH_HEADER = ["matrix", "rows", "entries"]
BOTH_HEADER += [f"{name} {what}" for name in BOTH for what in ("GPU ms", "CPU ms", "CPU / GPU")]


def _table(
    title: str,
    graphs: dict[str, Graph],
    row: Callable[[Graph], list[Any] | None],
    header: list[str],
) -> list[str]:
    rows = [
        [name, graph["rows"], *cells]
        for name, graph in graphs.items()
        if (cells := row(graph)) is not None
    ]
    return section(title, markdown(header, rows)) if rows else []


def _decomposition(graph: Graph) -> list[Any] | None:
    name = "dmperm" if "dmperm" in graph["results"] else "components"
    if name not in graph["results"]:
        return None
    cells = [graph["entries"], graph["results"][name].get("blocks")]
    cells.append(milliseconds(time_of(graph, name)))
    for rival in ("pyomo", "ecl-scc"):
        cells += [milliseconds(time_of(graph, rival)), times_as_long(graph, rival, name)]
    return cells


def _scaling(graph: Graph) -> list[Any] | None:
    if "product" not in graph["results"]:
        return None
    ours, theirs = (milliseconds(time_of(graph, name)) for name in SCALING)
    return [graph["entries"], ours, theirs, ratio_of(graph), work_in_turns(graph, "spral")]


def ratio_of(graph: Graph) -> Time | None:
    """How many times longer SPRAL takes, run by run."""
    result = graph["results"].get("spral", {})
    if "ours" not in result:
        return None
    return Time(statistics.median(map(operator.truediv, result["seconds"], result["ours"])))


def _solves_header(names: Sequence[str]) -> list[str]:
    whats = "residual", "fill", "ms"
    return ["matrix", "rows", *(f"{what} {name}" for name in names for what in whats)]


def _solves(names: Sequence[str], graph: Graph) -> list[Any] | None:
    if names[-1] not in graph["results"]:
        return None
    cells: list[Any] = []
    for name in names:
        result = graph["results"].get(name, {})
        residual = result.get("residual")
        cells += [
            f"{residual:.1e}" if residual is not None else result.get("failed", "not finite"),
            result.get("fill"),
            milliseconds(time_of(graph, name)),
        ]
    return cells


def _on_both(graph: Graph) -> list[Any] | None:
    if not any(name + ON_CPU in graph["results"] for name in BOTH):
        return None
    cells: list[Any] = [graph["entries"]]
    for name in BOTH:
        cells += [milliseconds(time_of(graph, where)) for where in (name, name + ON_CPU)]
        cells.append(times_as_long(graph, name + ON_CPU, name))
    return cells


def _means_on_gpu(graphs: dict[str, Graph]) -> list[str]:
    """How much longer the CPU takes for what is large."""
    lines = []
    for name in BOTH:
        ratios = [
            (ratio, matrix)
            for matrix, graph in graphs.items()
            if graph["rows"] >= LARGE
            and (ratio := times_as_long(graph, name + ON_CPU, name)) is not None
        ]
        if ratios:
            mean = mean_and_least(ratios, " on the CPU as on the GPU", "matrices")
            lines.append(f"With {LARGE} rows or more, `{name}` takes {mean}.")
    return lines


def _mean(graphs: dict[str, Graph], threshold: float) -> list[str]:
    times = {name: time_of(graph, "spral") for name, graph in graphs.items()}
    long = [graphs[name] for name, taken in times.items() if taken and taken.seconds >= threshold]
    ratios = [ratio for graph in long if (ratio := ratio_of(graph)) is not None]
    if not ratios:
        return []
    return [
        f"Where SPRAL takes {threshold:g} s or more, it takes {geometric_mean(ratios)} times as "
        f"long as `maximum_product_matching` (geometric mean, {len(ratios)} matrices; "
        f"{geometric_mean(work_in_turns(graph, 'spral') for graph in long)} of processor time)."
    ]
