"""First calls: what a user waits for in a fresh installation, and in each new process after that.

Each call runs in processes of its own. For the first of them the folder of compiled code is empty,
so it compiles, as in a fresh installation. The others find what it has left there. NumPy, SciPy and
the costs are loaded before the clock starts, gpumatch and Numba after it. ``numba`` is a function
that does nothing: what every call of compiled code pays to Numba itself. Python may keep bytecode,
which an installation by pip makes.

The seconds that count are those of the processor, without what other processes take of it. The
seconds of the clock are kept as ``"wall"``.
"""

from __future__ import annotations

import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.costs import CostInstance, Matrices
from bench.harness import Contender, Limits, Result
from bench.report.tables import Time, markdown, page, section, time_of

THREADS = 2
THRESHOLD = 0.0  # every call counts
DTYPES = ("float64", "float32", "int64", "int32")
SIDE, SMALL, DEGREE = 600, 20, 4
MIDDLE = 20_000  # rows of sparse costs for which rows bid
LARGE = 100_000  # rows of a graph on which forests are grown
WARM = 3  # processes after the first
FRESH_LIMIT, WARM_LIMIT = 3.0, 0.25
"""Seconds that a first call may take: the first ever, and beyond Numba's own in a new process."""
NUMBA = "numba"
_LOADING = 60.0  # seconds that a process has to start

problem = Matrices


# -- the calls -----------------------------------------------------------------------------------


class Given:
    """What calls are given: costs in several forms, made before the clock starts."""

    def __init__(self, dense: np.ndarray) -> None:
        self.dense = dense
        self.small = dense[:SMALL, :SMALL].copy()
        self.batch = np.stack([self.small] * 3)
        self.sparse, self.middle, self.large = (
            _sparse(rows, dense.dtype) for rows in (SIDE, MIDDLE, LARGE)
        )
        self.ones = np.ones(SIDE)


def _sparse(rows: int, dtype: np.dtype) -> Any:
    """Random entries, and a permutation, so that there is a full assignment."""
    from scipy.sparse import csr_array

    random = np.random.default_rng(0)
    cols = random.integers(0, rows, rows * DEGREE)
    cols[::DEGREE] = random.permutation(rows)
    values = random.integers(1, 1000, cols.size).astype(dtype)
    return csr_array((values, (np.arange(rows).repeat(DEGREE), cols)), shape=(rows, rows))


def _mc64(job: int, gm: Any, on: Given) -> Any:
    return gm.linalg.mc64(on.sparse, job=job)


Call = Callable[[Any, Given], Any]
CALLS: dict[str, Call] = {
    "maximum_matching": lambda gm, on: gm.maximum_matching(on.sparse),
    "maximum_matching, large": lambda gm, on: gm.maximum_matching(on.large),
    "Matching.vertex_cover": lambda gm, on: gm.maximum_matching(on.sparse).vertex_cover(),
    "assign": lambda gm, on: gm.assign(on.small),
    "assign, 600 rows": lambda gm, on: gm.assign(on.dense),
    "assign, cost_limit": lambda gm, on: gm.assign(on.small, cost_limit=100),
    "assign, maximum": lambda gm, on: gm.assign(on.small, cardinality="maximum"),
    "assign, any": lambda gm, on: gm.assign(on.dense, cardinality="any"),
    "assign, sparse": lambda gm, on: gm.assign(on.sparse),
    "assign, sparse, maximum": lambda gm, on: gm.assign(on.sparse, cardinality="maximum"),
    "assign, sparse, 20,000 rows": lambda gm, on: gm.assign(on.middle),
    "assign, sparse, 20,000 rows, maximum": lambda gm, on: gm.assign(
        on.middle, cardinality="maximum"
    ),
    "assign, batch": lambda gm, on: gm.assign(on.batch),
    "assign, bottleneck": lambda gm, on: gm.assign(on.sparse, objective="bottleneck"),
    "k_best": lambda gm, on: gm.k_best(on.small, 5),
    "alternatives": lambda gm, on: gm.alternatives(on.small, gm.assign(on.small)),
    "possible_edges": lambda gm, on: gm.possible_edges(on.sparse, gm.maximum_matching(on.sparse)),
    "forced_edges": lambda gm, on: gm.forced_edges(on.sparse, gm.maximum_matching(on.sparse)),
    "transport": lambda gm, on: gm.transport(on.small, 3, 3, backend="cpu"),
    "verify": lambda gm, on: gm.verify(on.sparse, gm.maximum_matching(on.sparse)),
    "optimize.linear_sum_assignment": lambda gm, on: gm.optimize.linear_sum_assignment(on.small),
    "optimize.linear_sum_assignment, 600 rows": lambda gm, on: gm.optimize.linear_sum_assignment(
        on.dense
    ),
    "optimize.linear_sum_assignment_batch": lambda gm, on: gm.optimize.linear_sum_assignment_batch(
        on.batch
    ),
    "csgraph.maximum_bipartite_matching": lambda gm, on: gm.csgraph.maximum_bipartite_matching(
        on.sparse
    ),
    "csgraph.structural_rank": lambda gm, on: gm.csgraph.structural_rank(on.sparse),
    "csgraph.min_weight_full_bipartite_matching": lambda gm, on: (
        gm.csgraph.min_weight_full_bipartite_matching(on.sparse)
    ),
    "linalg.btf": lambda gm, on: gm.linalg.btf(on.sparse),
    "linalg.dmperm": lambda gm, on: gm.linalg.dmperm(on.sparse),
    "linalg.factorized": lambda gm, on: gm.linalg.factorized(on.sparse)(on.ones),
    "linalg.maximum_product_matching": lambda gm, on: gm.linalg.maximum_product_matching(on.sparse),
    "linalg.maxtrans": lambda gm, on: gm.linalg.maxtrans(on.sparse),
    **{f"linalg.mc64, job {job}": functools.partial(_mc64, job) for job in (1, 2, 3, 4, 5)},
    "linalg.solve_btf": lambda gm, on: gm.linalg.solve_btf(on.sparse, on.ones),
    "linalg.splu": lambda gm, on: gm.linalg.splu(on.sparse).solve(on.ones),
    "linalg.sprank": lambda gm, on: gm.linalg.sprank(on.sparse),
    "linalg.strongcomp": lambda gm, on: gm.linalg.strongcomp(on.sparse),
}


# -- contenders and problems ---------------------------------------------------------------------


@dataclass(frozen=True)
class FirstCall:
    """A call in processes of its own: one that compiles, and some that do not."""

    name: str

    def measure(self, problem: Matrices, limits: Limits) -> Result:
        with tempfile.TemporaryDirectory() as folder:
            fresh, *warm = (self._run(problem, folder, limits) for _ in range(1 + WARM))
        return {
            "seconds": [fresh["seconds"]],
            "size": 0,
            "levels": [],
            "wall": fresh["wall"],
            "compilation": fresh["compilation"],
            "warm": [one["seconds"] for one in warm],
            "warm_wall": [one["wall"] for one in warm],
        }

    def _run(self, problem: Matrices, folder: str, limits: Limits) -> dict[str, float]:
        command = (sys.executable, "-m", "bench.suites.first_calls", self.name, str(problem.file))
        printed = subprocess.run(
            command,
            env={**os.environ, "NUMBA_CACHE_DIR": folder, "PYTHONDONTWRITEBYTECODE": ""},
            timeout=limits.cap + _LOADING,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        return json.loads(printed)


def contenders(device: str, threads: int) -> list[Contender]:
    """Each call."""
    return [FirstCall(name) for name in (NUMBA, *CALLS)]


def instances(quick: bool, data: str | None) -> list[CostInstance]:
    """A matrix of each dtype."""
    dtypes = DTYPES[:1] if quick else DTYPES
    source = ("uniform_integer", SIDE, None, 1.0)
    return [CostInstance(dtype, "first calls", source, dtype=dtype) for dtype in dtypes]


def warming(quick: bool) -> list[CostInstance]:
    """None: nothing is to be warm."""
    return []


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Seconds by call and dtype; what a new process pays is for all dtypes together."""
    graphs = {graph["dtype"]: graph for graph in data["graphs"].values()}
    rows: list[list[Any]] = [
        [name, *(time_of(graph, name) for graph in graphs.values()), *_of_new_processes(data, name)]
        for name in (NUMBA, *CALLS)
    ]
    header = ["first call", *graphs, "new process", "beyond Numba's own"]
    own = [row for row in rows if row[0] != NUMBA]
    slowest = max(
        (time.seconds, row[0]) for row in own for time in row[1:-2] if isinstance(time, Time)
    )
    longest = max((row[-2].seconds, row[0]) for row in own if row[-2] is not None)
    return page(
        data,
        section("Seconds of the processor", markdown(header, rows)),
        [f"A first call compiles for {slowest[0]:.3g} s at most ({slowest[1]})."],
        [f"In a new process it takes {longest[0]:.3g} s at most ({longest[1]})."],
    )


def _of_new_processes(data: dict[str, Any], name: str) -> list[Time | None]:
    """The median over dtypes and processes, and what is left of it without Numba's own."""
    taken, numbas = (
        [
            seconds
            for graph in data["graphs"].values()
            for seconds in graph["results"].get(call, {}).get("warm", [])
        ]
        for call in (name, NUMBA)
    )
    if not taken:
        return [None, None]
    median = statistics.median(taken)
    if name == NUMBA or not numbas:
        return [Time(median), None]
    return [Time(median), Time(max(median - statistics.median(numbas), 0.0))]


# -- one call --------------------------------------------------------------------------------------


def main(name: str, file: str) -> None:
    """Print how long a call takes in this process."""
    import scipy.optimize
    import scipy.sparse.csgraph
    import scipy.sparse.linalg  # noqa: F401  before the clock starts, as its users have it

    given = Given(np.load(Path(file)))
    processor, clock = time.process_time(), time.perf_counter()
    if name == NUMBA:
        from gpumatch.cpu.numba_tools.compiled import _nothing

        _nothing()
    else:
        import gpumatch

        CALLS[name](gpumatch, given)
    taken = {
        "seconds": time.process_time() - processor,
        "wall": time.perf_counter() - clock,
    }
    from gpumatch.running import compile_time

    print(json.dumps({**taken, "compilation": compile_time.spent()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
