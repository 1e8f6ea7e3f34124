"""The front door to optimal transport.

A call becomes a `Request`, and `gpumatch.problems.transport` solves it. That module states what
each cardinality is, and what proves its result.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpumatch.dispatch.arguments import checked_flag
from gpumatch.dispatch.registry import BackendName
from gpumatch.interop import torch_tensors
from gpumatch.numeric.arrays import is_sparse
from gpumatch.problems import capacities, small_transports, transport_batches
from gpumatch.problems import transport as problem
from gpumatch.problems.request import Cardinality, Request
from gpumatch.results.tensors import are_tensors, solve_tensors
from gpumatch.results.transport import Transport
from gpumatch.running.control import Callback, Control, with_interrupts_result

__all__ = ["transport"]


@with_interrupts_result
def transport(
    C: Any,
    supply: Any,
    demand: Any,
    *,
    maximize: bool = False,
    cardinality: Cardinality = "full",
    cost_limit: float | None = None,
    pair_capacity: Any = None,
    algorithm: str = "auto",
    backend: BackendName = "auto",
    initial: Any = None,
    sizes: Any = None,
    on_error: str = "raise",
    seed: int = 0,
    threads: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    callback: Callback | None = None,
) -> Transport:
    """Ship masses from rows to columns at least total cost.

    Parameters
    ----------
    C : two-dimensional array, sparse matrix, or tuple ``(indptr, indices, data, shape)``
        What a unit of mass costs, for each pair: whatever `assign` takes as one problem, but for a
        networkx graph. ``inf`` (``-inf`` to be maximised) forbids a pair, and so does a sparse
        matrix with a pair that it does not store. The matrix of `PointCosts` and `FunctionCosts`
        is made, but for large clouds of few coordinates (docs/guide/limits.md). An array of shape
        (B, n, m), or a list of costs of any shapes, is a batch of problems.
    supply : number, array of length nrows, or tuple (lower, upper) of these
        What each row has. A tuple means bounds: each row ships at least its lower bound, and at
        most its upper one. The problems of a batch have these in common, or each has its own: in an
        array of shape (B, nrows), or in a list of B arrays.
    demand : number, array of length ncols, or tuple (lower, upper) of these
        What each column takes, in the same way.
    maximize : bool
        Maximise the total instead.
    cardinality : {"full", "maximum", "any"}
        ``"full"``: the side with the smaller total ships, or gets, all its mass. ``"maximum"``
        finds the cheapest among the largest flows. ``"any"`` finds the best total, and uses a pair
        only if it pays. Lower bounds are met in any case.
    cost_limit : float, optional
        Leave out pairs that cost more (to be maximised: that gain less). A unit that the side with
        the smaller total keeps then costs as much as the limit, and ``"full"`` and ``"any"`` mean
        the same. With ``"maximum"``, pairs above the limit are forbidden. Otherwise, a fractional
        limit makes integer costs float64.
    pair_capacity : number or array, optional
        The most that a pair may carry: a number for all pairs, an array of the shape of `C`, or for
        sparse `C` one number for each entry, in the order of its data. ``inf`` is no capacity.
        Fractions make masses of integers float64.
        Problems of a batch have a capacity in common, or each has its own, as of masses.
    algorithm : str
        ``"auto"``, or a name that `algorithms` lists for transport.
    backend : {"auto", "cpu", "cuda", "reference"}
        Where to run. ``"auto"`` runs where the costs are, but takes small ones of a GPU to the
        host, which solves them sooner. Whatever is elsewhere is copied there, and the results are
        copied back. ``"reference"`` has no transport.
    initial : Transport, or tuple (row_dual, col_dual), optional
        Duals to begin from, as the result for similar costs has them. The result is optimal
        whatever they are. A batch takes none.
    sizes : (rows, cols), optional
        For an array of shape (B, n, m): how many rows and columns of it each problem has, as for
        `assign`.
    on_error : {"raise", "mark"}
        What becomes of the error of a problem in a batch, as for `assign`.
    seed, threads, time_limit, progress, callback
        As for `maximum_matching`. ``callback(progress)`` sees the units shipped so far. The threads
        of a batch on the CPU solve one problem each.

    Returns
    -------
    Transport, or BatchTransport for a batch
        In arrays like those of `C`, on its device, or in torch tensors or JAX arrays if `C` is one.
        If dense costs or masses are torch tensors that ask for a gradient, the objective has one:
        the flow for costs, and for masses of ``"full"`` without a limit the duals.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong: a mass that is negative or not finite, bounds or lengths that do
        not fit, masses that add up to more than 2**62 units, or costs as for `assign`.
    InfeasibleError
        A ValueError: no flow keeps to the bounds, or ships as much as the cardinality requires. It
        has the `rows` and `cols` that show it. They must ship or get `needed`, which is more than
        what is `available` to them.
    MemoryError
        If the matrix of computed costs, of 8 bytes a pair, does not fit into the host's memory.
    RuntimeError
        As for `maximum_matching`.
    KeyboardInterrupt
        On Ctrl-C, with the flow so far as attribute ``result``; None if it came before the search.

    Notes
    -----
    Masses of integers are units as they are. Masses of floats become whole units, unless they are
    integers. A unit is a power of 2, and the larger total has between 2**61 and 2**62 of them. Each
    mass is rounded to whole units, so it is off by less than a unit. Sides with equal totals still
    have equal totals then.

    Integer costs are solved exactly, and the objective is a Python int if masses are integers too.
    Other costs are solved up to rounding, and the gap is rigorous, as of `assign`. Memory is
    O(nnz + nrows + ncols) whatever the masses are. Dense costs are copied unless they are C-ordered
    and int64 or float64. Lower bounds copy them once more. On a device, all of this is done there.
    But problems with capacities of pairs, and those whose sums of integers need more than 64 bits,
    are solved on the host.

    Examples
    --------
    >>> import gpumatch as gm
    >>> t = gm.transport([[1, 3], [2, 1]], supply=[20, 10], demand=[15, 15])
    >>> t.objective, t.row_ind.tolist(), t.col_ind.tolist(), t.flow.tolist()
    (40, [0, 0, 1], [0, 1, 1], [15, 5, 10])
    >>> t.to_matrix().toarray()
    array([[15,  5],
           [ 0, 10]])
    """
    progress = checked_flag(progress, "progress")
    request = Request.of(
        Control(time_limit=time_limit, progress=progress, callback=callback),
        maximize=maximize, cardinality=cardinality, cost_limit=cost_limit,
        initial=initial, algorithm=algorithm, backend=backend, seed=seed, threads=threads,
        sizes=sizes, on_error=on_error,
    )  # fmt: skip
    if request.has_row_limits:
        raise TypeError("transport takes one number as its cost_limit")
    if are_tensors(C):
        run = functools.partial(_solve_in_arrays, request, pair_capacity)
        t = solve_tensors(run, C, supply=supply, demand=demand, initial=initial, sizes=sizes)
        if torch_tensors.is_own(C):
            from gpumatch.results.gradients import add_cost_of_flow

            add_cost_of_flow(t, C, supply, demand)
        return t
    return _solve(C, supply, demand, pair_capacity, request)


def _solve_in_arrays(
    request: Request, capacity: Any, C: Any, *, supply: Any, demand: Any, **arrays: Any
) -> Any:
    """The result for costs and arguments that were tensors before."""
    return _solve(C, supply, demand, capacity, request._replace(**arrays))


def _solve(C: Any, supply: Any, demand: Any, capacity: Any, request: Request) -> Transport:
    """The result of a request, for one problem or a batch."""
    problems = request.batch_of(C)
    if problems is not None:
        return transport_batches.solve(problems, supply, demand, capacity, request)
    is_plain = request.is_plain and request.initial is None and capacity is None
    is_csr = getattr(C, "format", None) == "csr" and is_sparse(C) and type(C.data) is np.ndarray
    if is_plain and (is_csr or type(C) is np.ndarray) and C.ndim == 2:
        found = small_transports.solve_one(C, supply, demand, request)
        if found is not None:
            return found
    if capacity is not None:
        return capacities.solve(C, supply, demand, capacity, request)
    return problem.solve(C, supply, demand, request)
