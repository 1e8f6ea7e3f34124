"""Problems of hundreds of rows: what the engines do by shares of the rows, which few have none of.

Also several workers, which here work one after the other, so that what they find is always the
same.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest import mock

import numpy as np
from scipy.sparse import csr_array

from gpumatch import assign
from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.costs import SparseCosts
from gpumatch.cpu.assignment.dense import tuning as dense_tuning
from gpumatch.cpu.assignment.sparse import product
from gpumatch.cpu.assignment.sparse import tuning as sparse_tuning
from gpumatch.cpu.numba_tools import workers
from graphs import costs
from tests.cpu.assignment.tuned import tuned
from tests.recorded.record import Fields, Group, work_of

THREADS = 3
WITH_WORKERS = (
    "auction",
    "dense.engine",
    "dgs.engine",
    "hungarian.problem",
    "sparse.engine",
    "sparse.product",
)
IN_TURN = {
    "auction.WIDE": 400,
    "hungarian.tree.WIDE": 400,
    "sparse.paths.EACH": 4,
}
"""From where on there are several: sooner than by default."""


class Workers(workers.Workers):
    """Several workers of which each begins when the one before has ended."""

    def __init__(self, threads: int, edges: int) -> None:
        super().__init__(threads, edges)
        self.threads = THREADS

    def run(self, kernel: Callable[[int], bool], tasks: int) -> bool:
        done = [kernel(worker) for worker in range(max(1, min(THREADS, tasks)))]
        return all(done)


@contextlib.contextmanager
def workers_in_turn() -> Iterator[None]:
    """Within, the algorithms for assignments have such workers, and soon."""
    patches = {f"{name}.Workers": Workers for name in WITH_WORKERS} | IN_TURN
    with contextlib.ExitStack() as patched:
        for tuning in sparse_tuning, dense_tuning:
            patched.enter_context(tuned(tuning, each=4))
        for name, value in patches.items():
            patched.enter_context(mock.patch(f"gpumatch.cpu.assignment.{name}", value))
        yield


def _coarse(matrix: Any) -> Any:
    """The costs as multiples of a power of 2, which no machine rounds."""
    if isinstance(matrix, csr_array):
        data = np.rint(matrix.data * 1024) / 1024
        return csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    return np.rint(matrix * 2**20) / 2**20


@functools.cache
def _sparse() -> Mapping[str, Any]:
    made = {}
    for seed in range(3):
        uniform = costs.make("sparse_uniform", 2000, 2400, 6.0, 100, seed=seed)
        made |= {
            f"kkt {seed}": _coarse(costs.make("kkt", 1500, seed=seed)),
            f"spread {seed}": _coarse(costs.make("spread", 900, seed=seed)),
            f"circuit {seed}": _coarse(costs.make("circuit", 1200, seed=seed)),
            f"mesh {seed}": costs.make("mesh", 10, seed=seed),
            f"power law {seed}": costs.make("power_law", 9, seed=seed),
            f"two costs {seed}": costs.make("goldberg_kennedy", 1024, 16, "two_cost", seed=seed),
            f"geometric {seed}": costs.make("goldberg_kennedy", 1024, 8, seed=seed),
            f"uniform {seed}": uniform,
            f"uniform, tall {seed}": csr_array(uniform.T),
        }
    return made


@functools.cache
def _dense() -> Mapping[str, Any]:
    made = {}
    for seed in range(2):
        near = _coarse(costs.make("points", 400, seed=seed))
        made |= {
            f"uniform {seed}": costs.make("uniform_integer", 400, 450, seed=seed),
            f"many values {seed}": costs.make("uniform_integer", 400, factor=1000, seed=seed),
            f"near {seed}": near,
            f"far {seed}": -near,
            f"far, wide {seed}": -near[:380],
            f"low rank {seed}": _coarse(costs.make("low_rank", 400, seed=seed)),
            f"products {seed}": costs.make("machol_wien", 380 + seed),
        }
    far = _coarse(-costs.make("points", 1500, seed=2))
    return {**made, "far, many": far, "uniform, many": costs.make("uniform_integer", 1500)}


def _solve(matrix: Any, **told: Any) -> Fields:
    found = assign(matrix, backend="cpu", threads=1, **told)
    return {"size": found.size, "objective": found.objective, **work_of(found.stats)}


def _limit(matrix: Any) -> float:
    """A limit that leaves out some rows."""
    values = matrix.data if isinstance(matrix, csr_array) else matrix[::10]
    return float(np.sort(values, axis=None)[values.size // 4])


def _run(problems: Callable[[], Mapping[str, Any]]) -> dict[str, Fields]:
    told = {"algorithm": "engine", "cardinality": "maximum"}
    return {name: _solve(matrix, **told) for name, matrix in problems().items()}


def _run_limited(problems: Callable[[], Mapping[str, Any]]) -> dict[str, Fields]:
    return {
        name: _solve(matrix, cost_limit=_limit(matrix), algorithm="engine")
        for name, matrix in problems().items()
    }


class _Phases:
    """A control that remembers the phases."""

    def __init__(self) -> None:
        self.phases: list[Any] = []

    def tick(self, matched: int) -> bool:
        return False

    def phase(self, **numbers: Any) -> None:
        self.phases.append(numbers)

    def part(self, name: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


def _find_scales() -> dict[str, Fields]:
    """Duals that are scales, of square problems of floats."""
    found: dict[str, Fields] = {}
    for name, matrix in _sparse().items():
        if matrix.shape[0] != matrix.shape[1] or matrix.dtype.kind != "f":
            continue
        problem = SparseCosts(matrix).problem(False, False)
        solution, control = Solution.empty(matrix.shape, is_integer=False), _Phases()
        total = product.run(AssignmentTask(problem, solution, control))
        found[name] = {"total": total, **work_of({"trace": control.phases})}
    return found


def _in_turn(group: Group) -> Group:
    def run() -> dict[str, Fields]:
        with workers_in_turn():
            return group()

    return run


def _run_others() -> dict[str, Fields]:
    """The other algorithms that share work, on parts of the dense problems."""
    small = {name: matrix[:90, :100] for name, matrix in _dense().items() if name.endswith("0")}
    return {
        f"{algorithm}, {name}": _solve(matrix, algorithm=algorithm)
        for algorithm in ("auction", "dgs", "hungarian-tree")
        for name, matrix in small.items()
    }


_BY_ENGINE: dict[str, Group] = {
    "sparse": functools.partial(_run, _sparse),
    "sparse, limited": functools.partial(_run_limited, _sparse),
    "dense": functools.partial(_run, _dense),
    "dense, limited": functools.partial(_run_limited, _dense),
    "scales": _find_scales,
}
GROUPS: dict[str, Group] = {
    **_BY_ENGINE,
    **{f"{name}, several workers": _in_turn(group) for name, group in _BY_ENGINE.items()},
    "others, several workers": _in_turn(_run_others),
}
