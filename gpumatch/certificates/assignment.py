"""Check that an assignment is optimal, by code that algorithms do not share.

`gpumatch.problems.cardinality` states what the duals of a result are. With the signs turned for
costs to be maximised, L_i the limit of a row (0 if there is none) and X the pairs, these are
checked:

1. the mate arrays name each other, and the pairs are theirs,
2. every pair is allowed, and the objective is what the pairs cost,
3. the pairs are as many as asked for: all of the smaller side, or those of a vertex cover that
   every allowed pair touches, or any number,
4. no assignment that competes is much cheaper, by the theorem,
5. with a limit, no row and column are both unmatched whose pair is allowed and costs at most the
   limit. A pair at the limit changes nothing in 4, but is to be made, so that the pairs do not
   depend on the algorithm. For "maximum" the cover shows that there is no such pair.

Theorem. Let u and v be any numbers. Where the side is not full and the vertex not in the cover, put
min(u_i, 0) and min(v_j, 0) in their place. Make them fair (`gpumatch.certificates.slacks`) for the
costs c_ij - L_i of all allowed pairs but those inside the cover. L_i counts only if rows may go
without a column at that price. Let B be their sum. Then no assignment X' that competes has

    sum of (c - L) over X'  <  B,

and that of X is at most the gap, sum of (c - L) over X  -  B, above the best.

Proof. "full", with no more rows than columns: X' matches all rows, so the sum over X' is at least
all u_i and the v_j of its columns. The others are at most 0. The same holds with sides changed.
"any", and with a limit: the sum over X' is at least the prices of its vertices, and all others are
at most 0. "maximum": k pairs and a cover of k vertices that touches every allowed pair. Each pair
of X', which has k pairs too, has one vertex of the cover for itself, so X' matches the cover, and
has no pair inside it. All other prices are at most 0. ∎

A violation is moved into the row if that is matched, else into the column. So rounding lowers no
more than two prices for each pair. Nothing here is rounded but e_ij, which is rounded up, and at
the end bound and gap, both outward: they are true as numbers.

`gpumatch.certificates.gaps` states which gaps are accepted as optimal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpumatch.certificates.alike import Alike
from gpumatch.certificates.base import (
    Certificate,
    CertificateError,
    ClaimedAssignment,
    check_cardinality,
    check_claim_of_size,
    check_flag,
    check_mates,
    check_numbers,
    check_pair_costs,
    check_partners,
    count_of,
    cover_of,
    marks_of,
    python_number,
)
from gpumatch.certificates.gaps import OUTWARD, Proof, allowance_of, blur_of, check_objective
from gpumatch.certificates.limits import bars_of, left_out, limits_in_use, limits_of
from gpumatch.certificates.pairs import TurnedPairs, check_left_out, look_at_cover
from gpumatch.certificates.slacks import (
    Prices,
    Shortfalls,
    most,
    nearest,
    sum_in_units,
    units_of,
)
from gpumatch.costs import Costs, as_costs
from gpumatch.numeric.arrays import any_true, array_of, first_true

CARDINALITIES = ("full", "maximum", "any")


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
        What the duals prove: no assignment has a better objective. With ``"any"`` or a limit, what
        competes is the objective less the limit for each pair, and the limits of these pairs are
        added here. Rounded outward: -inf, or inf for costs to be maximised, if nothing is proven.
    edges : int
        Allowed pairs that were checked.
    objective : int or float
        Total cost of the pairs.
    gap : int or float
        How far that is from the bound at most, rounded up.
    allowance : int or float
        The gap up to which floats are accepted as optimal; 0 for integers.
    """

    objective: float
    gap: float
    allowance: float

    def __str__(self) -> str:
        is_optimal = self.gap <= self.allowance
        return (
            f"{'optimal' if is_optimal else 'not proven optimal'}: {self.size} pairs of total "
            f"{self.objective}, and dual prices of total {self.bound}, checked on {self.edges} "
            "pairs" + _in_words(self.gap, self.allowance)
        )


def _in_words(gap: float, allowance: float) -> str:
    if not gap and not allowance:
        return "; the gap is 0"
    return f"; the gap is at most {gap:.3g}, with an allowance of {allowance:.3g}"


def verify_assignment(
    C: Any, result: ClaimedAssignment, *, optimal: bool = True
) -> AssignmentCertificate:
    """Check an assignment and the duals that bound it; see `gpumatch.verify`.

    O(number of pairs) on the device that holds the costs, in tiles of 2**20 pairs (2**22 on a GPU).
    Of many points in up to 6 dimensions, boxes leave out pairs that cost more than their prices
    (`gpumatch.certificates.boxes`), and equal points of one price are looked at once
    (`gpumatch.certificates.alike`).
    """
    costs = as_costs(C, summed=False)  # sums of floats are exact here, and cannot overflow
    if costs.is_integer:
        as_costs(costs)
    claim = _Claim(costs, result)
    claim.check_pairs()
    claim.check_objective()
    is_complete = claim.check_size(optimal)
    claim.check_the_rest()
    claim.make_prices()
    is_complete &= claim.look_at_pairs(optimal)
    return claim.certificate(is_complete, optimal)


class _Claim:
    """A result and its costs, both turned so that costs are minimised."""

    def __init__(self, costs: Costs, result: ClaimedAssignment) -> None:
        xp, (nrows, ncols) = costs.xp, costs.shape
        self.costs, self.result = costs, result
        self.sign = -1 if check_flag("maximize", result.maximize) else 1
        if (costs.low if self.sign > 0 else -costs.high) == -math.inf:
            raise CertificateError("an infinite cost asks for a pair instead of forbidding it")
        cardinality = check_cardinality(result.cardinality, CARDINALITIES)
        has_limit = result.cost_limit is not None
        self.is_largest = cardinality == "maximum"
        self.is_free = not self.is_largest and (cardinality == "any" or has_limit)
        self.row_to_col = check_mates("row", array_of(xp, result.row_to_col), nrows, ncols)
        self.col_to_row = check_mates("column", array_of(xp, result.col_to_row), ncols, nrows)
        self.row_dual, self.col_dual = (
            check_numbers(f"duals of the {side}s", array_of(xp, dual), length)
            for side, dual, length in (
                ("row", result.row_dual, nrows),
                ("column", result.col_dual, ncols),
            )
        )
        self.has_float_duals = "f" in (self.row_dual.dtype.kind, self.col_dual.dtype.kind)
        self.limits = limits_of(result.cost_limit, costs, self.sign)
        self.bars = bars_of(self.limits, costs.is_integer)
        self.pairs = TurnedPairs(costs, self.sign, self.bars if self.is_largest else None)
        if self.is_free and has_limit and any_true(~(abs(self.limits) < math.inf)):
            raise CertificateError("the limits must be finite")
        self.is_whole = costs.is_integer and (
            not (self.is_free and has_limit) or self.limits.dtype.kind == "i"
        )

    @property
    def base(self) -> Any:
        """What each row may go without a column at; None if it may not, or for nothing."""
        return self.limits if self.is_free else None

    # -- what is there ---------------------------------------------------------------------------

    def check_pairs(self) -> None:
        """Point 1."""
        check_partners("row", self.row_to_col, self.col_to_row)
        check_partners("column", self.col_to_row, self.row_to_col)
        self.rows = (self.row_to_col >= 0).nonzero()[0]
        self.cols = self.row_to_col[self.rows]
        self.size = int(self.rows.size)
        for name, expected in (("row_ind", self.rows), ("col_ind", self.cols)):
            given = array_of(self.costs.xp, getattr(self.result, name))
            is_same = given.shape == expected.shape and given.dtype.kind in "iu"
            if not is_same or any_true(given != expected):
                raise CertificateError(f"{name} does not agree with row_to_col")

    def check_objective(self) -> None:
        """Point 2."""
        rows, cols = self.rows, self.cols
        stray = first_true(~self.costs.allows(rows, cols))
        if stray is None:
            self.paid = self.pairs.at(rows, cols)
            if self.is_largest and self.bars is not None:
                stray = first_true(self.paid > self.bars[rows])
        if stray is not None:
            raise CertificateError(
                f"row {int(rows[stray])} is assigned to column {int(cols[stray])}, "
                "but that pair is forbidden"
            )
        self.objective = python_number("the objective", self.result.objective)
        self.cost = sum_in_units(self.paid)
        total, paid = self.cost * self.sign, self.paid
        check_objective(self.objective, total, self.is_whole, lambda: sum_in_units(abs(paid)))

    def check_size(self, optimal: bool) -> bool:
        """Point 3, except for the pairs that a cover must touch; whether it holds."""
        nrows, ncols = self.costs.shape
        xp = self.costs.xp
        self.in_rows, self.in_cols = xp.zeros(nrows, bool), xp.zeros(ncols, bool)
        if self.is_free:
            return True
        if self.is_largest:
            try:
                rows, cols = (array_of(xp, part) for part in cover_of(self.result))
            except ValueError as exc:
                if not optimal:
                    return False
                raise CertificateError(str(exc)) from exc
            self.in_rows = marks_of(xp, rows, nrows, "row")
            self.in_cols = marks_of(xp, cols, ncols, "column")
        else:
            (self.in_rows if nrows <= ncols else self.in_cols)[:] = True
        needed = count_of(self.in_rows) + count_of(self.in_cols)
        if self.size != needed and optimal:
            raise CertificateError(
                f"{self.size} pairs are assigned, not {needed}, "
                + ("as the cover has vertices" if self.is_largest else "the smaller side")
            )
        return self.size == needed

    def check_the_rest(self) -> None:
        """What else a result may say of its pairs."""
        check_claim_of_size(self.result, self.size)
        if hasattr(self.result, "pair_costs"):
            given = array_of(self.costs.xp, self.result.pair_costs)
            check_pair_costs(given, self.paid * self.sign)

    # -- what it proves --------------------------------------------------------------------------

    def make_prices(self) -> None:
        """The prices of the theorem before they are made fair."""
        xp = self.costs.xp
        self.row_price, self.col_price = (
            xp.where(in_cover, dual * self.sign, xp.minimum(dual * self.sign, 0))
            for dual, in_cover in (
                (self.row_dual, self.in_rows),
                (self.col_dual, self.in_cols),
            )
        )
        rows = [self.row_price] if self.base is None else [self.row_price, self.base]
        self.prices = Prices(
            rows, [self.col_price], self.costs.largest, is_integer=self.costs.is_integer
        )
        self.short = Shortfalls(self.costs.shape, self.prices.dtype)

    def look_at_pairs(self, optimal: bool) -> bool:
        """Make the prices fair; whether every allowed pair touches the cover."""
        self.edges, is_covered = 0, True
        is_matched = array_of(np, self.row_to_col) >= 0
        unmatched = self.row_to_col < 0, self.col_to_row < 0
        has_boxes = self.pairs.have_boxes and (not self.is_largest or self.bars is not None)
        alike = self._alike() if has_boxes else None
        tiles = self.pairs.tiles()
        if alike is not None:
            firsts = tuple(side.first for side in alike)
            tiles = self.pairs.near_tiles(firsts, *self.prices.above)
        for rows, cols, costs, allowed in tiles:
            if alike is None:
                self.edges += costs.size if allowed is None else count_of(allowed)
            elif allowed is not None:
                self.edges += int((alike[0].sizes[rows] * alike[1].sizes[cols])[allowed].sum())
            if self.is_largest:
                tile, inside = (rows, cols, costs, allowed), (self.in_rows, self.in_cols)
                allowed, is_touched = look_at_cover(tile, inside, is_required=optimal)
                is_covered &= is_touched
            if optimal and self.base is not None:
                check_left_out((rows, cols, costs, allowed), unmatched, self.bars)
            self.short.add(is_matched, *self.prices.below(rows, cols, costs, allowed))
        if alike is not None:
            self.short.share(side.stand_in for side in alike)
        if has_boxes and not self.is_largest:
            self.edges = self.costs.nnz
            if optimal:
                self._check_left_out_by_boxes()
        return is_covered

    def _alike(self) -> tuple[Alike, Alike]:
        """Rows, and columns, that have equal points and no less in common of what is looked at."""
        rows = [self.row_price, self.row_to_col >= 0, self.in_rows]
        rows += [part for part in (self.base, self.bars) if part is not None]
        points = self.pairs.numbers_of_points()
        return Alike.of(*points[0], *rows), Alike.of(*points[1], self.col_price, self.in_cols)

    def _check_left_out_by_boxes(self) -> None:
        """Point 5, for all pairs of unmatched vertices, which the prices may leave out."""
        if self.base is None:
            return
        rows, cols = ((mates < 0).nonzero()[0] for mates in (self.row_to_col, self.col_to_row))
        points = self.pairs.numbers_of_points()
        rows = rows[Alike.of(*(part[rows] for part in (*points[0], self.bars))).first]
        cols = cols[Alike.of(*(part[cols] for part in points[1])).first]
        near = self.pairs.near(rows, cols, self.bars[rows], self.costs.xp.zeros(cols.size))
        for own, others, costs in near:
            stray = first_true(costs <= self.bars[rows[own]])
            if stray is not None:
                raise CertificateError(left_out(int(rows[own[stray]]), int(cols[others[stray]])))

    def certificate(self, is_complete: bool, optimal: bool) -> AssignmentCertificate:
        """Point 4."""
        base = 0 if self.base is None else sum_in_units(self.base[self.rows])
        bound, moved, blur = None, 0, 0.0
        short = self.short
        if is_complete and all(most(part) < math.inf for part in short.lowered):
            lowered = 0 if short.worst is None else sum(map(sum_in_units, short.lowered))
            bound = base + sum_in_units(self.row_price) + sum_in_units(self.col_price) - lowered
            moved = lowered + self._cut_off()
            limit = 0.0 if self.base is None else float(most(self.base))
            blur = blur_of(
                self.costs.rounding,
                min(self.costs.shape),
                nearest(sum_in_units(abs(self.paid))),
                limit,
                nearest(self.cost - bound),
            )
            bound -= units_of(blur)
        proof = Proof.of(self.cost, bound, self.sign, self.is_whole)
        largest = max(most(self.paid), 0 if self.base is None else most(self.base[self.rows]))
        dual = max(most(self.row_price[self.rows]), most(self.col_price[self.cols]))
        rounding = allowance_of(self.size, largest, dual)
        allowance = 0 if self.is_whole else rounding + blur * OUTWARD
        room = rounding if self.has_float_duals else 0
        if optimal and (proof.gap > allowance or moved > units_of(room)):
            raise CertificateError(self._reason(proof, room))
        proof.check_gap(self.result.gap, allowance, optimal, self._summed)
        return AssignmentCertificate(
            "assignment",
            self.size,
            proof.bound,
            self.edges,
            self.objective,
            proof.gap,
            allowance,
        )

    def _summed(self) -> int:
        """The magnitudes of all numbers whose sum the gap is, in units; 0 if they are integers."""
        if self.is_whole:
            return 0
        numbers = [self.paid, self.row_price, self.col_price]
        if self.base is not None:
            lowered = self.short.lowered
            numbers.append(limits_in_use(self.base, self.row_to_col, self.row_price, lowered))
        return sum(sum_in_units(abs(part)) for part in numbers)

    def _cut_off(self) -> int:
        """By how much duals were above 0 that must not be, in units."""
        parts = (
            dual * self.sign - price
            for dual, price in ((self.row_dual, self.row_price), (self.col_dual, self.col_price))
        )
        return sum(sum_in_units(part) for part in parts if any_true(part > 0))

    def _reason(self, proof: Proof, room: float) -> str:
        """What keeps the duals from proving more; all together may be lowered by `room`."""
        room /= max(self.size, 1)
        for side, dual, price, mates in (
            ("row", self.row_dual, self.row_price, self.row_to_col),
            ("column", self.col_dual, self.col_price, self.col_to_row),
        ):
            above = first_true(dual * self.sign - price > room)
            if above is not None:
                return (
                    f"the dual of {side} {above} is {dual[above]}, "
                    f"but must be {'at least' if self.sign < 0 else 'at most'} 0"
                )
            loose = first_true((mates < 0) & (price < -room))
            if loose is not None:
                return (
                    f"the dual of {side} {loose} is {dual[loose]}, "
                    f"but must be 0, because the {side} is unmatched"
                )
        worst = self.short.worst
        if worst is not None and worst[0] > room:
            amount, row, col = worst
            return (
                f"the pair of row {row} and column {col} costs less than its duals"
                + (" and the limit" if self.base is not None else "")
                + f", by {amount}"
            )
        return (
            f"the objective is {self.objective}, but the duals prove {proof.bound}: the gap is "
            f"{proof.gap}"
        )
