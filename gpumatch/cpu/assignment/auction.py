"""Assignment by auction, laid out as by Vasconcelos and Rosenhahn: all bid, then all are awarded.

A round has the paper's two kernels. In the bidding phase each unmatched row looks up its best
column and the second best at the current prices. It offers for the best the price at which both are
equally good, plus epsilon (Jacobi: all rows bid at the same prices). In the assignment phase each
column goes to the best offer, and the row that had it is unmatched again. The paper counts the rows
assigned, and ends when these are all. Here the unmatched rows are kept as a list, which never
grows.

With costs c and prices v (at most 0; the paper's price is -v, its benefit -c), a pair's reduced
cost is c_ij - v_j, and a row's dual u_i is how much it may pay. Rounds preserve

    u_i + v_j <= c_ij + epsilon for all pairs, with equality for assigned ones (less epsilon).

So n assigned rows pay at most n · epsilon more than they must, provided that unmatched columns have
the price 0. They have it if prices began from 0, or if all columns are matched.

With ``scaling="none"`` the auction is the paper's: one epsilon, prices from 0, and only rows bid.
The paper has no limit. Here a row stays unmatched if that is cheaper. No row has ever bid for an
unmatched column, so its price is still 0. Where many rows want few columns, rounds number up to n
times the spread of the costs by epsilon.

Scaling
-------
Rounds with a large epsilon are quick, and leave prices that make the next, smaller one quick. But
then an unmatched column may have a price below 0. So, after the rows' auction, the columns have
theirs (reverse auction; Bertsekas, Castañon, Tsaknakis 1993). Each unmatched column whose price is
below the ``cap`` offers itself to the row that it suits best. A row takes the best offer, and its
column becomes unmatched. A column for which no row pays enough stays at the cap. The cap is the
greatest price of an assigned column, or 0 if rows have a limit. Limit and cap have the same role in
the two auctions, so one pair of kernels serves both, on the costs and on their transpose.

Exactness
---------
Everything is computed in float64. The last epsilon for integers is 1/s, where s is a power of 2
above n, and all prices are multiples of it, without rounding as long as they are below 2**53/s.
Then n · epsilon < 1, and the assignment is optimal. Prices are made integers by rounding
v_j + t down, for the least t among 0, 1/s, ... (s - 1)/s that leaves no assigned column at a
fraction of (s - 1)/s. There is such a t, because there are at most n < s such columns, and
t < (s - 1)/s if a row is unmatched. For columns j and k, j that of row i, and y = c_ik - c_ij, an
integer, v_k <= v_j + y + 1/s then gives floor(v_k + t) <= floor(v_j + t) + y. For a row without a
column, v_k <= y + 1/s with y = c_ik - limit gives floor(v_k + t) <= y. So the rounded duals are
exact.

Other costs end with epsilon = (spread of the costs) / (1024 n), and so do integers that are too
large to be scaled. With ``finish="exact"``, shortest augmenting paths from the auction's prices
close their gap of at most n · epsilon. With ``finish="epsilon"``, the gap remains.

Encodings
---------
``bidders``     rows to be served, ``bidders[:count]``
``target``      the column each bids for, -1: going without is cheaper
``offer``       the price that this column would have
``winner``      for each column the number of the best bid so far, -1 none; -1 between rounds

O(n²m / epsilon) at worst, times the spread. Only the edges of bidders are read. Threads share the
bidding. The result does not depend on them or on the seed.

References
----------
Vasconcelos, Rosenhahn, *Bipartite graph matching computation on GPU*, EMMCVPR 2009.
Bertsekas, Castañon, Tsaknakis, *Reverse auction and the solution of inequality constrained
assignment problems*, SIAM J. Optimization 3, 1993.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpumatch.contracts import AssignmentTask, Control, Costs, Entries
from gpumatch.cpu.assignment import shortest_augmenting_path
from gpumatch.cpu.assignment.either.entries import by_entries, count_entries
from gpumatch.cpu.assignment.either.fair_duals import write_fair_duals
from gpumatch.cpu.matching.completion import complete
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.cpu.searches.dense import LANES
from gpumatch.cpu.searches.dense import least_two as dense_least_two
from gpumatch.cpu.searches.sparse import least_two as sparse_least_two
from gpumatch.numeric.arrays import count_matched
from gpumatch.numeric.auction_schedule import Precision, close_gaps

__all__ = ["Precision", "close", "run", "write_duals"]

BUDGET = 2**25
"""Entries looked at between two returns to Python: some hundredths of a second where dense."""
A_BID = 128
"""As many entries cost what a bid and its award cost beside them: most, where rows are short."""
WIDE = 2**18
"""Entries from which a round of bids is shared among threads: some tenths of a millisecond."""


def run(task: AssignmentTask, *, scaling: str = "epsilon", finish: str = "exact") -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states.

    Parameters
    ----------
    scaling : {"epsilon", "none"}
        Auctions with falling epsilons, from the given prices; or the paper's one auction, from
        prices of 0.
    finish : {"exact", "epsilon"}
        ``"exact"`` closes the gap of costs that are not integers; ``"epsilon"`` allows a gap of
        n · epsilon.

    Returns
    -------
    bool
        True if it ended with an optimal assignment, or none exists; False if stopped, or if a gap
        remains.
    """
    costs, solution = task.costs, task.solution
    if solution.row_to_col.size == 0:
        solution.col_dual[:] = 0
        solution.has_duals = True
        return True
    if task.limit is None and not costs.is_complete:
        largest = solution.row_to_col.copy(), solution.col_to_row.copy()
        if not complete(task, *largest):
            return False
        if (largest[0] < 0).any():
            solution.row_to_col[:], solution.col_to_row[:] = largest
            return True
    precision = Precision.of(costs, task.limit)
    if precision.is_workable:
        auction = _Auction(costs, solution.col_dual, task.limit, precision)
        hold = auction.run_once if scaling == "none" else auction.run
        done = False
        try:
            with Workers(task.threads, costs.nnz) as workers:
                done = hold(workers, task.control)
        finally:
            auction.write(*solution.mates, *solution.duals)
            solution.has_duals = solution.are_fair = True
        if not done:
            return False
    return close(task, precision, finish)


def close(task: AssignmentTask, precision: Precision, finish: str) -> bool:
    """Do the work after the last epsilon; return what `run` returns."""
    if precision.is_exact:
        return True
    if finish == "epsilon" and precision.is_workable:
        return False
    return shortest_augmenting_path.run(task)


# -- the driver ------------------------------------------------------------------------------------


class _Side(NamedTuple):
    """One side: what its rows or columns may take, their duals, mates, and best bids so far."""

    entries: Entries | None
    dual: np.ndarray
    mate: np.ndarray
    winner: np.ndarray

    @classmethod
    def of(cls, dual: np.ndarray, costs: Costs | None = None) -> _Side:
        free = np.full(dual.size, -1, np.int32)
        return cls(None if costs is None else costs.entries(), dual, free, free.copy())


class _Auction:
    """Auctions, of which falling epsilons keep the last complete assignment and its prices."""

    def __init__(
        self, costs: Costs, col_dual: np.ndarray, limit: float | None, precision: Precision
    ) -> None:
        self.costs, self.limit, self.precision = costs, limit, precision
        self.is_warm = bool(col_dual.any())
        self.rows = _Side.of(np.zeros(costs.shape[0]), costs)
        self.cols = _Side.of(np.clip(col_dual.astype(np.float64), -precision.farthest / 4, 0))
        self.best: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def run_once(self, workers: Workers, control: Control) -> bool:
        """The paper's auction, from prices of 0, by the last epsilon alone; False when stopped."""
        self.cols.dual[:] = 0
        return self._forward(self.precision.epsilon, workers, control)

    def run(self, workers: Workers, control: Control) -> bool:
        """Go through all epsilons; False when stopped."""
        for epsilon in self.precision.schedule(self.is_warm):
            self.rows.mate[:] = self.cols.mate[:] = -1
            for auction in (self._forward, self._reverse):
                if not auction(epsilon, workers, control):
                    return False
            self._settle()
            self.best = self.rows.mate.copy(), self.cols.mate.copy(), self.cols.dual.copy()
            if control.tick(self.assigned) and epsilon > self.precision.epsilon:
                return False
        return True

    def _forward(self, epsilon: float, workers: Workers, control: Control) -> bool:
        """Let all rows bid for columns."""
        cap = np.inf if self.limit is None else float(self.limit)
        bidders = np.arange(self.rows.mate.size, dtype=np.int32)
        floor = _Floor(self.rows, self.cols, bidders, cap, self.precision.spread, epsilon)
        return self._hold("forward", floor, workers, control)

    def _reverse(self, epsilon: float, workers: Workers, control: Control) -> bool:
        """Let the unmatched columns with prices below the cap bid for rows."""
        cap = self._cap()
        bidders = np.flatnonzero((self.cols.mate < 0) & (self.cols.dual < cap)).astype(np.int32)
        if bidders.size == 0:
            return True
        if self.cols.entries is None:
            self.cols = self.cols._replace(entries=self.costs.transpose().entries())
        floor = _Floor(self.cols, self.rows, bidders, cap, self.precision.spread, epsilon)
        return self._hold("reverse", floor, workers, control)

    def _hold(self, step: str, floor: _Floor, workers: Workers, control: Control) -> bool:
        """Hold rounds until no bidder waits; False when stopped."""
        before = self._assigned
        while floor.waiting:
            if workers.threads > 1 and floor.waiting * floor.length >= WIDE:
                floor.shared_round(workers)
            else:
                floor.rounds_alone()
            if control.tick(self.assigned) and floor.waiting:
                return False
        now = self._assigned
        control.phase(
            found=now - before, matched=now, step=step, epsilon=floor.epsilon, rounds=floor.rounds
        )
        return True

    @property
    def _assigned(self) -> int:
        return count_matched(self.rows.mate)

    @property
    def assigned(self) -> int:
        """Rows that are assigned, now or after the last epsilon."""
        return self._assigned if self.best is None else count_matched(self.best[0])

    def _cap(self) -> float:
        """Return the price of unmatched columns: the greatest price of a matched one, or 0."""
        if self.limit is not None:
            return 0.0
        return float(self.cols.dual.max(initial=-np.inf, where=self.cols.mate >= 0))

    def _settle(self) -> None:
        """Move the prices so that those of unmatched columns are 0, and none is above."""
        self.cols.dual[:] = np.where(self.cols.mate >= 0, self.cols.dual - self._cap(), 0)

    def write(
        self,
        row_to_col: np.ndarray,
        col_to_row: np.ndarray,
        row_dual: np.ndarray,
        col_dual: np.ndarray,
    ) -> None:
        """Put the last complete assignment, or the rows assigned so far, into the result."""
        if self.best is None:
            self.best = self.rows.mate, self.cols.mate, self.cols.dual
        row_to_col[:], col_to_row[:], price = self.best
        write_duals(self.costs, self.limit, self.precision, price, row_to_col, row_dual, col_dual)


class _Floor:
    """One auction: the two sides, the bidders, and the terms of their bids."""

    def __init__(
        self,
        own: _Side,
        other: _Side,
        bidders: np.ndarray,
        cap: float,
        jump: float,
        epsilon: float,
    ) -> None:
        self.own, self.other = own, other
        self.bidders, self.waiting = bidders, bidders.size
        self.terms = cap, jump, epsilon
        self.epsilon, self.rounds = epsilon, 0
        self.bids = np.empty(bidders.size, np.int32), np.empty(bidders.size)
        assert own.entries is not None  # a bidder has costs to look at
        self.length = max(1, count_entries(own.entries) // own.mate.size)

    def shared_round(self, workers: Workers) -> None:
        """One round, the bids shared among the workers."""
        share = -(-self.waiting // workers.threads)

        def bid_for_share(worker: int) -> bool:
            first, last = worker * share, min((worker + 1) * share, self.waiting)
            bid(
                self.own.entries,  # IN
                self.own.dual,  # OUT
                self.other.dual, self.bidders, first, last,  # IN
                *self.bids,  # OUT
                *self.terms,  # IN
                np.empty(LANES),  # OUT
            )  # fmt: skip
            return True

        workers.run(bid_for_share, workers.threads)
        self.waiting = award(
            self.own.dual, self.other.dual, self.own.mate, self.other.mate,  # OUT
            self.other.winner, self.bidders,  # OUT
            self.waiting, *self.bids, self.terms[0],  # IN
        )  # fmt: skip
        self.rounds += 1

    def rounds_alone(self) -> None:
        """Rounds, as many as the budget allows."""
        self.waiting, rounds = hold_rounds(
            self.own.entries,  # IN
            self.own.dual, self.other.dual, self.own.mate, self.other.mate,  # OUT
            self.other.winner, self.bidders,  # OUT
            self.waiting,  # IN
            *self.bids,  # OUT
            *self.terms,  # IN
            np.empty(LANES),  # OUT
            self.length, BUDGET,  # IN
        )  # fmt: skip
        self.rounds += rounds


# -- duals -----------------------------------------------------------------------------------------


def write_duals(
    costs: Costs,
    limit: float | None,
    precision: Precision,
    price: np.ndarray,
    row_to_col: np.ndarray,
    row_dual: np.ndarray,
    col_dual: np.ndarray,
) -> None:
    """Duals that no pair undercuts, from prices: exact ones if the assignment allows it.

    An assignment that is not within the last epsilon gets bounds that leave a gap.
    """
    is_whole = col_dual.dtype.kind == "i"
    if precision.is_exact:
        price = round_prices(price, row_to_col, precision.epsilon)
        col_dual[:] = close_gaps(price, 2 * max(costs.largest, abs(limit or 0)))
    elif is_whole:
        col_dual[:] = np.rint(np.maximum(price, -(row_to_col.size + 1) * costs.largest))
    else:
        col_dual[:] = price
    if not is_whole:
        write_fair_duals(costs.entries(), col_dual, row_dual, limit)
        return
    find_row_duals(
        costs.entries(), col_dual,  # IN
        np.empty(LANES, np.int64),  # OUT
        np.iinfo(np.int64).max,  # IN
        row_dual,  # OUT
    )  # fmt: skip
    if limit is not None:
        np.minimum(row_dual, limit, out=row_dual, casting="unsafe")


def round_prices(price: np.ndarray, row_to_col: np.ndarray, epsilon: float) -> np.ndarray:
    """Integer prices that keep an assignment optimal, as stated above under Exactness."""
    scale = round(1 / epsilon)
    steps = np.rint(price * scale).astype(np.int64)
    is_bad = np.zeros(scale, bool)
    is_bad[(scale - 1 - steps[row_to_col[row_to_col >= 0]]) % scale] = True
    return (steps + is_bad.argmin()) // scale


# -- the kernels -----------------------------------------------------------------------------------


@kernel
def _dense_least_two(entries, bidder, price, least, far):
    return dense_least_two(entries[bidder], price, least, far)


@kernel
def _sparse_least_two(entries, bidder, price, least, far):
    indptr, indices, weights = entries
    return sparse_least_two(indptr, indices, weights, price, bidder, far)


_least_two = by_entries(_dense_least_two, _sparse_least_two)
"""The least two reduced costs of a bidder, and where."""


@kernel
def bid(
    entries, own_dual, other_dual, bidders, first, last, target, offer, cap, jump, epsilon, least
):
    """The bidding kernel, for bidders first to last.

    The bidder's dual becomes the second least reduced cost plus epsilon, up to the cap. Without a
    second, it is the least plus ``jump`` plus epsilon.
    """
    for k in range(first, last):
        bidder = bidders[k]
        one, best, two, _ = _least_two(entries, bidder, other_dual, least, np.inf)
        if cap - one <= epsilon:
            target[k] = -1
            continue
        second = two - one if two < np.inf or cap < np.inf else jump
        increment = min(second + epsilon, cap - one)
        target[k] = best
        offer[k] = other_dual[best] - increment
        own_dual[bidder] = one + increment


@kernel
def award(own_dual, other_dual, own_mate, other_mate, winner, bidders, count, target, offer, cap):
    """Run the assignment kernel; return how many bidders are unmatched, ``bidders[:waiting]``.

    A bidder that loses its mate bids again.
    """
    for k in range(count):
        wanted = target[k]
        if wanted >= 0 and (winner[wanted] < 0 or offer[k] < offer[winner[wanted]]):
            winner[wanted] = k
    waiting = 0
    for k in range(count):
        bidder, wanted = bidders[k], target[k]
        if wanted < 0:
            own_dual[bidder] = cap
            continue
        again = bidder
        if winner[wanted] == k:
            again = other_mate[wanted]
            other_dual[wanted] = offer[k]
            other_mate[wanted] = bidder
            own_mate[bidder] = wanted
            if again >= 0:
                own_mate[again] = -1
        if again >= 0:
            bidders[waiting] = again
            waiting += 1
    for k in range(count):
        if target[k] >= 0:
            winner[target[k]] = -1
    return waiting


@kernel
def hold_rounds(
    entries, own_dual, other_dual, own_mate, other_mate, winner, bidders, count, target, offer,
    cap, jump, epsilon, least, length, budget,
):  # fmt: skip
    """Hold rounds while bidders wait and the budget lasts; return how many wait, and the rounds."""
    rounds = 0
    while count > 0 and budget > 0:
        budget -= count * (length + A_BID)
        bid(
            entries, own_dual, other_dual, bidders, 0, count, target, offer,
            cap, jump, epsilon, least,
        )  # fmt: skip
        count = award(
            own_dual, other_dual, own_mate, other_mate, winner, bidders, count, target, offer, cap
        )
        rounds += 1
    return count, rounds


@kernel
def find_row_duals(entries, price, least, far, row_dual):
    """Write the dual of each row, which is its least reduced cost."""
    for row in range(row_dual.size):
        row_dual[row] = _least_two(entries, row, price, least, far)[0]
