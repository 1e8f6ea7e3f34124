"""The result of `gpumatch.k_best`: assignments in order, and the partition that proves it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpumatch.numeric.arrays import array_module
from gpumatch.results.pairs import Labels, Pairs

__all__ = ["PartitionTree", "RankedAssignments", "RankedBatch"]


class PartitionTree(NamedTuple):
    """How all assignments were divided, and why those left out cost no less than the last one.

    The `payers` are the vertices that must be matched, or pay a limit. An option of a payer is a
    vertex of the other side, or -1: it stays unmatched. A node is a part of all assignments: some
    payers are fixed to what the parent's assignment has, and some options are excluded. Node 0 has
    all assignments. A node whose assignment was returned is divided: child s fixes the payers
    before place s of its order, and excludes what the one at place s has. A node that is not
    divided has duals u, v, which bound what its assignments cost, or shows that it has none.

    Attributes
    ----------
    by_columns : bool
        True if the payers are the columns.
    parent, place : int arrays
        Of each node, the node that it was made from and its place in that node's order; -1 for
        node 0.
    opened : int array
        The number of the assignment that was taken from a node, which was then divided; else -1.
    order : int array of shape (number of assignments, number of payers)
        The order of the payers in the node of an assignment. The fixed ones come first.
    is_empty : bool array
        True for a node without assignments. Its numbers are then 1 for payers that may have these
        vertices of the other side only, and -1 for the vertices, which are fewer.
    starts, vertices, differences : arrays
        Node t has the duals of its parent, changed at ``vertices[starts[t]:starts[t + 1]]`` by
        these differences. Payer i is vertex i, and vertex j of the other side is vertex n + j, for
        n payers. Node 0 differs from duals of 0.
    """

    by_columns: bool
    parent: np.ndarray
    place: np.ndarray
    opened: np.ndarray
    order: np.ndarray
    is_empty: np.ndarray
    starts: np.ndarray
    vertices: np.ndarray
    differences: np.ndarray


class RankedAssignments(Sequence[Pairs]):
    """The k cheapest assignments, the cheapest first.

    Attributes
    ----------
    row_to_col : int32 array of shape (len, nrows)
        The column of each row in each assignment; -1: it is unmatched.
    objective : int64 or float64 array of length len
        What each assignment costs, with the limits of what it leaves unmatched.
    proven : bool
        False if the run was stopped before it had found all that were wanted. Those that it had
        found are the cheapest all the same.
    is_complete : bool
        True if there are no other assignments.
    tree : PartitionTree, optional
        The proof, if it was asked for.
    maximize, cost_limit
        The arguments of the call.
    stats : dict
        ``algorithm``, ``backend``, ``paths``: how many assignments were looked at, and ``seconds``
        by part.
    """

    _TENSORS = ("row_to_col", "objective")

    def __init__(
        self,
        row_to_col: Any,
        objective: Any,
        ncols: int,
        *,
        proven: bool,
        is_complete: bool,
        tree: PartitionTree | None,
        maximize: bool,
        cost_limit: Any,
        labels: Labels = (None, None),
        stats: dict[str, Any],
    ) -> None:
        self.row_to_col, self.objective = row_to_col, objective
        self.proven, self.is_complete, self.tree = proven, is_complete, tree
        self.maximize, self.cost_limit, self.stats = maximize, cost_limit, stats
        self._ncols, self._labels = ncols, labels

    def __len__(self) -> int:
        return int(self.row_to_col.shape[0])

    def __getitem__(self, number: Any) -> Any:
        """One assignment as pairs, or a list of them for a slice."""
        if isinstance(number, slice):
            return [self[n] for n in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(f"there are {len(self)} assignments; got number {number}")
        row_to_col = self.row_to_col[number]
        xp = array_module(row_to_col)
        rows = (row_to_col >= 0).nonzero()[0]
        col_to_row = xp.full(self._ncols, -1, np.int32)
        col_to_row[row_to_col[rows]] = rows
        return Pairs(row_to_col, col_to_row, self._labels)

    def __repr__(self) -> str:
        ends = ""
        if len(self):
            first, last = self.objective[0].item(), self.objective[-1].item()
            ends = f", objectives {first} to {last}"
        rest = "all there are" if self.is_complete else "proven" if self.proven else "stopped"
        return f"RankedAssignments({len(self)} assignments{ends}, {rest})"


class RankedBatch(Sequence[RankedAssignments]):
    """The k cheapest assignments of each problem of a batch.

    Attributes
    ----------
    row_to_col : int32 array of shape (B, k, nrows)
        The column of each row; -1 where there is none, or no such assignment or row.
    objective : array of shape (B, k)
        What each costs. Where there is no such assignment: inf, -inf to be maximised; for integers,
        the largest int64 or its negative.
    counts : int64 array of length B
        How many assignments each problem has, at most k.
    proven : bool array of length B
        As of `RankedAssignments`.

    Arrays are on the device if the costs are.
    """

    _TENSORS = ("row_to_col", "objective", "counts", "proven")

    def __init__(
        self,
        row_to_col: Any,
        objective: Any,
        counts: Any,
        proven: Any,
        one: Callable[[int], RankedAssignments],
    ) -> None:
        self.row_to_col, self.objective = row_to_col, objective
        self.counts, self.proven, self._one = counts, proven, one

    @classmethod
    def of(cls, ranked: Sequence[RankedAssignments], k: int, nrows: int) -> RankedBatch:
        """The batch of these results, on the host."""
        size = len(ranked)
        row_to_col = np.full((size, k, nrows), -1, np.int32)
        is_integer = all(one.objective.dtype.kind == "i" for one in ranked)
        far = np.int64(2**63 - 1) if is_integer else np.inf
        sign = -1 if any(one.maximize for one in ranked) else 1
        objective = np.full((size, k), sign * far)
        for one, mates, totals in zip(ranked, row_to_col, objective):
            mates[: len(one), : one.row_to_col.shape[1]] = one.row_to_col
            totals[: len(one)] = one.objective
        counts = np.array([len(one) for one in ranked], np.int64)
        proven = np.array([one.proven for one in ranked], bool)
        return cls(row_to_col, objective, counts, proven, list(ranked).__getitem__)

    def __len__(self) -> int:
        return int(self.counts.size)

    def __getitem__(self, number: Any) -> Any:
        """The assignments of one problem, or a list of them for a slice."""
        if isinstance(number, slice):
            return [self[n] for n in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(f"there are {len(self)} problems; got number {number}")
        return self._one(number % len(self))

    def __repr__(self) -> str:
        return f"RankedBatch({len(self)} problems, {int(self.counts.sum())} assignments)"
