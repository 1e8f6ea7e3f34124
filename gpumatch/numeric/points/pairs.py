"""The pairs that an engine for sparse costs solves in place of all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.contracts import Costs

__all__ = ["Pairs", "listed"]


class Pairs:
    """A set of pairs, in the order of rows, then of columns, where their costs are.

    Attributes
    ----------
    keys : int64 array
        ``row * ncols + column`` of each pair, in order.
    weights : array
        What the pairs cost.
    """

    def __init__(self, costs: Costs) -> None:
        self.costs, self.xp = costs, costs.xp
        self.keys = self.xp.empty(0, np.int64)
        self.weights = self.xp.empty(0, np.int64 if costs.is_integer else np.float64)

    def add(self, *parts: tuple[Any, Any]) -> int:
        """Add pairs, given as rows and columns; return how many are new."""
        xp, ncols = self.xp, max(self.costs.shape[1], 1)
        given = xp.concatenate([rows.astype(np.int64) * ncols + cols for rows, cols in parts])
        given.sort()
        is_first = xp.ones(given.size, bool)
        xp.not_equal(given[1:], given[:-1], out=is_first[1:])
        new = given[is_first]
        places = xp.searchsorted(self.keys, new)
        if self.keys.size:
            is_new = self.keys[xp.minimum(places, self.keys.size - 1)] != new
            new, places = new[is_new], places[is_new]
        weights = self.costs.at(new // ncols, new % ncols)
        at = places + xp.arange(new.size)
        was_there = xp.ones(self.keys.size + new.size, bool)
        was_there[at] = False
        self.keys = self._merged(self.keys, new, at, was_there)
        self.weights = self._merged(self.weights, weights, at, was_there)
        return int(new.size)

    def _merged(self, old: Any, new: Any, at: Any, was_there: Any) -> Any:
        both = self.xp.empty(was_there.size, old.dtype)
        both[at] = new
        both[was_there] = old
        return both

    def as_costs(self) -> Costs:
        """The costs of these pairs only."""
        xp, (nrows, ncols) = self.xp, self.costs.shape
        starts = xp.arange(nrows + 1, dtype=np.int64) * max(ncols, 1)
        indptr = xp.searchsorted(self.keys, starts)
        cols = (self.keys % max(ncols, 1)).astype(np.int32)
        return self.costs.of_pairs(indptr.astype(np.int64, copy=False), cols, self.weights)


def listed(near: Any, xp: Any, *, turned: bool = False) -> tuple[Any, Any]:
    """Rows and columns of what a search found: a line for each row, or for each column."""
    own, place = xp.nonzero(near >= 0)
    found = own, near[own, place].astype(np.int64)
    return found[::-1] if turned else found
