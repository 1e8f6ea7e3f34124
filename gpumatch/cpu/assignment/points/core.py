"""The pairs that an engine for sparse costs solves in place of all pairs."""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import AssignmentTask, Costs
from gpumatch.cpu.assignment.sparse.feasibility import complete_matching

__all__ = ["Pairs", "listed", "unmatched_of"]


class Pairs:
    """A set of pairs, in the order of rows, then of columns.

    Attributes
    ----------
    keys : int64 array
        ``row * ncols + column`` of each pair, in order.
    weights : array
        What the pairs cost.
    """

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.keys = np.empty(0, np.int64)
        self.weights = np.empty(0, np.int64 if costs.is_integer else np.float64)

    def add(self, *parts: tuple[np.ndarray, np.ndarray]) -> int:
        """Add pairs, given as rows and columns; return how many are new."""
        ncols = self.costs.shape[1]
        given = np.concatenate([rows.astype(np.int64) * ncols + cols for rows, cols in parts])
        given.sort()
        is_first = np.ones(given.size, bool)
        np.not_equal(given[1:], given[:-1], out=is_first[1:])
        new = given[is_first]
        places = self.keys.searchsorted(new)
        if self.keys.size:
            is_new = self.keys[np.minimum(places, self.keys.size - 1)] != new
            new, places = new[is_new], places[is_new]
        weights = self.costs.at(*np.divmod(new, max(ncols, 1)))
        self.keys = np.insert(self.keys, places, new)
        self.weights = np.insert(self.weights, places, weights)
        return new.size

    def as_costs(self) -> Costs:
        """The costs of these pairs only."""
        nrows, ncols = self.costs.shape
        rows, cols = np.divmod(self.keys, max(ncols, 1))
        indptr = np.zeros(nrows + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=nrows), out=indptr[1:])
        return self.costs.of_pairs(indptr, cols.astype(np.int32), self.weights)


def listed(near: np.ndarray, *, turned: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of what a search found: a line for each row, or for each column."""
    own, place = np.nonzero(near >= 0)
    found = own, near[own, place].astype(np.int64)
    return found[::-1] if turned else found


def unmatched_of(task: AssignmentTask, core: Costs) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows and columns that a maximum matching of the core leaves unmatched; None if stopped."""
    nrows, ncols = core.shape
    mates = np.full(nrows, -1, np.int32), np.full(ncols, -1, np.int32)
    if not complete_matching(task.matching(core.pattern(), *mates)):
        return None
    return np.flatnonzero(mates[0] < 0), np.flatnonzero(mates[1] < 0)
