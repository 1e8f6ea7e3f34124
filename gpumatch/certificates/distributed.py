"""Check matchings and assignments that are divided among ranks, without gathering the matrix.

The same is checked as for those in one place (`gpumatch.certificates.matching`, and
`gpumatch.certificates.assignment`, which has the theorem). Each rank looks at the pairs of its own
rows. Three things travel: a pair to the rank that says it has the column, the cover's columns as
bits, and sums. A rank that finds a fault raises, and the communicator lets all raise the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from gpumatch.bipartite import BipartiteGraph
from gpumatch.certificates.assignment import CARDINALITIES, AssignmentCertificate
from gpumatch.certificates.base import (
    Certificate,
    CertificateError,
    check_cardinality,
    check_claim_of_size,
    check_edges,
    check_flag,
    check_mates,
    check_numbers,
    check_pair_costs,
    count_of,
    edge_tiles,
    python_number,
)
from gpumatch.certificates.gaps import OUTWARD, Proof, allowance_of, blur_of, check_objective
from gpumatch.certificates.limits import bars_of, limits_in_use, limits_of
from gpumatch.certificates.pairs import TurnedPairs, check_left_out, look_at_cover
from gpumatch.certificates.slacks import (
    Prices,
    Shortfalls,
    as_floats_up,
    most,
    nearest,
    sum_in_units,
    units_of,
)
from gpumatch.costs import Costs
from gpumatch.numeric.arrays import array_of, first_true

UNITS_BYTES = 320  # of an exact sum: 2**-1074 to 2**1024, and 2**62 numbers

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
    check_mates("row", array_of(np, result.row_to_col), graph.nrows, ncols)
    check_mates("column", array_of(np, result.col_to_row), len(result.cols), nrows)
    _check_pairs(result, col_starts, world)
    check_edges(graph, array_of(graph.xp, result.row_to_col), result.rows.start)
    if result.cover is None:
        raise CertificateError("the matching has no vertex cover: it is not proven")
    in_rows, in_cols = result.cover
    lengths = graph.nrows, len(result.cols)
    if any(
        marks.shape != (length,) or marks.dtype != bool
        for marks, length in zip(result.cover, lengths)
    ):
        raise CertificateError("the cover must have a mark for each of this rank's vertices")
    counts = np.diff(col_starts).tolist()
    bits = world.allgather(np.packbits(in_cols))
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


# -- assignments -----------------------------------------------------------------------------------


def verify_share_of_assignment(
    costs: Costs, result: Any, world: Ranks, *, optimal: bool = True
) -> AssignmentCertificate:
    """Check an assignment and its duals; `costs` are those of this rank's rows."""
    row_starts = _starts(result.rows, world)
    nrows, ncols = int(row_starts[-1]), costs.shape[1]
    if (len(result.rows), len(result.cols)) != costs.shape:
        raise CertificateError(
            f"the result is for {len(result.rows)} rows and {len(result.cols)} columns here; "
            f"the block has {costs.shape[0]} and {ncols}"
        )
    check_mates("row", array_of(np, result.row_to_col), costs.shape[0], ncols)
    check_mates("column", array_of(np, result.col_to_row), ncols, nrows)
    _check_one(result.col_to_row, "the mates of the columns", world)
    check_numbers("duals of the columns", array_of(np, result.col_dual), ncols)
    _check_one(result.col_dual, "the duals of the columns", world)
    claim = _Claim(costs, result, nrows, world)
    is_complete = claim.check_partners(optimal)
    claim.check_objective()
    claim.make_prices()
    is_complete &= claim.look_at_pairs(optimal)
    return claim.certificate(is_complete, optimal)


def _check_one(array: Any, what: str, world: Ranks) -> None:
    """Check that all ranks have the same array."""
    lengths = np.concatenate(world.allgather(np.array([array.size], np.int64)))
    if (lengths != array.size).any():
        raise CertificateError(f"{what} are not as many on all ranks")
    is_float = world.total(int(array.dtype.kind == "f"), "max")
    numbers = array.astype(np.float64 if is_float else np.int64)
    if (world.allreduce(numbers, "min") != world.allreduce(numbers, "max")).any():
        raise CertificateError(f"{what} differ among ranks")


class _Claim:
    """This rank's share, turned so that costs are minimised, and what the ranks have together.

    `gpumatch.certificates.assignment` has the theorem. A rank moves what the pairs of its own rows
    lack into these rows, or into the columns of its unmatched rows. Of these, all ranks take the
    largest. Sums are exact, and the same on all ranks; so all decide alike.
    """

    def __init__(self, costs: Costs, result: Any, nrows: int, world: Ranks) -> None:
        self.costs, self.result, self.world = costs, result, world
        self.sign = -1 if check_flag("maximize", result.maximize) else 1
        if (costs.low if self.sign > 0 else -costs.high) == -math.inf:
            raise CertificateError("an infinite cost asks for a pair instead of forbidding it")
        self.nrows, self.ncols = nrows, costs.shape[1]
        cardinality = check_cardinality(result.cardinality, CARDINALITIES)
        self.objective = python_number("the objective", result.objective)
        self.gap = python_number("the gap", result.gap)
        self.has_limit = result.cost_limit is not None
        limit = python_number("the limit", result.cost_limit) if self.has_limit else None
        self._check_same((self.sign, cardinality, limit, self.objective, self.gap))
        self.is_largest = cardinality == "maximum"
        self.is_free = not self.is_largest and (cardinality == "any" or self.has_limit)
        if self.is_free and self.has_limit and not abs(limit or 0) < math.inf:
            raise CertificateError("the limit must be finite")
        self.row_to_col = array_of(np, result.row_to_col).astype(np.int64)
        self.col_to_row = array_of(np, result.col_to_row).astype(np.int64)
        self.row_dual, self.col_dual = (
            check_numbers(f"duals of the {side}s", array_of(np, dual), length)
            for side, dual, length in (
                ("row", result.row_dual, costs.shape[0]),
                ("column", result.col_dual, self.ncols),
            )
        )
        self.limits = limits_of(limit, costs, self.sign)
        self.bars = bars_of(self.limits, costs.is_integer)
        self.pairs = TurnedPairs(costs, self.sign, self.bars if self.is_largest else None)
        is_whole = costs.is_integer and (
            not (self.is_free and self.has_limit) or self.limits.dtype.kind == "i"
        )
        self.is_whole = bool(world.total(int(is_whole), "min"))
        is_float = "f" in (self.row_dual.dtype.kind, self.col_dual.dtype.kind)
        self.has_float_duals = bool(world.total(int(is_float), "max"))
        self.rows = np.flatnonzero(self.row_to_col >= 0)
        self.cols = self.row_to_col[self.rows]
        self.size = world.total(int(self.rows.size))
        self.base: Any = None
        if self.is_free and self.has_limit:
            self.base = array_of(np, self.limits)[self.rows]
        self.in_rows, self.in_cols = np.zeros(costs.shape[0], bool), np.zeros(self.ncols, bool)

    def _check_same(self, said: tuple[Any, ...]) -> None:
        """Check that all ranks say the same."""
        own = np.frombuffer(repr(said).encode(), np.uint8)
        for other in self.world.allgather(own):
            if not np.array_equal(own, other):
                raise CertificateError("what is claimed differs among ranks")

    def _totals(self, *units: int) -> list[int]:
        """The exact sums of all ranks' numbers in units."""
        own = b"".join(number.to_bytes(UNITS_BYTES, "little", signed=True) for number in units)
        said = [part.tobytes() for part in self.world.allgather(np.frombuffer(own, np.uint8))]
        bounds = range(0, len(own), UNITS_BYTES)
        return [
            sum(int.from_bytes(part[b : b + UNITS_BYTES], "little", signed=True) for part in said)
            for b in bounds
        ]

    # -- what is there ---------------------------------------------------------------------------

    def check_partners(self, optimal: bool) -> bool:
        """The mates name each other and the pairs are allowed; whether they are all asked for."""
        result, first = self.result, self.result.rows.start
        cols = self.cols
        broken = first_true(self.col_to_row[cols] != self.rows + first)
        if broken is not None:
            row, col = int(self.rows[broken]) + first, int(cols[broken])
            raise CertificateError(
                f"row {row} is matched to column {col}, "
                f"which is matched to row {int(self.col_to_row[col])}"
            )
        named = int(np.count_nonzero(self.col_to_row >= 0))
        if named != self.size:
            raise CertificateError(f"{named} columns are matched, but {self.size} rows")
        xp = self.costs.xp
        rows, cols = array_of(xp, self.rows), array_of(xp, cols)
        stray = first_true(~self.costs.allows(rows, cols))
        if stray is None:
            paid = self.pairs.at(rows, cols)
            self.paid = array_of(np, paid)
            if self.is_largest and self.bars is not None:
                stray = first_true(paid > self.bars[rows])
        if stray is not None:
            row, col = int(self.rows[stray]) + first, int(self.cols[stray])
            raise CertificateError(f"row {row} is assigned to column {col}, which is forbidden")
        check_claim_of_size(result, self.size)
        if not self._has_cover(optimal):
            return False
        needed = self.world.total(int(np.count_nonzero(self.in_rows)))
        needed += int(np.count_nonzero(self.in_cols))
        if not self.is_free and self.size != needed:
            if optimal:
                raise CertificateError(
                    f"{self.size} pairs are assigned, not {needed}, "
                    + ("as the cover has vertices" if self.is_largest else "the smaller side")
                )
            return False
        return True

    def _has_cover(self, optimal: bool) -> bool:
        """Mark the rows and columns that every assignment which competes matches."""
        if self.is_free:
            return True
        if not self.is_largest:
            (self.in_rows if self.nrows <= self.ncols else self.in_cols)[:] = True
            return True
        has_cover = self.result.cover is not None
        if not self.world.total(int(has_cover), "min"):
            if optimal or has_cover:
                raise CertificateError("the assignment has no vertex cover: it is not proven")
            return False
        for side, marks, length in zip(("rows", "columns"), self.result.cover, self.costs.shape):
            if marks.shape != (length,) or marks.dtype != bool:
                raise CertificateError(f"the cover's {side} must be {length} bools")
        _check_one(self.result.cover[1].astype(np.uint8), "the cover's columns", self.world)
        self.in_rows, self.in_cols = self.result.cover
        return True

    def check_objective(self) -> None:
        """The pairs cost the objective."""
        self.cost, magnitudes = self._totals(sum_in_units(self.paid), sum_in_units(abs(self.paid)))
        check_objective(self.objective, self.cost * self.sign, self.is_whole, lambda: magnitudes)
        if hasattr(self.result, "pair_costs"):
            check_pair_costs(array_of(np, self.result.pair_costs), self.paid * self.sign)

    # -- what it proves --------------------------------------------------------------------------

    def make_prices(self) -> None:
        """The prices of the theorem before they are made fair."""
        xp = self.costs.xp
        self.row_price, self.col_price = (
            np.where(in_cover, dual * self.sign, np.minimum(dual * self.sign, 0))
            for dual, in_cover in ((self.row_dual, self.in_rows), (self.col_dual, self.in_cols))
        )
        rows = [array_of(xp, self.row_price)]
        if self.base is not None:
            rows.append(self.limits)
        self.prices = Prices(
            rows,
            [array_of(xp, self.col_price)],
            self.costs.largest,
            is_integer=self.costs.is_integer,
        )
        self.short = Shortfalls(self.costs.shape, self.prices.dtype)

    def look_at_pairs(self, optimal: bool) -> bool:
        """Make the prices fair; whether every allowed pair touches the cover."""
        xp, first = self.costs.xp, self.result.rows.start
        inside = array_of(xp, self.in_rows), array_of(xp, self.in_cols)
        is_matched = self.row_to_col >= 0
        unmatched = array_of(xp, ~is_matched), array_of(xp, self.col_to_row < 0)
        edges, is_covered = 0, True
        for rows, cols, costs, allowed in self.pairs.tiles():
            edges += costs.size if allowed is None else count_of(allowed)
            tile = rows, cols, costs, allowed
            if self.is_largest:
                allowed, is_touched = look_at_cover(tile, inside, is_required=optimal, first=first)
                is_covered &= is_touched
            elif optimal and self.base is not None:
                check_left_out(tile, unmatched, self.bars, first=first)
            self.short.add(is_matched, *self.prices.below(rows, cols, costs, allowed))
        self.edges = self.world.total(edges)
        return bool(self.world.total(int(is_covered), "min"))

    def certificate(self, is_complete: bool, optimal: bool) -> AssignmentCertificate:
        """The duals bound the objective."""
        world, of_ranks = self.world, self.short.lowered
        if not world.total(int(self.prices.is_exact), "min"):
            of_ranks[:] = [as_floats_up(part) for part in of_ranks]
        of_ranks[1] = world.allreduce(of_ranks[1], "max")
        is_finite = all(most(part) < math.inf for part in of_ranks)
        is_complete &= bool(world.total(int(is_finite), "min"))
        base = 0 if self.base is None else sum_in_units(self.base)
        given, price, lowered, base = self._totals(
            sum_in_units(self.row_dual) * self.sign,
            sum_in_units(self.row_price),
            sum_in_units(of_ranks[0]) if is_complete else 0,
            base,
        )
        price += sum_in_units(self.col_price)
        lowered += sum_in_units(of_ranks[1]) if is_complete else 0
        moved = given + sum_in_units(self.col_dual) * self.sign - price + lowered
        moved = moved if is_complete else 0
        bound = base + price - lowered if is_complete else None
        blur = 0.0 if bound is None else self._blur(nearest(self.cost - bound))
        proof = Proof.of(
            self.cost, None if bound is None else bound - units_of(blur), self.sign, self.is_whole
        )
        numbers = [self.paid] if self.base is None else [self.paid, self.base]
        largest = self._most(max(map(most, numbers)))
        dual = self._most(max(most(self.row_price[self.rows]), most(self.col_price[self.cols])))
        room = allowance_of(self.size, largest, dual)
        allowance = 0 if self.is_whole else room + blur * OUTWARD
        room = room if self.has_float_duals else 0
        if optimal and (proof.gap > allowance or moved > units_of(room)):
            self._raise_reason(room / max(self.size, 1))
            raise CertificateError(
                f"the objective is {self.objective}, but the duals prove {proof.bound}: the gap is "
                f"{proof.gap}"
            )
        proof.check_gap(self.gap, allowance, optimal, self._summed)
        return AssignmentCertificate(
            *("assignment", self.size, proof.bound, self.edges, self.objective),
            *(proof.gap, allowance),
        )

    def _blur(self, gap: float) -> float:
        """By how much the rounding of computed costs of all ranks may enlarge the gap."""
        rounding = self.costs.rounding
        share, pair = (self._most(part) for part in rounding[:2])
        if not (share or pair):
            return 0.0
        added = float(self.world.total(float(rounding.added)))
        limit = self._most(0.0 if self.base is None else most(self.limits))
        (paid,) = self._totals(sum_in_units(abs(self.paid)))
        n = min(self.nrows, self.ncols)
        return blur_of((share, pair, added), n, nearest(paid), limit, gap)

    def _summed(self) -> int:
        """The magnitudes of all numbers whose sum the gap is, in units; 0 if they are integers."""
        if self.is_whole:
            return 0
        numbers = [self.paid, self.row_price]
        if self.base is not None:
            limits = array_of(np, self.limits)
            lowered = self.short.lowered
            numbers.append(limits_in_use(limits, self.row_to_col, self.row_price, lowered))
        (own,) = self._totals(sum(sum_in_units(abs(part)) for part in numbers))
        return own + sum_in_units(abs(self.col_price))

    def _most(self, own: float) -> float:
        return float(self.world.total(float(own), "max"))

    def _raise_reason(self, room: float) -> None:
        """Raise what is wrong with duals of this rank, or hear what is wrong with another's."""
        for side, dual, price, mates in (
            ("row", self.row_dual, self.row_price, self.row_to_col),
            ("column", self.col_dual, self.col_price, self.col_to_row),
        ):
            above = first_true(dual * self.sign - price > room)
            loose = first_true((mates < 0) & (price < -room))
            if above is not None or loose is not None:
                at = above if above is not None else loose
                raise CertificateError(
                    f"the dual of {side} {at} of this rank is {dual[at]}, but must be "
                    + ("of the other sign" if above is not None else "0, because it is unmatched")
                )
        worst = self.short.worst
        if worst is not None and worst[0] > room:
            amount, row, col = worst
            row += self.result.rows.start
            raise CertificateError(
                f"the pair of row {row} and column {col} costs less than its duals"
                + (" and the limit" if self.base is not None else "")
                + f", by {amount}"
            )
        self.world.total(0)
