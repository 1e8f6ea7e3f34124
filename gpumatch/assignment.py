"""The front door to linear assignment.

A call becomes a `Request`. A module of `gpumatch.problems` solves it: `one_problem`, `row_limits`,
`bottleneck` or `batches`. Small problems, and batches of one size on a device, go a quicker way
before that. `gpumatch.problems.cardinality` states the problem and what proves its result.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable
from typing import Any, Literal, Unpack, overload

import numpy as np

from gpumatch.dispatch.arguments import (
    checked_flag,
    checked_seed,
    checked_threads,
    refuse_unknown,
)
from gpumatch.dispatch.named_arguments import (
    AnyAssignArguments,
    AssignArguments,
    AuctionArguments,
    EngineArguments,
    SwitchingArguments,
    TreeArguments,
)
from gpumatch.dispatch.registry import BackendName
from gpumatch.numeric.arrays import device_array, is_sparse
from gpumatch.problems import batches, bottleneck, lexicographic, one_problem, row_limits
from gpumatch.problems.device_batches import assign_alone, assign_even
from gpumatch.problems.request import ON_ERROR, Cardinality, Request, are_plain
from gpumatch.problems.small_problems import SMALL, assign_small, assign_small_sparse
from gpumatch.results.assignment import Assignment
from gpumatch.results.bottleneck import BottleneckAssignment
from gpumatch.results.lexicographic import LexicographicAssignment
from gpumatch.results.tensors import are_tensors, solve_tensors
from gpumatch.running.control import Callback, Control, with_interrupts_result

__all__ = ["assign"]


@overload
def assign(
    C: Any,
    *,
    objective: Literal["bottleneck"],
    cardinality: Literal["full", "maximum"] = ...,
    backend: BackendName = ...,
    **arguments: Any,
) -> BottleneckAssignment: ...
@overload
def assign(
    C: Any,
    *,
    objective: Literal["lexicographic"],
    cardinality: Literal["full"] = ...,
    backend: BackendName = ...,
    **arguments: Any,
) -> LexicographicAssignment: ...
@overload
def assign(
    C: Any, *, algorithm: Literal["auto"] = ..., **arguments: Unpack[AnyAssignArguments]
) -> Assignment: ...
@overload
def assign(
    C: Any,
    *,
    algorithm: Literal["shortest-augmenting-path", "hungarian-classical"],
    **arguments: Unpack[AssignArguments],
) -> Assignment: ...
@overload
def assign(
    C: Any, *, algorithm: Literal["engine"], **arguments: Unpack[EngineArguments]
) -> Assignment: ...
@overload
def assign(
    C: Any, *, algorithm: Literal["hungarian-tree"], **arguments: Unpack[TreeArguments]
) -> Assignment: ...
@overload
def assign(
    C: Any, *, algorithm: Literal["auction"], **arguments: Unpack[AuctionArguments]
) -> Assignment: ...
@overload
def assign(
    C: Any, *, algorithm: Literal["dgs"], **arguments: Unpack[SwitchingArguments]
) -> Assignment: ...
@with_interrupts_result
def assign(
    C: Any,
    *,
    objective: Literal["sum", "bottleneck", "lexicographic"] = "sum",
    maximize: bool = False,
    cardinality: Cardinality = "full",
    cost_limit: Any = None,
    algorithm: str = "auto",
    backend: BackendName = "auto",
    initial: Any = None,
    weight: Hashable | None = "weight",
    row_nodes: Iterable[Hashable] | None = None,
    sizes: Any = None,
    on_error: str = "raise",
    seed: int = 0,
    threads: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    callback: Callback | None = None,
    **options: Any,
) -> Assignment | BottleneckAssignment | LexicographicAssignment:
    """Assign rows to columns, each to one at most, at least total cost.

    Parameters
    ----------
    C : two-dimensional array, sparse matrix, or tuple ``(indptr, indices, data, shape)``
        The costs: whatever `gpumatch.costs.DenseCosts` or `SparseCosts` accepts; boolean, integer
        or floating, of any shape. ``inf`` (``-inf`` to be maximised) forbids a pair. A sparse
        matrix forbids the pairs that it does not store; a stored zero is a cost of 0. `PointCosts`
        and `FunctionCosts` are taken, too, and need no matrix. An array of
        shape (B, n, m), or a list of matrices of any shapes, is a batch of problems.
    objective : {"sum", "bottleneck", "lexicographic"}
        Minimise the total cost, the largest cost of a pair, or the largest, then the next one, and
        so on. The last is found on the host, for the cardinality ``"full"``.
    maximize : bool
        Maximise the total instead, or the least cost of a pair (and then the next one).
    cardinality : {"full", "maximum", "any"}
        ``"full"`` matches every vertex of the smaller side. ``"maximum"`` finds the cheapest among
        the largest assignments. ``"any"`` finds the best total, and takes a pair only if it pays.
        A bottleneck does not take ``"any"``.
    cost_limit : float, or array of length nrows, optional
        Leave out a pair that costs more (to be maximised: that gains less). An unmatched vertex of
        the smaller side then costs as much as the limit, and ``"full"`` and ``"any"`` mean the
        same. The result leaves no row and column unmatched whose pair costs the limit or less. With
        ``"maximum"``, pairs above the limit are forbidden. Otherwise, a fractional limit makes
        integer costs float64. inf (-inf to be maximised) is no limit. An array has a limit for
        each row: an unmatched row costs as much as its own. A bottleneck takes no limit. A batch
        takes one number, or B of them, or B arrays: a list, or an array of shape (B, nrows). Those
        of a batch on a device are solved one by one.
    algorithm : str
        ``"auto"`` or a name that `algorithms` lists for assignment. ``"auto"`` is ``"engine"`` on
        the CPU and on a GPU, and ``"hungarian-tree"`` on the reference. With options that these do
        not take, it is the first exact algorithm that takes them. For a bottleneck, ``"auto"`` is
        ``"thresholds"``: matchings of the pairs up to a threshold. The other is ``"paths"``, for
        full assignments of sparse costs on the CPU.
    backend : {"auto", "cpu", "cuda", "reference"}
        Where to run. ``"auto"``: data on a device stays there; a matrix on the host, or sparse
        costs for the engine, go to the GPU if there is one with room for them and they are large
        enough to repay the copy.
    initial : Assignment, Matching, or integer array of length nrows, optional
        An assignment for similar costs to begin from: its duals and pairs, as far as they still
        fit together. Or only pairs: the column of each row, -1 for none. The result is optimal
        whatever they are. Pairs that are no matching, and duals that are not finite, are an error.
    weight : edge attribute or function, optional
        The cost of an edge of a networkx graph. It is 1 where the attribute is missing, and
        everywhere with None. A function is called as ``weight(row, column, attributes)``.
    row_nodes : iterable of nodes, optional
        The nodes of a networkx graph that are rows, as for `maximum_matching`.
    sizes : (rows, cols), optional
        For an array of shape (B, n, m): how many rows and columns of it each problem has, from the
        first on. Each is an integer, or an array of B of them.
    on_error : {"raise", "mark"}
        A problem of a batch may have no full assignment, or costs that are not valid. Raise its
        error, which names its number, or keep the error in ``errors``.
    seed, threads, time_limit, progress, callback
        As for `maximum_matching`. ``callback(progress)`` sees the rows assigned so far.
    **options
        The algorithm's own.

    Returns
    -------
    Assignment, BottleneckAssignment for a bottleneck, LexicographicAssignment for a lexicographic \
            one, or BatchAssignment for a batch
        In arrays like the caller's, or in torch tensors or JAX arrays where the caller's are. The
        objective depends only on C, up to rounding. It is a tensor with a gradient if C is a torch
        tensor that requires one.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong, the costs hold NaN or an infinity of the wrong sign, integers are
        so large that ``(n + 1) * max|cost| >= 2**62`` (for a bottleneck, ``max|cost| >= 2**62``),
        or the total or a dual of floats is beyond the range of float64.
    InfeasibleError
        A ValueError: no full assignment exists. It has the rows and columns that show it.
    RuntimeError, MemoryError
        As for `maximum_matching`.
    KeyboardInterrupt
        On Ctrl-C, with the assignment so far as attribute ``result``; None if it came before the
        search.

    Notes
    -----
    Integer costs are solved exactly, and the objective is a Python int. Other costs are solved up
    to rounding: n times some units in the last place of the largest cost. A call takes O(n²m) for
    n <= m rows and columns. A bottleneck is one of the costs, so it is exact. It takes O(log(nm))
    matchings.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> C = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
    >>> a = gm.assign(C)
    >>> a.objective, a.col_ind.tolist()
    (5, [1, 0, 2])
    >>> print(gm.verify(C, a))
    optimal: 3 pairs of total 5, and dual prices of total 5, checked on 9 pairs; the gap is 0
    """
    quick = None
    if (
        are_plain(objective, algorithm, backend, options)
        and time_limit is None and not progress and callback is None
        and sizes is None and row_nodes is None and weight == "weight"
    ):  # fmt: skip
        _ = seed == 0 or checked_seed(seed), threads is None or checked_threads(threads)
        quick = _at_once(C, backend, maximize, cardinality, cost_limit, on_error, initial)
        if isinstance(quick, Assignment):  # making a request takes a third of this time
            return quick
    refuse_unknown(assign, "assignment", options)
    progress = checked_flag(progress, "progress")
    request = Request.of(
        Control(time_limit=time_limit, progress=progress, callback=callback),
        objective=objective, maximize=maximize, cardinality=cardinality, cost_limit=cost_limit,
        initial=initial, algorithm=algorithm, backend=backend, options=options,
        seed=seed, threads=threads,
        weight=weight, row_nodes=row_nodes, sizes=sizes, on_error=on_error,
        is_hard=quick is False,
    )  # fmt: skip
    if are_tensors(C):
        run = functools.partial(_solve_in_arrays, request)
        return solve_tensors(run, C, cost_limit=cost_limit, initial=initial, sizes=sizes)
    return _solve(C, request)


def _at_once(
    C: Any,
    backend: str,
    maximize: bool,
    cardinality: str,
    cost_limit: Any,
    on_error: str,
    initial: Any,
) -> Assignment | bool | None:
    """The assignment by one compiled call or by one launch; None if another way must answer.

    It is False if a team of threads on the device has given the problem up.
    """
    if type(C) is np.ndarray and C.ndim == 2 and C.size <= SMALL and on_error in ON_ERROR:
        return assign_small(C, maximize, cardinality, cost_limit, initial)
    if initial is not None:
        return None
    if type(C) is device_array() and C.ndim == 3 and backend == "auto":
        return assign_even(C, maximize, cardinality, cost_limit, on_error)
    if type(C) is device_array() and C.ndim == 2 and backend == "auto" and on_error in ON_ERROR:
        return assign_alone(C, maximize, cardinality, cost_limit)
    is_compressed = getattr(C, "format", None) in ("csr", "csc") and is_sparse(C)
    if is_compressed and isinstance(C.data, np.ndarray) and on_error in ON_ERROR:
        return assign_small_sparse(C, maximize, cardinality, cost_limit)
    return None


def _solve_in_arrays(
    request: Request, C: Any, **arrays: Any
) -> Assignment | BottleneckAssignment | LexicographicAssignment:
    """The result for costs and arguments that were tensors before."""
    r = request._replace(**arrays)
    if r.is_plain:
        quick = _at_once(
            C, r.backend, r.maximize, r.cardinality, r.cost_limit, r.on_error, r.initial
        )
        if isinstance(quick, Assignment):
            return quick
        r = r._replace(is_hard=quick is False)
    return _solve(C, r)


def _solve(C: Any, request: Request) -> Assignment | BottleneckAssignment | LexicographicAssignment:
    """The result of a request, by the module for problems of its kind."""
    problems = request.batch_of(C)
    if problems is not None:
        return batches.solve(problems, request)
    costs = request.costs_of(C)
    if request.objective == "bottleneck":
        return bottleneck.solve(costs, request)
    if request.objective == "lexicographic":
        return lexicographic.solve(costs, request)
    if request.has_row_limits:
        return row_limits.solve(costs, request)
    return one_problem.solve(costs, request)
