"""The searches that solve a divided problem of assignment, by algorithm and backend.

`ALGORITHMS` has what makes it of the costs of this rank's rows, how both sides are divided, the
goal, and the communicator. If there are more rows than columns, they change places before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from gpumatch.contracts import AssignmentTask
from gpumatch.costs import Costs, DenseCosts, SparseCosts
from gpumatch.distributed.blocks import Split, columns_of
from gpumatch.distributed.communicator import Communicator
from gpumatch.distributed.core import FEW_ROWS, Core, Feasible, Search, Whole
from gpumatch.distributed.date2016 import Classical, Tree
from gpumatch.distributed.forests import Forests
from gpumatch.distributed.levels import HostLevels
from gpumatch.distributed.matching import forest_kernels
from gpumatch.distributed.problem import Problem
from gpumatch.distributed.trees import Trees
from gpumatch.numeric.arrays import array_of
from gpumatch.problems.request import Goal
from gpumatch.running.interrupts import InterruptsHeld

__all__ = ["ALGORITHMS"]

# -- the engine ------------------------------------------------------------------------------------


def _engine(costs: Costs, rows: Split, cols: Split, goal: Goal, world: Communicator) -> Search:
    costs, rows, _ = _with_fewer_rows(costs, rows, cols, goal, world)
    return _trees(costs, rows, goal.limit, world)


def _trees(costs: Costs, rows: Split, limit: float | None, world: Communicator) -> Trees:
    """Trees that have everything on the host."""
    with InterruptsHeld():
        from gpumatch.cpu.distributed import trees as kernels
        from gpumatch.cpu.distributed.rows import rows_of
    problem = Problem(costs, rows, limit, world, kernels, rows_of)
    return Trees(problem, partial(HostLevels, kernels=kernels))


def _engine_on_device(
    costs: Costs, rows: Split, cols: Split, goal: Goal, world: Communicator
) -> Search:
    costs, rows, cols = _with_fewer_rows(costs, rows, cols, goal, world)
    with InterruptsHeld():
        from gpumatch.cuda.assignment.engine import run
    return _core(costs.to_device(), (rows, cols), goal.limit, run, forest_kernels("cuda"), world)


def _core(
    costs: Costs,
    sides: tuple[Split, Split],
    limit: float | None,
    solve: Callable[[AssignmentTask], bool],
    forest_kernels: Any,
    world: Communicator,
) -> Search:
    """A sparse core; `solve` is the engine of one rank, where the costs are."""
    rows, cols = sides
    problem, trees = (_sparse if costs.is_sparse else _dense)(costs, rows, limit, world)
    if rows.total <= FEW_ROWS:
        return trees()

    def whole() -> Search:
        return Whole(problem, costs, solve, trees)

    def feasible() -> Search:
        if limit is not None or world.total(int(costs.is_complete), "min"):
            return whole()
        forests = Forests(costs.pattern(), rows, cols, world, forest_kernels)
        return Feasible(forests, whole, costs.is_integer)

    return Core(problem, solve, feasible)


def _dense(
    costs: Costs, rows: Split, limit: float | None, world: Communicator
) -> tuple[Problem, Callable[[], Search]]:
    """The problem as a core asks it, and trees where the costs are."""
    with InterruptsHeld():
        from gpumatch.cpu.distributed import trees as kernels
        from gpumatch.cuda.assignment.dense.rows import rows_of
    problem = Problem(costs, rows, limit, world, kernels, rows_of)
    if not costs.on_device:
        return problem, lambda: Trees(problem, partial(HostLevels, kernels=kernels))
    with InterruptsHeld():
        from gpumatch.cuda.distributed.trees import DeviceLevels
    return problem, lambda: Trees(problem, DeviceLevels)


def _sparse(
    costs: Costs, rows: Split, limit: float | None, world: Communicator
) -> tuple[Problem, Callable[[], Search]]:
    """The problem of sparse costs as a core asks it, and trees on the host."""
    with InterruptsHeld():
        from gpumatch.cpu.distributed import trees as kernels
        from gpumatch.cuda.distributed.sparse_rows import CsrRows
    problem = Problem(costs, rows, limit, world, kernels, lambda _, far, __: CsrRows(costs, far))
    return problem, lambda: _trees(costs.to_host(), rows, limit, world)


# -- Date and Nagi's -------------------------------------------------------------------------------


def _classical(
    costs: Costs, rows: Split, cols: Split, goal: Goal, world: Communicator, backend: str = "cpu"
) -> Search:
    if goal.transposed:
        values = np.ascontiguousarray(columns_of(costs.to_host(), rows, cols, world).T)
        rows, cols = cols, rows
    else:
        values = costs.dense()
    return Classical(
        *(_placed(values, backend), rows, cols, costs.is_integer, world), _papers(backend)
    )


def _tree(
    costs: Costs, rows: Split, cols: Split, goal: Goal, world: Communicator, backend: str = "cpu"
) -> Search:
    if goal.transposed:
        values = np.ascontiguousarray(array_of(np, costs.dense()).T)
        rows, cols = cols, rows
    else:
        with world.step("division of columns"):
            values = columns_of(costs.to_host(), rows, cols, world)
    return Tree(*(_placed(values, backend), rows, cols, costs.is_integer, world), _papers(backend))


def _placed(values: Any, backend: str) -> Any:
    """The costs where the backend has them."""
    if backend == "cpu":
        return array_of(np, values)
    import cupy

    return cupy.ascontiguousarray(cupy.asarray(values))


def _papers(backend: str) -> Any:
    """What a rank computes by itself for Date and Nagi's algorithms."""
    with InterruptsHeld():
        from gpumatch.cpu.distributed import date2016 as kernels

        if backend == "cpu":
            return kernels
        from gpumatch.cuda.assignment.dense.rows import rows_of
    return SimpleNamespace(**{**vars(kernels), "CompressedRows": rows_of, "DenseRows": rows_of})


ALGORITHMS: dict[str, dict[str, Callable[..., Search]]] = {
    "engine": {"cpu": _engine, "cuda": _engine_on_device},
    "hungarian-classical": {"cpu": _classical, "cuda": partial(_classical, backend="cuda")},
    "hungarian-tree": {"cpu": _tree, "cuda": partial(_tree, backend="cuda")},
}


# -- rows and columns that change places -----------------------------------------------------------


def _with_fewer_rows(
    costs: Costs, rows: Split, cols: Split, goal: Goal, world: Communicator
) -> tuple[Costs, Split, Split]:
    """The costs of this rank's rows of the problem, and how its two sides are divided."""
    if not goal.transposed:
        return costs, rows, cols
    turn = _turned_sparse if costs.is_sparse else _turned_dense
    return turn(costs.to_host(), rows, cols, world), cols, rows


def _turned_dense(costs: Costs, rows: Split, cols: Split, world: Communicator) -> Costs:
    """The costs of this rank's columns, as rows."""
    return DenseCosts(np.ascontiguousarray(columns_of(costs, rows, cols, world).T))


def _turned_sparse(costs: Costs, rows: Split, cols: Split, world: Communicator) -> Costs:
    """The costs in CSR of this rank's columns, as rows."""
    indptr, indices, weights = costs.entries()
    own = np.repeat(np.arange(rows.own, dtype=np.int64), np.diff(indptr)) + rows.first
    owners = cols.owners(indices)
    order = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[order], np.arange(1, world.size))
    places = np.column_stack([indices, own]).astype(np.int32)[order]
    place = np.concatenate(world.exchange(np.split(places, bounds)))
    weight = np.concatenate(world.exchange(np.split(weights[order], bounds)))
    lines = place[:, 0] - cols.first
    by_line = np.lexsort((place[:, 1], lines))
    starts = np.append(0, np.bincount(lines, minlength=cols.own).cumsum())
    return SparseCosts((starts, place[by_line, 1], weight[by_line], (cols.own, rows.total)))
