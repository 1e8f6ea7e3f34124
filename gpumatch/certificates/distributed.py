"""Check matchings and assignments that are divided among ranks, without gathering the matrix.

The same is checked as for those in one place (`gpumatch.certificates.matching`, and
`gpumatch.certificates.assignment`), by code of its own. Each rank looks at the pairs of its own
rows. Three things travel: a pair to the rank that says it has the column, the cover's columns as
bits, and sums. A rank that finds a fault raises, and the communicator lets all raise the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from gpumatch.arrays import array_of, first_true
from gpumatch.bipartite import BipartiteGraph
from gpumatch.certificates.assignment import ULPS, AssignmentCertificate
from gpumatch.certificates.base import (
    Certificate,
    CertificateError,
    check_mates,
    edge_tiles,
    total_of,
)
from gpumatch.costs import Costs

__all__ = ["Ranks", "verify_share_of_assignment", "verify_share_of_matching"]


class Ranks(Protocol):
    """What a checker needs of the communicator."""

    rank: int
    size: int

    def allgather(self, array: Any) -> list[Any]: ...
    def allreduce(self, array: Any, how: str) -> Any: ...
    def exchange(self, parts: Sequence[Any]) -> list[Any]: ...
    def total(self, number: Any, how: str = "sum") -> Any: ...


def verify_share_of_matching(graph: BipartiteGraph, result: Any, world: Ranks) -> Certificate:
    """Check a matching and its cover; `graph` has this rank's rows."""
    row_starts = _starts(result.rows, world)
    col_starts = _starts(result.cols, world)
    nrows, ncols = int(row_starts[-1]), int(col_starts[-1])
    if (len(result.rows), ncols) != graph.shape:
        raise CertificateError(
            f"the result is for {len(result.rows)} rows and {ncols} columns here; "
            f"the block has {graph.nrows} and {graph.ncols}"
        )
    check_mates("row", result.row_to_col, graph.nrows, ncols)
    check_mates("column", result.col_to_row, len(result.cols), nrows)
    _check_pairs(result, col_starts, world)
    _check_edges(graph, result.row_to_col, result.rows.start)
    if result.cover is None:
        raise CertificateError("the matching has no vertex cover: it is not proven")
    in_rows, in_cols = result.cover
    if in_rows.shape != (graph.nrows,) or in_cols.shape != (len(result.cols),):
        raise CertificateError("the cover must have a mark for each of this rank's vertices")
    counts = np.diff(col_starts).tolist()
    bits = world.allgather(np.packbits(in_cols.astype(bool)))
    every = np.concatenate([np.unpackbits(b, count=n) for b, n in zip(bits, counts)]).astype(bool)
    row_marks, col_marks = array_of(graph.xp, in_rows), array_of(graph.xp, every)
    for rows, cols in edge_tiles(graph):
        bare = first_true(~(row_marks[rows] | col_marks[cols]))
        if bare is not None:
            raise CertificateError(
                f"the cover misses the edge of row {result.rows.start + int(rows[bare])} and "
                f"column {int(cols[bare])}"
            )
    own = np.array(
        [
            np.count_nonzero(result.row_to_col >= 0),
            np.count_nonzero(in_rows) + np.count_nonzero(in_cols),
            graph.nnz,
        ],
        np.int64,
    )
    size, bound, edges = world.allreduce(own, "sum").tolist()
    if size != bound or size != result.size:
        raise CertificateError(
            f"the matching has {size} edges and says {result.size}, "
            f"but the cover has {bound} vertices: no proof"
        )
    return Certificate("matching", size, bound, edges)


def _starts(own: range, world: Ranks) -> np.ndarray:
    """Where the ranges of all ranks begin, which follow each other, and where the last ends."""
    bounds = np.concatenate(world.allgather(np.array([[own.start, own.stop]], np.int64)))
    if bounds[0, 0] != 0 or (bounds[1:, 0] != bounds[:-1, 1]).any():
        raise CertificateError("the ranges of the ranks do not follow each other")
    return np.append(bounds[:, 0], bounds[-1, 1])


def _check_pairs(result: Any, col_starts: np.ndarray, world: Ranks) -> None:
    """Check that the rows' mates and the columns' name each other, wherever these are."""
    rows = np.flatnonzero(result.row_to_col >= 0)
    cols = result.row_to_col[rows].astype(np.int64)
    pairs = np.column_stack([rows + result.rows.start, cols])
    owners = np.searchsorted(col_starts, cols, side="right") - 1
    heard = np.concatenate(world.exchange([pairs[owners == r] for r in range(world.size)]))
    own = heard[:, 1] - result.cols.start
    broken = first_true(result.col_to_row[own] != heard[:, 0])
    if broken is not None:
        row, col = heard[broken].tolist()
        raise CertificateError(
            f"row {row} is matched to column {col}, "
            f"which is matched to row {int(result.col_to_row[own[broken]])}"
        )
    matched = int(np.count_nonzero(result.col_to_row >= 0))
    if matched != len(heard):
        raise CertificateError(
            f"{matched} columns of this rank are matched, but {len(heard)} rows are matched to them"
        )


def _check_edges(graph: BipartiteGraph, row_to_col: np.ndarray, first: int) -> None:
    mates = array_of(graph.xp, row_to_col)
    is_paired = mates < 0
    for rows, cols in edge_tiles(graph):
        is_paired[rows[mates[rows] == cols]] = True
    row = first_true(~is_paired)
    if row is not None:
        raise CertificateError(
            f"row {first + row} is matched to column {int(row_to_col[row])}, but that is no edge"
        )


# -- assignments -----------------------------------------------------------------------------------


def verify_share_of_assignment(costs: Costs, result: Any, world: Ranks) -> AssignmentCertificate:
    """Check an assignment and its duals; `costs` are those of this rank's rows."""
    row_starts = _starts(result.rows, world)
    nrows, ncols = int(row_starts[-1]), costs.shape[1]
    if (len(result.rows), len(result.cols)) != costs.shape:
        raise CertificateError(
            f"the result is for {len(result.rows)} rows and {len(result.cols)} columns here; "
            f"the block has {costs.shape[0]} and {ncols}"
        )
    check_mates("row", result.row_to_col, costs.shape[0], ncols)
    check_mates("column", result.col_to_row, ncols, nrows)
    _check_one(result.col_to_row, "the mates of the columns", world)
    _check_one(result.col_dual, "the duals of the columns", world)
    claim = _Claim(costs, result, nrows, world)
    claim.check_partners()
    claim.check_signs()
    edges = world.total(claim.check_edges())
    return AssignmentCertificate(
        "assignment", claim.size, claim.check_totals(), edges, result.objective
    )


def _check_one(array: Any, what: str, world: Ranks) -> None:
    """Check that all ranks have the same array."""
    lengths = np.concatenate(world.allgather(np.array([array.size], np.int64)))
    if (lengths != array.size).any():
        raise CertificateError(f"{what} are not as many on all ranks")
    if (world.allreduce(array, "min") != world.allreduce(array, "max")).any():
        raise CertificateError(f"{what} differ among ranks")


class _Claim:
    """This rank's share, turned so that costs are minimised, and what the ranks have together."""

    def __init__(self, costs: Costs, result: Any, nrows: int, world: Ranks) -> None:
        self.costs, self.result, self.world = costs, result, world
        self.sign = -1 if result.maximize else 1
        self.nrows, self.ncols = nrows, costs.shape[1]
        self.is_largest = result.cardinality == "maximum"
        self.is_free = not self.is_largest and (
            result.cardinality == "any" or result.cost_limit is not None
        )
        self.in_rows, self.in_cols = self._cover()
        self.limit = (0 if result.cost_limit is None else result.cost_limit) * self.sign
        duals = result.row_dual, result.col_dual
        is_float = not (costs.is_integer and isinstance(self.limit, int))
        is_float |= any(dual.dtype.kind == "f" for dual in duals)
        self.exact = not world.total(int(is_float), "max")
        number: Any = np.int64 if self.exact else np.float64
        largest = max(world.total(float(costs.largest), "max"), abs(self.limit))
        most = 4 * (min(nrows, self.ncols) + 1) * largest
        for side, dual in zip(("row", "column"), duals):
            stray = first_true(~((dual >= -most) & (dual <= most)))
            if stray is not None:
                raise CertificateError(
                    f"the dual of {side} {stray} of this rank is {dual[stray]}: "
                    f"no optimal assignment needs one beyond {most}"
                )
        self.row_dual, self.col_dual = (dual.astype(number) * self.sign for dual in duals)
        own = max([float(abs(d).max()) for d in (self.row_dual, self.col_dual) if d.size] or [0.0])
        largest = max(largest, world.total(own, "max"))
        self.allowance = 0 if self.exact else ULPS * math.ulp(1.0) * largest
        self.rows = np.flatnonzero(result.row_to_col >= 0)
        self.size = world.total(self.rows.size)

    def _cover(self) -> tuple[np.ndarray, np.ndarray]:
        """Which rows and columns may have a dual of any sign: those that any optimum matches."""
        lengths = self.costs.shape
        if self.is_largest:
            if self.result.cover is None:
                raise CertificateError("the assignment has no vertex cover: it is not proven")
            for side, marks, length in zip(("rows", "columns"), self.result.cover, lengths):
                if marks.shape != (length,) or marks.dtype != bool:
                    raise CertificateError(f"the cover's {side} must be {length} bools")
            _check_one(self.result.cover[1].astype(np.uint8), "the cover's columns", self.world)
            return self.result.cover
        marks = (self.nrows <= self.ncols, self.nrows > self.ncols)
        rows, cols = (
            np.full(length, mark and not self.is_free) for length, mark in zip(lengths, marks)
        )
        return rows, cols

    def _is_within(self, values: Any) -> Any:
        """Which costs, to be minimised, a pair may have."""
        if self.is_largest and self.result.cost_limit is not None:
            return values <= self.limit
        return values < math.inf

    def check_partners(self) -> None:
        """The mates name each other, the pairs are allowed, and as many as asked for."""
        result, first = self.result, self.result.rows.start
        cols = result.row_to_col[self.rows]
        broken = first_true(result.col_to_row[cols] != self.rows + first)
        if broken is not None:
            row, col = int(self.rows[broken]) + first, int(cols[broken])
            raise CertificateError(
                f"row {row} is matched to column {col}, "
                f"which is matched to row {int(result.col_to_row[col])}"
            )
        named = int(np.count_nonzero(result.col_to_row >= 0))
        if named != self.size:
            raise CertificateError(f"{named} columns are matched, but {self.size} rows")
        allowed = array_of(np, self.costs.allows(self.rows, cols))
        paid = array_of(np, self.costs.at(self.rows[allowed], cols[allowed])) * self.sign
        allowed[allowed] = self._is_within(paid)
        stray = first_true(~allowed)
        if stray is not None:
            row, col = int(self.rows[stray]) + first, int(cols[stray])
            raise CertificateError(f"row {row} is assigned to column {col}, which is forbidden")
        needed = self.world.total(int(np.count_nonzero(self.in_rows)))
        needed += int(np.count_nonzero(self.in_cols))
        if not self.is_free and self.size != needed:
            raise CertificateError(
                f"{self.size} pairs are assigned, not {needed}, "
                + ("as the cover has vertices" if self.is_largest else "the smaller side")
            )

    def check_signs(self) -> None:
        """Duals are at most 0, and 0 for unmatched vertices; those of the cover may be any."""
        for side, dual, mates, in_cover in (
            ("row", self.row_dual, self.result.row_to_col, self.in_rows),
            ("column", self.col_dual, self.result.col_to_row, self.in_cols),
        ):
            above = first_true(~in_cover & (dual > self.allowance))
            loose = first_true((mates < 0) & (abs(dual) > self.allowance))
            if above is not None or loose is not None:
                at = above if above is not None else loose
                raise CertificateError(
                    f"the dual of {side} {at} of this rank is {dual[at] * self.sign}, but must be "
                    + ("of the other sign" if above is not None else "0, because it is unmatched")
                )

    def check_edges(self) -> int:
        """No pair costs less than its duals and the limit; the number of allowed pairs.

        A cover of the largest assignments touches every pair, and those inside it may cost less.
        """
        xp = self.costs.xp
        count = xp.zeros(1, np.int64)
        base = self.limit if self.is_free else 0
        row_dual = array_of(xp, self.row_dual)
        price = array_of(xp, self.col_dual + (base - self.allowance))
        in_rows, in_cols = array_of(xp, self.in_rows), array_of(xp, self.in_cols)
        for tile in self.costs.tiles():
            rows, cols, values = self.costs.tile(tile)
            values = values.astype(row_dual.dtype) * self.sign
            allowed = self._is_within(values)
            count += xp.count_nonzero(allowed)
            short = values - row_dual[rows] < price[cols]
            text = "costs less than its duals" + (" and the limit" if base else "")
            if self.is_largest:
                of_row, of_col = in_rows[rows], in_cols[cols]
                self._report(rows, cols, allowed & ~(of_row | of_col), "is not in the cover")
                short &= ~(of_row & of_col)
            self._report(rows, cols, allowed & short, text)
        return int(count[0])

    def _report(self, rows: Any, cols: Any, marks: Any, what: str) -> None:
        """Raise an error about the first pair that is marked."""
        at = first_true(marks.ravel())
        if at is not None:
            whole = (self.costs.xp.broadcast_to(part, marks.shape).ravel() for part in (rows, cols))
            row, col = (int(numbers[at]) for numbers in whole)
            raise CertificateError(
                f"the pair of row {self.result.rows.start + row} and column {col} {what}"
            )

    def check_totals(self) -> float:
        """The pairs cost the objective, and the duals prove it; the bound."""
        cols = self.result.row_to_col[self.rows]
        paid = self._sum(array_of(np, self.costs.at(self.rows, cols)))
        allowed = self.allowance * max(self.size, 1)
        objective = self.result.objective
        if not abs(paid - objective) <= allowed:
            raise CertificateError(
                f"the pairs cost {paid} in all, but the objective is {objective}"
            )
        base = self.limit * self.size if self.is_free else 0
        bound = self._sum(self.row_dual) + total_of(self.col_dual) + base
        bound *= self.sign
        if not abs(bound - objective) <= allowed or not abs(self.result.gap) <= allowed:
            raise CertificateError(
                f"the objective is {objective}, but the duals prove {bound}, "
                f"and the gap is said to be {self.result.gap}"
            )
        return bound

    def _sum(self, own: Any) -> Any:
        """The sum of all ranks' numbers."""
        return self.world.total(total_of(own.astype(self.row_dual.dtype)))
