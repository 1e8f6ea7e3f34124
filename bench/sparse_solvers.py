"""What is measured on sparse costs: the library's default, OR-tools, SPRAL's MC64 and SciPy.

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
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

import gpumatch as gm
from bench.harness import Limits, Overrun, Result, Sample, repeat
from bench.peers import in_process, is_installed, self_timed
from bench.sparse_costs import SPRAL, SparseProblem

ORTOOLS, SCIPY = "or-tools", "scipy"
_ROOM = 600.0  # of the exponents that a double can hold


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
    """A rival in turns with the engine, whose seconds are kept as ``"ours"``.

    A solver cannot be stopped. One whose processor time exceeds the cap is given up when it has
    ended.
    """

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
            if end - turn > limits.cap:
                raise Overrun
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
        return in_process(_scipy, problem.matrix, limits, self_timed)


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


def rivals_in_turns(engine: Engine) -> list[InTurns]:
    """OR-tools and SPRAL, where they are installed."""
    known = []
    if is_installed("ortools"):
        known.append(InTurns(ORTOOLS, ortools, engine))
    if "SPRAL" in os.environ:
        known.append(InTurns(SPRAL, spral, engine))
    return known
