"""Check the pairs that optimal, or nearly optimal, assignments have, by SciPy's graph searches.

Let u, v be the duals of an optimal assignment, of costs to be minimised, and c_ij - u_i - v_j the
slack of a pair, less the limit if its row may pay that. A directed graph has the rows as vertices,
and a hub for all that is unmatched:

- row i -> the row that has column j, or the hub if none has it: the slack of the pair i, j
- a matched row -> hub: -u_i, if it may stay unmatched
- hub -> a matched row: -v_j for its column j, if that may stay unmatched
- hub -> an unmatched row: 0

Theorem. If no arc is negative, the least total of an assignment that has a pair i, j is above the
optimum by the length of the shortest cycle through the pair's arc; by 0 for a pair of the optimum.

Proof. Give each row of another assignment the arc of its new pair, or the one to the hub if it has
lost its column, and each row whose column nobody has any more, or which was unmatched and is not,
the one from the hub. As many arcs enter each vertex as leave it, so they are cycles. Sum up c - u -
v over the new pairs, and the duals of what is unmatched: what the total rises by is the length of
the cycles, because duals of what must be matched cancel. None is negative, so it is at least the
length of the one through the pair. Conversely, to go round a simple cycle gives an assignment. ∎

So what is checked is the assignment, by its own checker, and then for each pair the least length of
a cycle: by strong components of the tight arcs if only optima count, else by Dijkstra's searches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpumatch.certificates.assignment import verify_assignment
from gpumatch.certificates.base import (
    Certificate,
    CertificateError,
    check_flag,
    csr_arrays,
    python_number,
)
from gpumatch.costs import as_costs
from gpumatch.numeric.arrays import array_of, first_true

__all__ = ["AlternativesCertificate", "verify_alternatives"]

ULPS = 16  # of the largest number in use, for each pair: slacks of floats that may be 0
SOURCES = 2**8  # vertices from which distances are held at a time


@dataclass(frozen=True)
class AlternativesCertificate(Certificate):
    """The pairs of optimal or nearly optimal assignments, checked.

    Attributes
    ----------
    problem : str
        ``"alternatives"``.
    size : int
        The pairs.
    bound : int or float
        How much worse than the optimum their assignments may be.
    edges : int
        Pairs that were checked.
    """

    def __str__(self) -> str:
        return (
            f"{self.size} pairs of assignments within {self.bound} of the optimum, checked on "
            f"{self.edges} pairs"
        )


def verify_alternatives(C: Any, result: Any) -> AlternativesCertificate:
    """Check pairs and by how much each is worse; see `gpumatch.verify`."""
    verify_assignment(C, result.assignment)
    costs = as_costs(C).to_host()
    within = python_number("within", result.within)
    if within < 0:
        raise CertificateError(f"within is {within}, but must be at least 0")
    claim = _Exchanges(costs, result.assignment)
    room = claim.room
    if not 0 <= python_number("the tolerance", result.tolerance) <= room:
        raise CertificateError(f"the tolerance is {result.tolerance}, but must be at most {room}")
    if (claim.slack < -room).any():
        raise CertificateError("a pair costs less than its duals")
    extra, others = claim.extra_costs(within)
    listed = _listed(result, claim)
    stray = first_true(~listed & (extra <= within - 2 * room))
    if stray is not None:
        raise CertificateError(f"{claim.named(stray)} is left out, and costs {extra[stray]} more")
    stray = first_true(listed & (extra > within + 2 * room))
    if stray is not None:
        raise CertificateError(f"{claim.named(stray)} is listed, and costs {extra[stray]} more")
    values = np.zeros(extra.size)
    values[listed] = csr_arrays(result.matrix)[2].astype(np.float64)
    stray = first_true(listed & ~(abs(values - extra) <= 2 * room))
    if stray is not None:
        raise CertificateError(
            f"{claim.named(stray)} is said to cost {values[stray]} more, not {extra[stray]}"
        )
    _check_order(result, claim, listed)
    if result.is_unique and (listed & ~claim.is_own).any():
        raise CertificateError("a pair of another assignment is listed, but is_unique is True")
    least = min(others, extra[~claim.is_own].min(initial=np.inf))
    if check_flag("is_unique", result.is_unique) != (least > within) and not (
        abs(least - within) <= 2 * room and room > 0
    ):
        raise CertificateError("is_unique does not agree with the pairs")
    return AlternativesCertificate("alternatives", int(listed.sum()), within, extra.size)


def _listed(result: Any, claim: _Exchanges) -> np.ndarray:
    """Which allowed pairs are listed; they are in the same order there."""
    indptr, indices, _ = csr_arrays(result.matrix)
    nrows, ncols = claim.shape
    if indptr.size != nrows + 1 or indices.min(initial=0) < 0 or indices.max(initial=-1) >= ncols:
        raise CertificateError(f"the pairs are not those of {nrows} rows and {ncols} columns")
    listed = np.repeat(np.arange(nrows), np.diff(indptr)) * max(ncols, 1) + indices
    if (np.diff(listed) <= 0).any():
        raise CertificateError("the pairs are not in order, or one is there twice")
    numbers = claim.rows * max(ncols, 1) + claim.cols
    stray = first_true(~np.isin(listed, numbers))
    if stray is not None:
        row, col = divmod(int(listed[stray]), ncols)
        raise CertificateError(f"the pair of row {row} and column {col} is not allowed")
    return np.isin(numbers, listed)


def _check_order(result: Any, claim: _Exchanges, listed: np.ndarray) -> None:
    """Check that the blocks of tight pairs tell which are listed, if there are blocks."""
    if result.row_block is None:
        return
    row_block, col_block = (array_of(np, part) for part in (result.row_block, result.col_block))
    if (row_block.size, col_block.size) != claim.shape:
        raise CertificateError("the blocks are not those of the rows and columns")
    is_tight = claim.slack <= claim.room
    before, after = row_block[claim.rows], col_block[claim.cols]
    stray = first_true(is_tight & (before > after))
    if stray is None:
        stray = first_true(listed & (before != after))
    if stray is None:
        stray = first_true(~listed & (before == after) & (claim.slack <= result.tolerance))
    if stray is not None:
        raise CertificateError(f"the blocks of {claim.named(stray)} do not tell if it is listed")


class _Exchanges:
    """The graph of the theorem, as arrays of its arcs."""

    def __init__(self, costs: Any, a: Any) -> None:
        self.shape = nrows, _ = costs.shape
        sign = -1 if a.maximize else 1
        duals = [array_of(np, dual) * sign for dual in (a.row_dual, a.col_dual)]
        mates = [array_of(np, mate).astype(np.int64) for mate in (a.row_to_col, a.col_to_row)]
        limit = None if a.cost_limit is None else np.asarray(array_of(np, a.cost_limit))
        stays, covered = _who_may_stay(a, costs.shape)
        rows, cols, values = _allowed(costs, covered, limit if covered is not None else None, sign)
        slack = values - duals[0][rows] - duals[1][cols]
        if covered is None and limit is not None:
            slack = slack - sign * np.broadcast_to(limit, (nrows,))[rows]
        self.rows, self.cols, self.slack = rows, cols, slack.astype(np.float64)
        self.is_own = mates[0][rows] == cols
        self.room = _room([values[self.is_own], *duals], int(self.is_own.sum()))
        heads = np.where(mates[1] < 0, nrows, mates[1])
        has_col = mates[0] >= 0
        (leaving,) = (has_col & stays[0]).nonzero()
        (freed,) = (~has_col | stays[1][mates[0]] if mates[1].size else ~has_col).nonzero()
        gain = np.zeros(nrows)
        gain[has_col] = -duals[1][mates[0][has_col]]
        self.leaving, self.leave = leaving, -duals[0][leaving].astype(np.float64)
        self.heads = heads[cols]
        hub = np.full(max(leaving.size, freed.size), nrows)
        self.tails_all = np.concatenate([rows, leaving, hub[: freed.size]])
        self.heads_all = np.concatenate([self.heads, hub[: leaving.size], freed])
        lengths = np.concatenate([self.slack, self.leave, gain[freed]])
        self.lengths_all = np.maximum(lengths, 0.0)

    def named(self, place: int) -> str:
        return f"the pair of row {self.rows[place]} and column {self.cols[place]}"

    def extra_costs(self, within: float) -> tuple[np.ndarray, float]:
        """The least length of a cycle through each pair's arc, and through any arc to the hub.

        Infinite if it is beyond ``within``, and rounding does not explain that.
        """
        extra = np.maximum(self.slack, 0.0)
        leave = np.maximum(self.leave, 0.0)
        reached = self._is_circular if within == 0 else self._distances(within)
        extra = extra + reached(self.heads, self.rows)
        leave = leave + reached(np.full(self.leaving.size, self.shape[0]), self.leaving)
        extra[self.is_own] = 0.0
        return extra, float(leave.min(initial=np.inf))

    def _graph(self, most: float) -> Any:
        """The arcs up to a length, the shortest of each two vertices, as SciPy has them."""
        from scipy.sparse import csr_array

        kept = self.lengths_all <= most
        tails, heads, lengths = (
            part[kept] for part in (self.tails_all, self.heads_all, self.lengths_all)
        )
        count = self.shape[0] + 1
        order = np.lexsort([lengths, tails * count + heads])
        numbers = (tails * count + heads)[order]
        first = np.concatenate([[True], numbers[1:] != numbers[:-1]])[: numbers.size]
        indptr = np.searchsorted(numbers[first], np.arange(count + 1) * count)
        return csr_array(
            (lengths[order][first], numbers[first] % count, indptr), shape=(count, count)
        )

    def _is_circular(self, heads: np.ndarray, tails: np.ndarray) -> np.ndarray:
        """0 where tight arcs lead from the head back to the tail, else infinity."""
        from scipy.sparse.csgraph import connected_components

        graph = self._graph(self.room)
        graph.data[:] = 1.0
        _, label = connected_components(graph, connection="strong")
        return np.where(label[heads] == label[tails], 0.0, np.inf)

    def _distances(self, within: float) -> Any:
        """Distances up to ``within``, as a function of heads and tails."""
        from scipy.sparse.csgraph import dijkstra

        most = within + 2 * self.room
        graph = self._graph(most)

        def reached(heads: np.ndarray, tails: np.ndarray) -> np.ndarray:
            found = np.empty(heads.size)
            for first in range(0, self.shape[0] + 1, SOURCES):
                sources = np.arange(first, min(first + SOURCES, self.shape[0] + 1))
                far = dijkstra(graph, indices=sources, limit=most)
                is_here = (heads >= first) & (heads < first + SOURCES)
                found[is_here] = far[heads[is_here] - first, tails[is_here]]
            return found

        return reached


def _who_may_stay(a: Any, shape: tuple[int, int]) -> tuple[list[np.ndarray], Any]:
    """Marks of rows and of columns that may stay unmatched; those in the cover of a maximum one."""
    nrows, ncols = shape
    if a.cardinality == "maximum":
        covered = [np.zeros(size, bool) for size in shape]
        for marks, members in zip(covered, a.cover_ind()):
            marks[array_of(np, members)] = True
        return [~marks for marks in covered], covered
    is_free = a.cardinality == "any" or a.cost_limit is not None
    return [
        np.full(nrows, is_free or nrows > ncols),
        np.full(ncols, is_free or ncols > nrows),
    ], None


def _allowed(costs: Any, covered: Any, bar: Any, sign: int) -> tuple[Any, Any, Any]:
    """Rows, columns and costs to be minimised of the pairs that count, by row."""
    parts: list[tuple[Any, ...]] = []
    for tile in costs.tiles():
        rows, cols, values = costs.tile(tile)
        values = values if values.dtype.kind == "f" else values.astype(np.int64)
        keep = np.isfinite(values)
        if covered is not None:
            keep &= ~(covered[0][rows] & covered[1][cols])
        if bar is not None:
            most = bar if bar.ndim == 0 else bar[rows]
            keep &= sign * values <= sign * most
        parts.append(tuple(np.broadcast_to(part, keep.shape)[keep] for part in (rows, cols)))
        parts[-1] += (sign * np.broadcast_to(values, keep.shape)[keep],)
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    rows, cols, values = (np.concatenate(part) for part in zip(*parts))
    order = np.lexsort([cols, rows])
    return rows[order].astype(np.int64), cols[order].astype(np.int64), values[order]


def _room(numbers: list[np.ndarray], size: int) -> float:
    """How far from 0 a slack may be by rounding; 0 if all numbers are integers."""
    if all(part.dtype.kind in "biu" for part in numbers):
        return 0.0
    largest = max((float(abs(part).max(initial=0)) for part in numbers), default=0.0)
    return ULPS * float(np.finfo(np.float64).eps) * max(1, size) * largest
