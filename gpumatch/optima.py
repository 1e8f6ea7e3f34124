"""What else could be: the pairs that other optimal, or nearly optimal, results have."""

from __future__ import annotations

import functools
from numbers import Real
from typing import Any

import numpy as np

from gpumatch.assignment import assign
from gpumatch.bipartite import BipartiteGraph, as_bipartite
from gpumatch.costs import Costs, as_costs
from gpumatch.dispatch.arguments import checked_threads
from gpumatch.dispatch.backends import choose_components
from gpumatch.dispatch.registry import CYCLES, BackendName, load
from gpumatch.interop.sparse import csr_of
from gpumatch.interop.tensors import is_tensor
from gpumatch.linalg.dulmage_mendelsohn import blocks_of
from gpumatch.matching import maximum_matching
from gpumatch.numeric.arrays import array_of
from gpumatch.problems.exchanges import Exchanges, exchanges_within, tolerance_of
from gpumatch.results.assignment import Assignment
from gpumatch.results.matching import Matching
from gpumatch.results.optima import Alternatives, MatchingEdges
from gpumatch.results.tensors import are_tensors, solve_tensors

__all__ = ["alternatives", "forced_edges", "possible_edges"]

_FARTHEST = 2.0**1022  # more than any assignment is worse, and sums of it are finite


def alternatives(
    C: Any, a: Assignment, *, within: float = 0, threads: int | None = None
) -> Alternatives:
    """Find the pairs that are in some assignment within so much of the optimum.

    Parameters
    ----------
    C : whatever `assign` takes as one problem
        The costs of the assignment.
    a : Assignment
        An optimal assignment for them, with its duals, of any cardinality and limit.
    within : number
        How much worse an assignment may be than the optimum. With 0, all pairs of all optimal
        assignments are found, on the device of the costs; more is for costs on the host.
    threads : int, optional
        For ``within`` above 0; by default all cores.

    Returns
    -------
    Alternatives
        Its `matrix` has an entry for each such pair: by how much the best assignment that has the
        pair is worse than the optimum. With a limit, as `assign` counts it: an unmatched vertex
        costs the limit. A pair that costs more than the limit is listed, too, if it is within
        reach; `k_best` forbids such pairs.

    Raises
    ------
    ValueError
        If the assignment is not proven optimal or is of other costs, or `within` is negative.
    TypeError
        If it is no `Assignment`, as that of a bottleneck, or `within` is no number.

    Notes
    -----
    The strong components of the tight pairs tell the optimal ones: O(number of pairs). More takes a
    shortest-path search from each row, along pairs whose slack is at most `within`: O(n(e + n log
    n)) for e of these.

    With floats, a slack that rounding may explain counts as 0 (`Alternatives.tolerance`).

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> C = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
    >>> a = gm.assign(C)
    >>> gm.alternatives(C, a).is_unique
    True
    >>> other = gm.alternatives(C, a, within=1)
    >>> other.matrix.toarray()
    array([[1, 0, 1],
           [0, 1, 0],
           [1, 0, 0]])
    >>> other.witness(0, 0).tolist()
    [0, 1, 2]
    """
    if not isinstance(within, Real) or isinstance(within, bool):
        raise TypeError(f"within must be a number; got {within!r}")
    if not within >= 0:
        raise ValueError(f"within must be at least 0; got {within}")
    workers = checked_threads(threads)
    run = functools.partial(_alternatives, within=within, threads=workers)
    return solve_tensors(run, C, a=a) if are_tensors(C) else run(C, a=a)


def _alternatives(C: Any, *, a: Any, within: float, threads: int) -> Alternatives:
    """Do as `alternatives`, without tensors."""
    if not isinstance(a, Assignment):
        raise TypeError(f"a must be an Assignment, with its duals; got {type(a).__name__}")
    costs = as_costs(C)
    if (len(a.row_to_col), len(a.col_to_row)) != costs.shape:
        raise ValueError(f"the assignment has other rows and columns than {costs.shape}")
    if not a.proven:
        raise ValueError("the assignment is not proven optimal, so its duals tell nothing")
    tolerance = tolerance_of(costs, a)
    find = _optimal if within == 0 else _within
    return find(costs, a, min(within, _FARTHEST), tolerance, threads)


def _exchanges(costs: Costs, a: Assignment, within: float, tolerance: float) -> Exchanges:
    """The exchanges up to a slack, if the costs are those of the assignment."""
    own = exchanges_within(costs, a, within + tolerance)
    kept = a.row_to_col[own.rows] == own.cols
    is_undercut = bool((own.slack < -tolerance).any())
    if is_undercut or int(kept.sum()) != a.size or bool((own.slack[kept] > tolerance).any()):
        raise ValueError("the assignment is not an optimum of these costs, as its duals show")
    return own


def _optimal(
    costs: Costs, a: Assignment, within: float, tolerance: float, threads: int
) -> Alternatives:
    """The pairs of optimal assignments, by strong components."""
    own = _exchanges(costs, a, 0, tolerance)
    vertices = costs.shape[0] + 1
    graph = BipartiteGraph.of_rows(own.indptr, own.heads, (vertices, vertices))
    xp = costs.xp
    _, components = choose_components("cuda" if costs.on_device else "cpu", graph)
    block, count = components(graph, xp.arange(vertices, dtype=np.int32), xp.ones(vertices, bool))
    row_block, hub = block[:-1], int(block[-1])
    col_block = xp.where(a.col_to_row >= 0, block[a.col_to_row], hub)
    is_inside = row_block[own.rows] == col_block[own.cols]
    return Alternatives(
        _matrix(costs, own, is_inside, xp.where(own.slack > tolerance, own.slack, 0)),
        assignment=a,
        within=within,
        tolerance=tolerance,
        blocks=(row_block, col_block),
        is_unique=count == vertices,
        witness=functools.partial(_assignment_with, costs, a),
    )


def _within(
    costs: Costs, a: Assignment, within: float, tolerance: float, threads: int
) -> Alternatives:
    """The pairs of assignments that are little worse, by shortest paths."""
    if costs.on_device:
        raise ValueError("within above 0 is for costs on the host")
    own = _exchanges(costs, a, within, tolerance)
    limit = within if own.lengths.dtype.kind == "f" else int(min(within, 2**61))
    extra = load(CYCLES)(
        own.indptr, own.heads, own.lengths, costs.shape[0], limit + tolerance, threads
    )
    is_matched = a.row_to_col[own.rows] == own.cols
    changed = np.ones(extra.size, bool)
    changed[own.places[is_matched]] = False
    extra_of = np.where(is_matched, 0, extra[own.places])
    is_near = extra_of <= limit + tolerance
    return Alternatives(
        _matrix(costs, own, is_near, extra_of),
        assignment=a,
        within=within,
        tolerance=tolerance,
        blocks=(None, None),
        is_unique=not (changed & (extra <= limit + tolerance)).any(),
        witness=functools.partial(_assignment_with, costs, a),
    )


def _matrix(costs: Costs, own: Exchanges, kept: Any, values: Any) -> Any:
    """The kept pairs as a sparse matrix."""
    xp, (at,) = costs.xp, kept.nonzero()
    rows, cols, data = own.rows[at], own.cols[at], values[at]
    if xp is not np:
        data = data.astype(np.float64)
    indptr = xp.zeros(costs.shape[0] + 1, np.int32)
    indptr[1:] = xp.bincount(rows, minlength=costs.shape[0]).cumsum() if rows.size else 0
    return csr_of(data, cols.astype(np.int32), indptr, costs.shape)


def _assignment_with(costs: Costs, a: Assignment, row: int, col: int) -> np.ndarray:
    """The mates of the best assignment that has a pair."""
    held = costs.to_host()
    rows, cols = (np.delete(np.arange(length), at) for length, at in zip(costs.shape, (row, col)))
    limit = a.cost_limit
    if np.ndim(limit) == 1:
        limit = array_of(np, limit)[rows]
    wish: dict[str, Any] = {"cardinality": a.cardinality, "cost_limit": limit, "backend": "cpu"}
    rest = assign(held.restricted(rows, cols), maximize=a.maximize, **wish)
    mates = np.full(costs.shape[0], -1, np.int32)
    mates[row] = col
    mates[rows[rest.row_ind]] = cols[rest.col_ind]
    return mates


# -- matchings -------------------------------------------------------------------------------------


def possible_edges(A: Any, m: Any = None, *, backend: BackendName = "auto") -> MatchingEdges:
    """Find the edges that are in some maximum matching.

    Parameters
    ----------
    A : whatever `maximum_matching` takes
        The graph.
    m : Matching or integer array, optional
        A maximum matching of it, or the column of each row. By default one is found.
    backend : {"auto", "cpu", "cuda"}
        As for `maximum_matching`.

    Returns
    -------
    MatchingEdges
        With the order of blocks that shows that all others are in none.

    Raises
    ------
    ValueError
        If the matching is not maximum.

    Notes
    -----
    O(nrows + ncols + nnz) after the matching: what alternating paths reach from unmatched vertices,
    and the strong components of the rest (Dulmage and Mendelsohn).

    References
    ----------
    Tassa, *Finding all maximally-matchable edges in a bipartite graph*, Theoretical Computer
    Science 423, 2012.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> A = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 1]])
    >>> gm.possible_edges(A[:2, :2]).edges().tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> gm.possible_edges(A[:, :3]).matrix.toarray().astype(int)
    array([[1, 1, 0],
           [1, 1, 0],
           [0, 0, 1]])
    """
    return _edges_of(A, m, backend, forced=False)


def forced_edges(A: Any, m: Any = None, *, backend: BackendName = "auto") -> MatchingEdges:
    """Find the edges that are in every maximum matching; see `possible_edges`.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> A = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]])
    >>> gm.forced_edges(A).edges().tolist()
    [[2, 2]]
    """
    return _edges_of(A, m, backend, forced=True)


def _edges_of(A: Any, m: Any, backend: BackendName, *, forced: bool) -> Any:
    """The edges, in tensors if the graph is one."""
    run = functools.partial(_edges, backend=backend, forced=forced)
    return solve_tensors(run, A, m=m) if is_tensor(A) else run(A, m=m)


def _edges(A: Any, *, m: Any, backend: BackendName, forced: bool) -> MatchingEdges:
    given = as_bipartite(A)
    where, components = choose_components(backend, given)
    graph = given.to_device() if where == "cuda" else given.to_host()
    matching = _maximum(graph, m, where)
    blocks = blocks_of(graph, matching.row_to_col, matching.col_to_row, components)
    xp, (rows, cols) = graph.xp, graph.edges()
    if not graph.has_rows:
        order = xp.lexsort(xp.stack([cols, rows]))
        rows, cols = rows[order], cols[order]
    is_possible = blocks.row_block[rows] == blocks.col_block[cols]
    is_unique = int(xp.count_nonzero(is_possible)) == matching.size
    if forced:
        size = xp.bincount(blocks.row_block, minlength=blocks.total)
        is_single = (size == 1) & (xp.arange(blocks.total) > 0)
        is_single[blocks.total - 1] = False
        is_possible &= is_single[blocks.row_block[rows]]
    (at,) = is_possible.nonzero()
    indptr = xp.zeros(graph.nrows + 1, np.int32)
    indptr[1:] = xp.bincount(rows[at], minlength=graph.nrows).cumsum() if at.size else 0
    indices = cols[at].astype(np.int32)
    ones, indices, indptr = (
        array_of(given.xp, p) for p in (xp.ones(at.size, bool), indices, indptr)
    )
    return MatchingEdges(
        csr_of(ones, indices, indptr, graph.shape),
        forced=forced,
        row_to_col=array_of(given.xp, matching.row_to_col),
        blocks=(
            array_of(given.xp, blocks.row_block),
            array_of(given.xp, blocks.col_block),
            blocks.total - 1,
        ),
        is_unique=is_unique,
        witness=functools.partial(_matching_with, given, matching),
    )


def _maximum(graph: BipartiteGraph, m: Any, where: BackendName) -> Matching:
    """The matching of the caller, which is checked to be maximum, or one that is found."""
    if m is None:
        return maximum_matching(graph, backend=where)
    own = maximum_matching(graph, backend=where, initial=m)
    given = getattr(m, "row_to_col", m)
    size = int((array_of(np, given) >= 0).sum())
    if own.size != size:
        raise ValueError(f"m is not a maximum matching: it has {size} of {own.size} edges")
    return own


def _matching_with(graph: BipartiteGraph, matching: Matching, row: int, col: int) -> np.ndarray:
    """The mates of a maximum matching that has an edge."""
    rows, cols = (array_of(np, part) for part in graph.edges())
    rest = (rows != row) & (cols != col)
    left = BipartiteGraph.from_edges(rows[rest], cols[rest], graph.shape)
    begun = array_of(np, matching.row_to_col).copy()
    begun[(begun == col) | (np.arange(begun.size) == row)] = -1
    mates = maximum_matching(left, initial=begun, backend="cpu").row_to_col.copy()
    mates[row] = col
    return mates
