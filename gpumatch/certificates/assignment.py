"""Check that an assignment is optimal, by code that algorithms do not share.

`gpumatch.cardinality` states the conditions, and why they prove it. With the signs turned for costs
to be maximised, and L the cost limit (0 if there is none; of a row if each has its
own), these are checked:

1. the mate arrays name each other, and the pairs are theirs,
2. every pair is allowed, and the objective is what the pairs cost,
3. the pairs are as many as asked for: all of the smaller side, or those of a vertex cover that
   every allowed pair touches, or any number,
4. no pair costs less than its two duals and L, except pairs inside the cover,
5. duals are at most 0, and 0 for unmatched vertices; those of the cover may be any,
6. the duals, and L for each pair, add up to the objective.

With 4 and 5 no assignment is cheaper than the duals' total, and by 6 this one is as cheap.

Integers are checked exactly. Otherwise there is an allowance for rounding: for each inequality some
units in the last place of the largest number among costs and duals, for sums as much for each pair.
Duals beyond what an optimal assignment can need are refused, because they would raise this
allowance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpumatch.arrays import any_true, array_of, first_true
from gpumatch.certificates.base import (
    Certificate,
    CertificateError,
    ClaimedAssignment,
    check_mates,
    check_partners,
    count_of,
    cover_of,
    first_pair,
    marks_of,
    total_of,
)
from gpumatch.costs import Costs, as_costs

ULPS = 16  # allowed for each inequality, and for each pair in a sum
EXACT = 2**61  # int64 holds sums of two such duals


@dataclass(frozen=True)
class AssignmentCertificate(Certificate):
    """The proof of an assignment, checked.

    Attributes
    ----------
    problem : str
        ``"assignment"``.
    size : int
        Assigned pairs.
    bound : int or float
        What the duals prove: no assignment has a better objective.
    edges : int
        Allowed pairs that were checked.
    objective : int or float
        Total cost of the pairs.
    """

    objective: float

    def __str__(self) -> str:
        return (
            f"optimal: {self.size} pairs of total {self.objective}, and dual prices of total "
            f"{self.bound}, checked on {self.edges} pairs"
        )


def verify_assignment(C: Any, result: ClaimedAssignment) -> AssignmentCertificate:
    """Check an assignment and the duals that prove it optimal; see `gpumatch.verify`.

    O(number of pairs) on the device that holds the costs, in tiles of 2**20 pairs (2**22 on a GPU).
    """
    costs = as_costs(C)
    claim = _Claim(costs, result)
    claim.check_pairs()
    claim.check_objective()
    claim.check_size()
    claim.check_signs()
    edges = claim.check_edges()
    return AssignmentCertificate(
        "assignment", claim.size, claim.check_totals(), edges, result.objective
    )


class _Claim:
    """A result and its costs, both turned so that costs are minimised.

    `exact` tells whether everything is an integer. `allowance` is the rounding allowed for a pair.
    """

    def __init__(self, costs: Costs, result: ClaimedAssignment) -> None:
        xp = costs.xp
        self.costs, self.result = costs, result
        self.sign = -1 if result.maximize else 1
        self.row_to_col = array_of(xp, result.row_to_col)
        self.col_to_row = array_of(xp, result.col_to_row)
        self.row_dual = array_of(xp, result.row_dual)
        self.col_dual = array_of(xp, result.col_dual)
        self.is_largest = result.cardinality == "maximum"
        self.is_free = result.cardinality == "any" or result.cost_limit is not None
        self.limits = _limits_of(result.cost_limit, costs) * self.sign
        self.most_limit = _largest(self.limits)
        self.exact = costs.is_integer and all(
            numbers.dtype.kind in "iu" for numbers in (self.row_dual, self.col_dual, self.limits)
        )
        self.number = np.int64 if self.exact else np.float64
        self._turn_duals()

    def _turn_duals(self) -> None:
        nrows, ncols = self.costs.shape
        for side, dual, length in (
            ("row", self.row_dual, nrows),
            ("column", self.col_dual, ncols),
        ):
            if dual.shape != (length,) or dual.dtype.kind not in "iuf":
                raise CertificateError(
                    f"the duals of the {side}s must be {length} numbers; "
                    f"got {dual.dtype} of shape {dual.shape}"
                )
        most = 4 * (min(nrows, ncols) + 1) * max(self.costs.largest, self.most_limit)
        self.row_dual, self.col_dual = (
            self._bounded(side, dual, most)
            for side, dual in (("row", self.row_dual), ("column", self.col_dual))
        )
        largest = [self.costs.largest, self.most_limit]
        largest += [float(abs(d).max()) for d in (self.row_dual, self.col_dual) if d.size]
        self.allowance = 0 if self.exact else ULPS * math.ulp(1.0) * max(largest)

    def _bounded(self, side: str, dual: Any, most: float) -> Any:
        """The duals with their sign turned, none further from 0 than `most`."""
        stray = first_true(~((dual >= -most) & (dual <= most)))
        if stray is not None:
            raise CertificateError(
                f"the dual of {side} {stray} is {dual[stray]}: "
                f"no optimal assignment needs one beyond {most}"
            )
        if self.exact and most >= EXACT:
            dual = array_of(np, dual).astype(object)
        else:
            dual = dual.astype(self.number)
        return dual * self.sign

    @property
    def size(self) -> int:
        return count_of(self.row_to_col >= 0)

    def check_pairs(self) -> None:
        """Point 1."""
        nrows, ncols = self.costs.shape
        check_mates("row", self.row_to_col, nrows, ncols)
        check_mates("column", self.col_to_row, ncols, nrows)
        check_partners("row", self.row_to_col, self.col_to_row)
        check_partners("column", self.col_to_row, self.row_to_col)
        rows = (self.row_to_col >= 0).nonzero()[0]
        for name, expected in (("row_ind", rows), ("col_ind", self.row_to_col[rows])):
            given = array_of(self.costs.xp, getattr(self.result, name))
            if given.shape != expected.shape or any_true(given != expected):
                raise CertificateError(f"{name} does not agree with row_to_col")

    def check_objective(self) -> None:
        """Point 2."""
        rows = (self.row_to_col >= 0).nonzero()[0]
        cols = self.row_to_col[rows]
        allowed = self.costs.allows(rows, cols)
        stray = first_true(~allowed)
        if stray is None:
            paid = self.costs.at(rows, cols)
            if self.is_largest and self.result.cost_limit is not None:
                stray = first_true(paid.astype(self.number) * self.sign > self.limits[rows])
        if stray is not None:
            raise CertificateError(
                f"row {int(rows[stray])} is assigned to column {int(cols[stray])}, "
                "but that pair is forbidden"
            )
        total = total_of(paid)
        if not abs(total - self.result.objective) <= self.allowance * self.size:
            raise CertificateError(
                f"the pairs cost {total} in all, but the objective is {self.result.objective}"
            )

    def check_size(self) -> None:
        """Point 3, except for the pairs that a cover must touch."""
        nrows, ncols = self.costs.shape
        xp = self.costs.xp
        self.in_rows, self.in_cols = xp.zeros(nrows, bool), xp.zeros(ncols, bool)
        if self.is_largest:
            try:
                rows, cols = (array_of(xp, part) for part in cover_of(self.result))
            except ValueError as exc:
                raise CertificateError(str(exc)) from exc
            self.in_rows = marks_of(xp, rows, nrows, "row")
            self.in_cols = marks_of(xp, cols, ncols, "column")
        elif not self.is_free:
            (self.in_rows if nrows <= ncols else self.in_cols)[:] = True
        else:
            return
        needed = count_of(self.in_rows) + count_of(self.in_cols)
        if self.size != needed:
            raise CertificateError(
                f"{self.size} pairs are assigned, not {needed}, "
                + ("as the cover has vertices" if self.is_largest else "the smaller side")
            )

    def check_signs(self) -> None:
        """Point 5."""
        for side, dual, in_cover, mates in (
            ("row", self.row_dual, self.in_rows, self.row_to_col),
            ("column", self.col_dual, self.in_cols, self.col_to_row),
        ):
            outside = ~array_of(np, in_cover) if dual.dtype.kind == "O" else ~in_cover
            above = first_true(outside & (dual > self.allowance))
            if above is not None:
                raise CertificateError(
                    f"the dual of {side} {above} is {dual[above] * self.sign}, "
                    f"but must be {'at least' if self.sign < 0 else 'at most'} 0"
                )
            free = array_of(np, mates) < 0 if dual.dtype.kind == "O" else mates < 0
            loose = first_true(free & (abs(dual) > self.allowance))
            if loose is not None:
                raise CertificateError(
                    f"the dual of {side} {loose} is {dual[loose] * self.sign}, "
                    f"but must be 0, because the {side} is unmatched"
                )

    def check_edges(self) -> int:
        """Point 4, and that a cover touches every pair; the number of allowed pairs."""
        count = 0
        has_base = self.is_free and not self.is_largest
        limits = array_of(np, self.limits) if self.row_dual.dtype.kind == "O" else self.limits
        for rows, cols, costs in _tiles(self.costs, self.row_dual.dtype):
            costs = costs * self.sign
            allowed = costs < math.inf
            if self.is_largest and self.result.cost_limit is not None:
                allowed &= costs <= limits[rows]
            count += count_of(allowed)
            in_rows, in_cols = self.in_rows[rows], self.in_cols[cols]
            if self.is_largest:
                self._report(rows, cols, allowed & ~(in_rows | in_cols), "is not in the cover")
            base = limits[rows] if has_base else 0
            short = costs - self.row_dual[rows] < self.col_dual[cols] + (base - self.allowance)
            text = "costs less than its duals" + (" and the limit" if self.most_limit else "")
            self._report(rows, cols, allowed & short & ~(in_rows & in_cols), text)
        return count

    def _report(self, rows: Any, cols: Any, marks: Any, what: str) -> None:
        xp = np if isinstance(marks, np.ndarray) else self.costs.xp
        pair = first_pair(xp, rows, cols, marks)
        if pair is not None:
            raise CertificateError(f"the pair of row {pair[0]} and column {pair[1]} {what}")

    def check_totals(self) -> float:
        """Point 6; the bound."""
        duals = total_of(self.row_dual), total_of(self.col_dual)
        has_base = self.is_free and not self.is_largest
        base = total_of(self.limits[self.row_to_col >= 0]) if has_base else 0
        bound = (duals[0] + duals[1] + base) * self.sign
        allowed = self.allowance * max(self.size, 1)
        if not abs(bound - self.result.objective) <= allowed:
            raise CertificateError(
                f"the objective is {self.result.objective}, but the duals prove {bound}"
            )
        if not abs(self.result.gap) <= allowed:
            raise CertificateError(f"the gap is {self.result.gap}, but the duals leave none")
        return bound


def _limits_of(cost_limit: Any, costs: Costs) -> Any:
    """The limit of each row, as an array where the costs are; 0 without one."""
    xp, nrows = costs.xp, costs.shape[0]
    if hasattr(cost_limit, "__len__"):
        limits = array_of(xp, cost_limit)
        if limits.shape != (nrows,) or limits.dtype.kind not in "iuf":
            raise CertificateError(
                f"the limits of the rows must be {nrows} numbers; "
                f"got {limits.dtype} of shape {limits.shape}"
            )
        return limits
    given = 0 if cost_limit is None else cost_limit
    return xp.full(nrows, given, np.int64 if isinstance(given, int) else np.float64)


def _largest(limits: Any) -> Any:
    """The greatest finite magnitude, as a number of Python."""
    number = float if limits.dtype.kind == "f" else int
    finite = limits[abs(limits) < math.inf]
    return number(abs(finite).max()) if finite.size else number(0)


def _tiles(costs: Costs, dtype: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Rows, columns and costs of all pairs, a tile at a time, in arrays that broadcast."""
    for tile in costs.tiles():
        rows, cols, values = costs.tile(tile)
        if dtype.kind == "O":
            rows, cols, values = (array_of(np, part) for part in (rows, cols, values))
            yield rows, cols, values.astype(np.int64).astype(object)
        else:
            yield rows, cols, values.astype(dtype)
