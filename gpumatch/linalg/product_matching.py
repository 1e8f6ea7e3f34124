"""Permutations and scalings that make the diagonal of a sparse matrix large.

A maximum product matching has the greatest product of magnitudes |a_ij| among all matchings of the
whole smaller side. With the weights

    w_ij = -log |a_ij|

as costs it is a cheapest assignment. Its dual prices, u_i + v_j <= w_ij with equality on matched
pairs, scale the matrix: for d_i = exp(u_i) and e_j = exp(v_j),

    |d_i a_ij e_j| <= 1,    = 1 for matched pairs.

Only logarithms are added, so values from the least to the greatest float are treated alike.

If the matrix is structurally singular, a matching with the greatest product among the largest ones
is taken, and the rows and columns that it matches are scaled as a matrix of their own. Each other
row is then scaled by the greatest magnitude that its entries have in scaled columns, and each other
column by that in all rows, with 1 for a row or column without such entries. So all scaled entries
are at most 1.

References
----------
Duff, Koster, *On algorithms for permuting large entries to the diagonal of a sparse matrix*, SIAM
J. Matrix Anal. Appl. 22(4), 2001; for structurally singular matrices and symmetric scaling: Duff,
Pralet, *Strategies for scaling and pivoting for sparse symmetric indefinite problems*, SIAM J.
Matrix Anal. Appl. 27(2), 2005.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpumatch.assignment import assign
from gpumatch.contracts import AssignmentTask
from gpumatch.costs import SparseCosts
from gpumatch.dispatch.arguments import checked_seed, checked_threads
from gpumatch.dispatch.by_device import csr_for
from gpumatch.dispatch.registry import BackendName
from gpumatch.interop.tensors import is_tensor
from gpumatch.linalg.entries import (
    Entries,
    Weights,
    exactly_on,
    is_small,
    own_entries,
    placed,
    shared_entries,
    small_entries,
    weights_of,
)
from gpumatch.linalg.ordering import diagonal_permutations
from gpumatch.numeric.arrays import array_module, array_of
from gpumatch.problems.cardinality import InfeasibleError, empty_solution
from gpumatch.problems.request import Goal
from gpumatch.results.assignment import Assignment
from gpumatch.results.pairs import Pairs
from gpumatch.results.tensors import with_tensors
from gpumatch.running.control import Control, with_interrupts_result
from gpumatch.running.interrupts import InterruptsHeld

if TYPE_CHECKING:
    from gpumatch.cpu.assignment.sparse.small_product import SmallProduct

__all__ = ["ProductMatching", "maximum_product_matching"]


class ProductMatching(Pairs):
    """A maximum product matching, with the scaling that its dual prices give.

    Attributes
    ----------
    row_to_col, col_to_row : int32 arrays of length nrows, ncols
        The column of each row and the row of each column, -1 for none.
    row_ind, col_ind : int64 arrays
        The pairs, by row.
    size : int
        Number of pairs: the structural rank.
    row_perm, col_perm : int arrays of length nrows, ncols
        Permutations: matched entries lie on the diagonal of ``A[row_perm][:, col_perm]``. One of
        the two leaves everything in its place: that of the columns, unless there are more columns
        than rows.
    row_scale, col_scale : float64 arrays of length nrows, ncols, or None
        Factors: with ``Dr`` and ``Dc`` the diagonal matrices of these, entries of ``Dr @ A @ Dc``
        have a magnitude of 1 if they are matched, and at most 1 otherwise. A factor beyond the
        range of float64 is inf or 0. None without ``scaling``.
    row_log_scale, col_log_scale : float64 arrays, or None
        Their logarithms, always in range.
    log_product : float
        Sum of the logarithms of the matched entries' magnitudes.
    stats : dict
        What `gpumatch.assign` tells of its run.
    """

    _TENSORS = (
        *("row_to_col", "col_to_row", "row_ind", "col_ind", "unmatched_rows", "unmatched_cols"),
        *("row_perm", "col_perm", "row_scale", "col_scale", "row_log_scale", "col_log_scale"),
    )

    def __init__(
        self,
        row_to_col: Any,
        col_to_row: Any,
        log_scales: tuple[Any, ...],
        log_product: float,
        stats: dict[str, Any],
        size: int | None = None,
    ) -> None:
        super().__init__(row_to_col, col_to_row, size=size)
        self.row_log_scale, self.col_log_scale = log_scales
        self.log_product = log_product
        self.stats = stats

    def __repr__(self) -> str:
        return f"ProductMatching({self.size} pairs, log_product {self.log_product:.6g})"

    @functools.cached_property
    def row_perm(self) -> Any:
        return self._permutations[0]

    @functools.cached_property
    def col_perm(self) -> Any:
        return self._permutations[1]

    @functools.cached_property
    def _permutations(self) -> tuple[Any, Any]:
        return diagonal_permutations(self)

    @functools.cached_property
    def row_scale(self) -> Any:
        return _exp(self.row_log_scale)

    @functools.cached_property
    def col_scale(self) -> Any:
        return _exp(self.col_log_scale)

    def symmetric_log_scale(self) -> Any:
        """The logarithms of one factor for each row and its column: the means of the two.

        For a symmetric matrix, entries of ``D @ A @ D`` have a magnitude of 1 if they are matched,
        and at most 1 otherwise.

        Raises
        ------
        ValueError
            If the matrix is not square, or there is no scaling.
        """
        if self.row_log_scale is None or self.col_log_scale is None:
            raise ValueError("there is no scaling: pass scaling=True")
        if self.row_log_scale.size != self.col_log_scale.size:
            raise ValueError("only a square matrix has a symmetric scaling")
        return (self.row_log_scale + self.col_log_scale) / 2

    def symmetric_pivots(self) -> Any:
        """Pairs of indices for pivots of size 2 of a symmetric matrix.

        Where row i is matched to column j, row j is often matched to column i, and the two make a
        pivot with large entries off its diagonal. A longer cycle of the permutation is cut into
        such pairs from its least index on. An odd one leaves its last index alone.

        Returns
        -------
        int array of shape (n,)
            The partner of each index: itself if it is alone or unmatched.

        Raises
        ------
        ValueError
            If the matrix is not square.
        """
        if self.row_to_col.size != self.col_to_row.size:
            raise ValueError("only a square matrix has symmetric pivots")
        partner = _cut_into_pairs(array_of(np, self.row_to_col))
        return array_of(array_module(self.row_to_col), partner)


def maximum_product_matching(
    A: Any,
    *,
    scaling: bool = True,
    backend: BackendName = "auto",
    seed: int = 0,
    threads: int | None = None,
) -> ProductMatching:
    """Match rows to columns so that the product of the matched entries' magnitudes is greatest.

    Parameters
    ----------
    A : sparse matrix, tuple ``(indptr, indices, data, shape)``, or dense matrix
        Real or complex, of any shape. Zeros are no entries here, stored ones neither. Repeated
        entries are summed.
    scaling : bool
        Whether to find the scaling, too.
    backend, seed, threads
        As for `gpumatch.assign`, which does the work. On a GPU that is the engine for sparse costs.

    Returns
    -------
    ProductMatching
        In CuPy arrays if the matrix is on a device, else in NumPy arrays. If the matrix is
        structurally singular, it has fewer pairs than rows, and `gpumatch.linalg.product_matching`
        tells what it has.

    Raises
    ------
    ValueError, TypeError
        If a value is not finite, or an argument is wrong.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> A = np.array([[1e-8, 4.0, 0.0], [2.0, 1.0, 1.0], [0.0, 3.0, 1e-8]])
    >>> s = gm.linalg.maximum_product_matching(A)
    >>> scaled = s.row_scale[:, None] * A * s.col_scale
    >>> np.abs(scaled[s.row_perm][:, s.col_perm]).diagonal().round(12).tolist()
    [1.0, 1.0, 1.0]
    >>> bool(np.abs(scaled).max() <= 1 + 1e-12)
    True
    """
    if is_tensor(A):
        given = {"backend": backend, "seed": seed, "threads": threads}
        made: ProductMatching = with_tensors(maximum_product_matching, A, scaling=scaling, **given)
        return made
    run: dict[str, Any] = {"seed": checked_seed(seed), "threads": checked_threads(threads)}
    control = Control()
    small = small_entries(A) if backend in ("auto", "cpu") else None
    begun = None if small is None else _try_as_small(*small, control)
    if begun is not None and begun.is_full:
        return _of_small(begun, control, scaling=scaling)
    entries, xp, run["backend"], weights = _weighed(A, backend, run["threads"])
    found = _cheapest(entries, weights, run, control, begun, scaling=scaling)
    log_scales = _all_scales(entries, weights.values, found) if scaling else (None,) * 2
    return ProductMatching(
        array_of(xp, found.pairs.row_to_col),
        array_of(xp, found.pairs.col_to_row),
        tuple(scale if scale is None else array_of(xp, scale) for scale in log_scales),
        -found.total,
        found.stats,
        size=found.pairs.size,
    )


def _try_as_small(indptr: Any, indices: Any, weights: Any, control: Control) -> SmallProduct | None:
    """What the short way comes to for a small square matrix, if that is as it should be."""
    with control.part("search"):
        return _small_solver()(indptr, indices, weights, control)


@functools.cache
def _small_solver() -> Any:
    with InterruptsHeld():
        from gpumatch.cpu.assignment.sparse.small_product import solve
    return solve


def _of_small(found: SmallProduct, control: Control, *, scaling: bool) -> ProductMatching:
    _, row_to_col, col_to_row, row_log_scale, col_log_scale, total = found
    scales = (row_log_scale, col_log_scale) if scaling else (None, None)
    stats = {"algorithm": "engine", "backend": "cpu", **control.statistics()}
    return ProductMatching(row_to_col, col_to_row, scales, -total, stats, size=row_to_col.size)


def _weighed(
    A: Any, backend: BackendName, threads: int
) -> tuple[Entries, Any, BackendName, Weights]:
    """The entries where a call runs, where they were, the backend, and the weights.

    Whether the matrix can be used as it is, its weights tell.
    """
    given = shared_entries(A, threads) or own_entries(A)
    entries, where = placed(given, backend)
    weights = weights_of(entries.data, threads)
    if not weights.are_finite:
        own = own_entries(A)
        # A GPU takes single precision's subnormal numbers for 0, and these are none.
        entries, where = placed(own if own.on_device else own.in_double(), backend)
        weights = weights_of(entries.data, threads)
    return entries, array_module(given.data), where, weights


class _Cheapest(NamedTuple):
    """A cheapest assignment, and what its pairs cost in all.

    The scales are those of matched rows and columns, None if they are not asked for.
    """

    pairs: Pairs
    total: float
    row_log_scale: Any
    col_log_scale: Any
    stats: dict[str, Any]

    @classmethod
    def of(cls, assignment: Assignment, paid: Any, duals: tuple[Any, Any] | None) -> _Cheapest:
        scales = (None, None) if duals is None else _scales(assignment, paid, *duals)
        return cls(assignment, float(paid.sum()), scales[0], scales[1], assignment.stats)


def _cheapest(
    entries: Entries,
    weights: Weights,
    run: dict[str, Any],
    control: Control,
    begun: SmallProduct | None,
    *,
    scaling: bool,
) -> _Cheapest:
    costs = SparseCosts.of(entries.graph, *weights)
    by_reference = run["backend"] == "reference"
    full = _full_by_reference(costs, run) if by_reference else _full(costs, run, control, begun)
    return full or _largest(costs, run, scaling=scaling)


@with_interrupts_result
def _full(
    costs: SparseCosts, run: dict[str, Any], control: Control, begun: SmallProduct | None
) -> _Cheapest | None:
    """The full assignment; None if there is none."""
    goal = Goal.of(False, "full", None, costs)
    problem = goal.problem(costs)
    solution = empty_solution(problem)
    stats = {"algorithm": "engine", "backend": run["backend"]}
    if begun is None and run["backend"] == "cpu" and is_small(problem.shape, costs.nnz):
        indptr, indices, weights = costs.entries()
        begun = _try_as_small(indptr, indices, weights, control)
    if begun is not None and begun.is_full:
        pairs = Pairs(begun.row_to_col, begun.col_to_row, size=problem.shape[0])
        scales = begun.row_log_scale, begun.col_log_scale
        return _Cheapest(pairs, begun.total, *scales, stats | control.statistics())
    if begun is not None and begun.is_singular:
        return None
    if begun is not None and begun.col_log_scale.any():  # else a trial has yet to find prices
        solution.row_to_col[:], solution.col_to_row[:] = begun.row_to_col, begun.col_to_row
        solution.col_dual[:] = begun.col_log_scale
    task = AssignmentTask(problem, solution, control, None, run["threads"], run["seed"])
    with control.part("search"):
        total = _engine(run["backend"])(task)
    if total is None:
        return None
    if goal.transposed:
        solution = solution.transpose()
    pairs = Pairs(solution.row_to_col, solution.col_to_row, size=problem.shape[0])
    duals = solution.row_dual, solution.col_dual
    return _Cheapest(pairs, total, *duals, stats | control.statistics())


@functools.cache
def _engine(backend: BackendName) -> Any:
    with InterruptsHeld():
        if backend == "cpu":
            from gpumatch.cpu.assignment.sparse.product import run
        else:
            from gpumatch.cuda.assignment.sparse.product import run
    return run


def _full_by_reference(costs: SparseCosts, run: dict[str, Any]) -> _Cheapest | None:
    """The full assignment by the front door; None if there is none."""
    try:
        assignment = _assigned(costs, run)
    except InfeasibleError:
        return None
    return _Cheapest.of(
        assignment, assignment.pair_costs, (assignment.row_dual, assignment.col_dual)
    )


def _largest(costs: SparseCosts, run: dict[str, Any], *, scaling: bool) -> _Cheapest:
    """The cheapest among the largest assignments."""
    assignment = _assigned(costs, run, cardinality="maximum")
    duals = _duals_of_matched(costs, assignment, run) if scaling else None
    return _Cheapest.of(assignment, assignment.pair_costs, duals)


def _assigned(costs: SparseCosts, run: dict[str, Any], **asked: Any) -> Assignment:
    return assign(costs, **exactly_on(run["backend"]), **run, **asked)


def _owners(entries: Entries) -> Any:
    """The row of each entry."""
    return csr_for(entries.indices).owners(entries.indptr, entries.indices)


def _duals_of_matched(
    costs: SparseCosts, assignment: Assignment, run: dict[str, Any]
) -> tuple[Any, Any]:
    """Duals of the rows and columns that are matched, as a problem of their own; 0 elsewhere."""
    xp, rows, cols = costs.xp, assignment.row_ind, costs.xp.sort(assignment.col_ind)
    part = costs.restricted(rows, cols)
    same_pairs = xp.searchsorted(cols, assignment.col_ind)
    row_dual, col_dual = xp.zeros(costs.shape[0]), xp.zeros(costs.shape[1])
    again = _assigned(part, run, initial=same_pairs)
    row_dual[rows], col_dual[cols] = again.row_dual, again.col_dual
    return row_dual, col_dual


def _scales(pairs: Pairs, paid: Any, row_dual: Any, col_dual: Any) -> tuple[Any, Any]:
    """The scales of matched rows and columns.

    ``paid`` has the weights of the matched entries, by row. A common factor is moved from the rows
    to the columns, or back, so that both are in the same range. What rounding has left of matched
    entries is taken off their rows.
    """
    row_ind = pairs.row_ind
    of_mates = col_dual[pairs.row_to_col[row_ind]]
    shift = (_middle(of_mates) - _middle(row_dual[row_ind])) / 2
    row_log_scale = array_module(paid).zeros(row_dual.size)
    row_log_scale[row_ind] = paid - (of_mates - shift)
    return row_log_scale, col_dual - shift


def _all_scales(entries: Entries, weights: Any, cheapest: _Cheapest) -> tuple[Any, Any]:
    """The scales of all rows and columns, matched or not."""
    pairs, row_log_scale, col_log_scale = cheapest.pairs, *cheapest[2:4]
    nrows, ncols = entries.shape
    cols = entries.indices
    if pairs.size < nrows:
        unmatched = pairs.unmatched_rows
        least = _least(_owners(entries), weights - col_log_scale[cols], nrows)
        row_log_scale[unmatched] = least[unmatched]
    if pairs.size < ncols:
        unmatched = pairs.unmatched_cols
        least = _least(cols, weights - row_log_scale[_owners(entries)], ncols)
        col_log_scale[unmatched] = least[unmatched]
    return row_log_scale, col_log_scale


def _least(vertices: Any, weights: Any, count: int) -> Any:
    """The least weight of each vertex; 0 if it has none."""
    greatest = csr_for(weights).greatest(vertices, -weights, count)
    greatest[greatest == -np.inf] = 0
    return -greatest


def _middle(values: Any) -> float:
    return float(values.min() + values.max()) / 2 if values.size else 0.0


def _exp(log_scale: Any) -> Any:
    if log_scale is None:
        return None
    with np.errstate(over="ignore"):
        return array_module(log_scale).exp(log_scale)


def _cut_into_pairs(row_to_col: np.ndarray) -> np.ndarray:
    """The partner of each index when paths and cycles of i -> row_to_col[i] are cut into pairs."""
    indices = np.arange(row_to_col.size)
    partner = indices.copy()
    back = np.where(row_to_col >= 0, row_to_col[row_to_col], -1)
    mutual = back == indices
    partner[mutual] = row_to_col[mutual]
    left = set(indices[~mutual & (row_to_col >= 0)].tolist())
    is_first = np.ones(row_to_col.size, bool)
    is_first[row_to_col[row_to_col >= 0]] = False
    for first in [*indices[is_first].tolist(), *sorted(left)]:
        index = first
        while index in left:
            left.remove(index)
            mate = int(row_to_col[index])
            if partner[index] == index and partner[mate] == mate:
                partner[index], partner[mate] = mate, index
            index = mate
    return partner
