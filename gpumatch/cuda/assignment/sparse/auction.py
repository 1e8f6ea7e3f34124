"""Auctions for sparse costs, whose bids are the launches of `prices.cu`.

`hold_auctions` finds the duals of the columns by auctions with falling epsilon. `bid_exactly`
lowers them by bids without an epsilon.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import cupy as cp
import numpy as np

from gpumatch.contracts import Control
from gpumatch.cuda import memory
from gpumatch.cuda.assignment.sparse.offers import Units, owners, unmatched_rows
from gpumatch.cuda.assignment.sparse.problem import Problem, Rows
from gpumatch.cuda.assignment.sparse.tuning import FINEST, Tuning
from gpumatch.cuda.kernels import BLOCK, blocks_for

__all__ = ["Auctions", "bid_exactly", "hold_auctions"]


def hold_auctions(problem: Problem, control: Control) -> None:
    """Find the duals of the columns by auctions with falling epsilon."""
    nrows, ncols = problem.full.shape
    problem.narrow_span()
    units = _units_of(problem)
    if units.of_one == 0:
        return  # all costs are equal, or so close that the unit would underflow
    auctions = Auctions(problem, units, cp.zeros(ncols, np.uint64))
    for epsilon, end in zip(units.epsilons(), _ends(nrows, problem.rows.lanes, problem.tuning)):
        if auctions.are_wars:
            end = end._replace(longest=problem.tuning.chain_of_war)
        auctions.hold(epsilon, end, control)
        control.phase(found=0, matched=0, step="auction", epsilon=epsilon / units.of_one)
        cp.cuda.get_current_stream().synchronize()
        if control.tick(0):
            break
    problem.forget_transposed()
    auctions.write_prices()
    # Early auctions move all prices far from 0, where the trees' sums would lose digits. Prices are
    # multiples of a unit, so this is exact.
    problem.col_dual -= problem.col_dual.max()


class _End(NamedTuple):
    """The limits of an auction.

    Attributes
    ----------
    unmatched : int
        The number of unmatched rows at which it ends.
    longest : int
        The most bids of a group before it leaves its row unmatched.
    launches : int
        The most launches. In each, the unmatched rows bid again.
    """

    unmatched: int
    longest: int
    launches: int = 1


def _ends(nrows: int, lanes: int, tuning: Tuning) -> Iterator[_End]:
    """Yield the limits of all auctions, in order.

    The first auction moves rows far, because its epsilon is large: from regions of too many rows to
    regions of too many columns. The paths of the rows that it leaves unmatched are long, and trees
    scan all rows between. So the first auction ends with fewer unmatched rows than the others if
    rows are long.
    """
    least, most = tuning.unmatched
    unmatched = min(max(nrows >> 10, least), most, nrows // 4)
    by_first = min(unmatched, tuning.unmatched_by_first // lanes)
    yield _End(by_first, tuning.longest_chain, max(nrows // tuning.rows_a_launch, 1))
    yield from itertools.repeat(_End(unmatched, tuning.longest_chain))


def bid_exactly(problem: Problem, bids: int) -> cp.ndarray:
    """Lower the duals of the columns by bids without an epsilon, so that pairs stay tight.

    Unmatched rows bid, and so do rows that lose their columns. Returns the column of each row at
    the end.
    """
    units = _units_of(problem)
    if units.of_one == 0:
        return problem.mates[0]
    auctions = Auctions(problem, units, cp.empty(problem.full.shape[1], np.uint64))
    auctions.bid_exactly(bids)
    auctions.write_prices()
    return auctions.columns_of_rows()


def _units_of(problem: Problem) -> Units:
    full = problem.full
    is_integer = full.weights.dtype.kind == "i"
    return Units(problem.span, full.shape[0], finest=FINEST, is_integer=is_integer)


class _Side(NamedTuple):
    """The side of a problem that bids: the rows, or the columns as rows of the transposed costs.

    Attributes
    ----------
    rows : Rows
    offers : uint64 array
        The offers for the vertices of the other side.
    bits : int
        The bits of the number of a bidder in an offer.
    """

    rows: Rows
    offers: cp.ndarray
    bits: int


class Auctions:
    """Auctions for the columns of a problem, from given offers."""

    def __init__(self, problem: Problem, units: Units, offers: cp.ndarray) -> None:
        self.problem, self.units, self.offers = problem, units, offers
        self.by_column = (blocks_for(offers.size),), (BLOCK,)
        self.goes_on = True  # False once levels have no room in offers, or there is no memory
        self.are_wars = False  # True once a launch has hardly served any rows

    @functools.cached_property
    def all_rows(self) -> cp.ndarray:
        return cp.arange(self.problem.full.shape[0], dtype=np.int32)

    def hold(self, epsilon: int, end: _End, control: Control) -> None:
        """Hold an auction from the current prices."""
        row_bits = self.units.row_bits
        self.problem.rows.kernels["free_columns"](
            *self.by_column,
            (
                self.offers,  # IN, OUT
                *(np.int32(self.offers.size), np.int32(row_bits)),  # IN
            ),
        )
        self._bid(self._side, self.all_rows, epsilon, end)
        before = math.inf
        for _ in range(1, end.launches):
            held = self.columns_of_rows()
            grid = (blocks_for(held.size),), (BLOCK,)
            bidders = unmatched_rows(self.problem.rows.kernels["list_unmatched"], grid, held)
            if bidders.size <= end.unmatched or control.tick(0):
                break
            if self._is_war(int(bidders.size), before):
                self.are_wars = True
                break
            before = int(bidders.size)
            self._bid(self._side, bidders, epsilon, end)
        if self.goes_on and self.problem.has_surplus(self.problem.tuning.surplus_to_bid):
            self.goes_on = self._bid_back(epsilon)

    def _is_war(self, unmatched: int, before: float) -> bool:
        """True if few rows are unmatched, and the last launch has matched hardly any of them."""
        tuning = self.problem.tuning
        return before * tuning.war < unmatched <= tuning.most_at_war * self.problem.full.shape[0]

    def _bid_back(self, epsilon: int) -> bool:
        """Let unmatched columns bid for rows, and set the prices anew; False if that is impossible.

        Columns whose prices have not fallen do not bid.
        """
        problem, units, tuning = self.problem, self.units, self.problem.tuning
        ncols, transposed = problem.full.shape[1], problem.transposed
        if transposed is None:
            return False
        is_unmatched = owners(self.offers, units.row_bits) < 0
        bidders = cp.flatnonzero(is_unmatched & (self.offers > 0)).astype(np.int32)
        if bidders.size <= tuning.unmatched[0] // tuning.kept:
            return True
        levels, col_bits = self._levels(self._side), ncols.bit_length()
        top = float(cp.where(levels < math.inf, levels, -math.inf).max())
        if not top - float(levels.min()) < 2.0 ** (62 - col_bits):
            return False
        offers = self._offers_at(levels, top, col_bits, self.columns_of_rows())
        columns = _Side(transposed, offers, col_bits)
        end = _End(int(bidders.size) // tuning.kept, tuning.longest_chain_back)
        self._bid(columns, bidders, epsilon, end, top)
        levels = self._levels(columns)
        if not top - float(levels.min()) < units.most / 2:
            return False
        self.offers = self._offers_at(levels, top, units.row_bits, memory.unmatched(ncols))
        return True

    @property
    def _side(self) -> _Side:
        """The rows as bidders."""
        return _Side(self.problem.rows, self.offers, self.units.row_bits)

    def _levels(self, side: _Side) -> cp.ndarray:
        """Return the least reduced cost of each vertex of a side, in units."""
        levels = cp.empty(side.rows.nrows, np.float64)
        side.rows.launch(
            "find_levels<{Cost}>",
            *(side.rows.struct, self._terms(side, 0, _End(0, 0), 0), side.offers),  # IN
            levels,  # OUT
        )
        return levels

    def _offers_at(
        self, levels: cp.ndarray, top: float, row_bits: int, holders: cp.ndarray
    ) -> cp.ndarray:
        offers = cp.empty(levels.size, np.uint64)
        self.problem.rows.kernels["offer_levels"](
            (blocks_for(levels.size),),
            (BLOCK,),
            (
                *(levels, np.int32(levels.size), np.float64(top), np.int32(row_bits), holders),
                offers,  # OUT
            ),
        )
        return offers

    def bid_exactly(self, bids: int) -> None:
        """Hold an auction without an epsilon, from the current duals and pairs."""
        problem, units = self.problem, self.units
        bidders = cp.empty(problem.count_unmatched(), np.int32)
        problem.rows.kernels["offer_pairs<{Cost}>"](
            (blocks_for(max(problem.full.shape)),),
            (BLOCK,),
            (
                *(problem.rows.struct, problem.col_dual, problem.top),  # IN
                *(np.float64(units.of_one), np.int32(units.row_bits), *problem.mates),
                *(self.offers, bidders, cp.zeros(1, np.int32)),  # OUT
            ),
        )
        self._bid(self._side, bidders, 0, _End(0, bids))

    def _bid(
        self,
        side: _Side,
        bidders: cp.ndarray,
        epsilon: int,
        end: _End,
        outside: float = math.inf,
    ) -> None:
        """Let these vertices of a side bid until all but a few are served."""
        served = cp.zeros(1, np.int32)
        side.rows.kernels["hold_auction<{Cost}>"](
            (blocks_for(side.rows.lanes * bidders.size),),
            (BLOCK,),
            (
                *(side.rows.struct, self._terms(side, epsilon, end, bidders.size)),  # IN
                *(np.float64(outside), bidders, np.int32(bidders.size)),  # IN
                *(side.offers, served),  # IN, OUT
            ),
        )

    def _terms(self, side: _Side, epsilon: int, end: _End, size: int) -> np.ndarray:
        """Return the terms of an auction with `size` bidders of a side."""
        units = self.units
        return side.rows.kernels.struct("Terms")(
            low=self.problem.full.low,
            scale=units.of_one,
            epsilon=epsilon,
            jump=units.spread,
            most=units.most if side.bits == units.row_bits else 2 ** (64 - side.bits) - 1,
            row_bits=side.bits,
            goal=size - end.unmatched,
            longest=end.longest,
        )

    def write_prices(self) -> None:
        """Set the duals of the columns to the prices."""
        self.problem.rows.kernels["write_prices<{Cost}>"](
            *self.by_column,
            (
                *(self.offers, np.int32(self.offers.size), np.int32(self.units.row_bits)),  # IN
                np.float64(1 / self.units.of_one),
                self.problem.col_dual,  # OUT
            ),
        )

    def columns_of_rows(self) -> cp.ndarray:
        """Return the column of each row by the offers; -1 means unmatched."""
        held = memory.unmatched(self.problem.full.shape[0])
        self.problem.rows.kernels["take_offers"](
            *self.by_column,
            (
                *(self.offers, np.int32(self.offers.size), np.int32(self.units.row_bits)),  # IN
                held,  # IN, OUT
            ),
        )
        return held
