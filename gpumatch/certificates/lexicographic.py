"""Check a lexicographic bottleneck assignment, by code that algorithms do not share.

`gpumatch.problems.lexicographic` states what the levels of a result are, and of what square problem
if there are more vertices on one side. With the signs turned for costs to be maximised, these are
checked:

1. the mate arrays name each other, and all of the smaller side is matched,
2. every pair is allowed and costs what is claimed,
3. the levels come in order, the greatest first,
4. for every allowed pair of the square problem, the sum of its vertices' duals, read from the
   greatest level down, is lexicographically no more than its vector w, which has a 1 at the level
   of its cost, and 0 elsewhere; for the pairs of the assignment it is the same.

Theorem. Then no other assignment has, from the largest cost down, lexicographically less.

Proof. The lexicographic order of integer vectors is kept by sums. An assignment of the square
problem pays each vertex once. So its sum of w is at least the sum of all duals, with equality for
the result. Of two assignments, the one with the lesser sum of w has fewer pairs of the greatest
level in which they differ. Each assignment is one of the square problem, with pairs of no cost
beside it. ∎

A pair is decided at the first level at which the two numbers differ, and looked at no more. All
numbers are integers, and costs are only compared. So all of this is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpumatch.certificates.base import (
    Certificate,
    CertificateError,
    check_flag,
    check_numbers,
    check_pair_costs,
    check_pairs,
    python_number,
)
from gpumatch.costs import Costs, as_costs
from gpumatch.numeric.arrays import array_of, first_true

__all__ = ["LexicographicCertificate", "verify_lexicographic"]


@dataclass(frozen=True)
class LexicographicCertificate(Certificate):
    """The proof of a lexicographic bottleneck assignment, checked.

    Attributes
    ----------
    problem : str
        ``"lexicographic"``.
    size, bound : int
        Assigned pairs.
    edges : int
        Allowed pairs that were checked.
    objective : int, float or None
        The largest cost of a pair; None if there are no pairs.
    levels : int
        Costs that every assignment has to pay at least so often, in this order.
    """

    objective: float | None
    levels: int

    def __str__(self) -> str:
        return (
            f"optimal: {self.size} pairs up to {self.objective}, least by {self.levels} levels, "
            f"checked on {self.edges} pairs"
        )


def verify_lexicographic(C: Any, result: Any) -> LexicographicCertificate:
    """Check a lexicographic bottleneck assignment and its levels; see `gpumatch.verify`."""
    costs = as_costs(C, summed=False)
    nrows, ncols = costs.shape
    sign = -1 if check_flag("maximize", result.maximize) else 1
    if (costs.low if sign > 0 else -costs.high) == -math.inf:
        raise CertificateError("an infinite cost asks for a pair instead of forbidding it")
    mates = array_of(np, result.row_to_col), array_of(np, result.col_to_row)
    row_to_col, col_to_row = check_pairs(*mates, costs.shape)
    rows = (row_to_col >= 0).nonzero()[0]
    if rows.size != min(costs.shape):
        raise CertificateError(f"{rows.size} pairs are assigned, not the smaller side")
    _check_costs(costs, result, rows, row_to_col[rows], sign)
    mates = row_to_col if nrows <= ncols else col_to_row
    levels = _levels_of(result, sign, max(costs.shape), nrows != ncols)
    top = max(levels[0][0], sign * result.objective) if levels and rows.size else None
    square = _Square(costs, sign, mates, top)
    for value, row_dual, col_dual in levels:
        square.check_level(value, row_dual, col_dual)
    square.check_matched()
    size = int(rows.size)
    return LexicographicCertificate(
        "lexicographic", size, size, costs.nnz, objective=result.objective, levels=len(levels)
    )


def _check_costs(costs: Costs, result: Any, rows: np.ndarray, cols: np.ndarray, sign: int) -> None:
    """Point 2."""
    stray = first_true(array_of(np, ~costs.allows(rows, cols)))
    if stray is not None:
        raise CertificateError(
            f"row {int(rows[stray])} is assigned to column {int(cols[stray])}, "
            "but that pair is forbidden"
        )
    paid = array_of(np, costs.at(rows, cols))
    paid = paid.astype(np.float64 if paid.dtype.kind == "f" else np.int64)
    if hasattr(result, "pair_costs"):  # a proof in a file does not have them
        check_pair_costs(array_of(np, result.pair_costs), paid)
    worst = (sign * (sign * paid).max()).item() if paid.size else None
    if worst is None:
        if result.objective is not None:
            raise CertificateError(f"there are no pairs, but the objective is {result.objective}")
    elif python_number("the objective", result.objective) != worst:
        raise CertificateError(
            f"the objective is {result.objective}, but the pair farthest from best costs {worst}"
        )


def _levels_of(
    result: Any, sign: int, longer: int, is_doubled: bool
) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Point 3: the levels as values to be minimised, and the duals of rows and of columns."""
    size = longer
    if is_doubled:
        size = len(result.row_to_col) + len(result.col_to_row)
    levels: list[tuple[float, np.ndarray, np.ndarray]] = []
    for level in result.levels:
        value = sign * python_number("the cost of a level", level.value)
        vertices = check_numbers("vertices of a level", level.vertices, level.numbers.size)
        numbers = check_numbers("duals of a level", level.numbers, vertices.size)
        if vertices.dtype.kind != "i" or numbers.dtype.kind != "i":
            raise CertificateError("the duals of a level must be integers")
        if vertices.size and not (vertices.min() >= 0 and vertices.max() < 2 * size):
            raise CertificateError(f"a level names vertices outside [0, {2 * size})")
        if abs(numbers).max(initial=0) >= 2**60:
            raise CertificateError("the duals of a level are too large")
        if levels and not value < levels[-1][0]:
            raise CertificateError(f"the level {level.value} is not after the one before")
        duals = np.zeros(2 * size, np.int64)
        duals[vertices] = numbers
        levels.append((value, duals[:size], duals[size:]))
    return levels


class _Square:
    """The pairs of the square problem, and which of them are not decided yet."""

    def __init__(self, costs: Costs, sign: int, mates: np.ndarray, top: float | None) -> None:
        nrows, ncols = min(costs.shape), max(costs.shape)
        rows, cols, values = _pairs_up_to(costs, sign, top)
        if costs.shape[0] > costs.shape[1]:
            rows, cols = cols, rows
        size = nrows
        if nrows < ncols:
            size = nrows + ncols
            dual_rows, others = cols + nrows, rows + ncols
            own = np.arange(ncols)
            none = np.full(rows.size + ncols, -math.inf)
            rows = np.concatenate([rows, dual_rows, own + nrows])
            cols = np.concatenate([cols, others, own])
            values = [*values, *none]
        self.rows, self.cols = rows, cols
        self.values = np.array([*values], object)
        every = np.full(size, -1)
        every[:nrows] = mates
        if nrows < ncols:
            every[nrows:] = np.arange(ncols)
            every[nrows + mates] = ncols + np.arange(nrows)
        self.is_matched = every[rows] == cols
        self.is_open = np.ones(rows.size, bool)
        self.by_value = np.argsort(-_ranks(self.values), kind="stable")
        self.next = 0
        self.by_row, self.by_col = _by_vertex(rows, size), _by_vertex(cols, size)

    def check_level(self, value: float, row_dual: np.ndarray, col_dual: np.ndarray) -> None:
        """Point 4 for one level. Pairs of greater costs without a level are decided already."""
        own = self._down_to(value)
        touched = np.concatenate(
            [
                own,
                _entries_of(self.by_row, row_dual.nonzero()[0]),
                _entries_of(self.by_col, col_dual.nonzero()[0]),
            ]
        )
        touched = touched[self.is_open[touched]]
        total = row_dual[self.rows[touched]] + col_dual[self.cols[touched]]
        wanted = np.isin(touched, own).astype(np.int64)
        stray = first_true(total > wanted)
        if stray is not None:
            self._raise(touched[stray], f"has duals that exceed its cost at the level {value}")
        below = total < wanted
        stray = first_true(below & self.is_matched[touched])
        if stray is not None:
            self._raise(touched[stray], f"has duals below its cost at the level {value}")
        self.is_open[touched[below]] = False

    def check_matched(self) -> None:
        """Check that each pair of the assignment that costs something has its level."""
        rest = self._down_to(-math.inf)
        stray = first_true(self.is_matched[rest] & (self.values[rest] > -math.inf))
        if stray is not None:
            self._raise(rest[stray], "has a cost without a level")

    def _down_to(self, value: float) -> np.ndarray:
        """The pairs of a cost. Those above it that were not looked at are decided."""
        begin = self.next
        while self.next < self.by_value.size and self.values[self.by_value[self.next]] > value:
            self.next += 1
        above = self.by_value[begin : self.next]
        stray = first_true(self.is_matched[above])
        if stray is not None:
            self._raise(above[stray], "has a cost without a level")
        self.is_open[above] = False
        begin = self.next
        while self.next < self.by_value.size and self.values[self.by_value[self.next]] == value:
            self.next += 1
        return self.by_value[begin : self.next]

    def _raise(self, pair: int, what: str) -> None:
        raise CertificateError(
            f"the pair of row {int(self.rows[pair])} and column {int(self.cols[pair])} of the "
            f"square problem {what}"
        )


def _pairs_up_to(costs: Costs, sign: int, top: float | None) -> tuple[Any, Any, list[Any]]:
    """The allowed pairs that cost at most `top`, on the host, with exact costs."""
    parts = []
    for tile in costs.tiles():
        rows, cols, values = costs.tile(tile)
        values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64, copy=False)
        marks = abs(values) < math.inf
        if top is not None:
            marks &= (values >= -top) if sign < 0 else (values <= top)
        at = marks.nonzero()
        if values.ndim == 1:
            part = rows[at[0]], cols[at[0]], values[at[0]]
        else:
            part = rows[at[0], 0], cols[0, at[1]], values[at]
        parts.append([array_of(np, own) for own in part])
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), []
    rows, cols, values = (np.concatenate(part) for part in zip(*parts))
    return rows.astype(np.int64), cols.astype(np.int64), [sign * value for value in values.tolist()]


def _ranks(values: np.ndarray) -> np.ndarray:
    """Numbers in the order of these."""
    if not values.size:
        return np.zeros(0, np.int64)
    ordered = sorted(set(values.tolist()))
    rank = {value: number for number, value in enumerate(ordered)}
    return np.array([rank[value] for value in values.tolist()], np.int64)


def _by_vertex(vertices: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The entries of each vertex: where its own begin, and all in order."""
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(vertices, minlength=size), out=starts[1:])
    return starts, np.argsort(vertices, kind="stable")


def _entries_of(by_vertex: tuple[np.ndarray, np.ndarray], vertices: np.ndarray) -> np.ndarray:
    starts, entries = by_vertex
    if not vertices.size:
        return entries[:0]
    return np.concatenate([entries[starts[v] : starts[v + 1]] for v in vertices.tolist()])
