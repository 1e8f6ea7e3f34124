"""The auction of the sparse engine: phases of bids whose epsilon falls, and the repair after them.

Rows bid one after the other (`bidders`), each thread for the rows of its own queue. If all rows and
columns must be matched, unmatched columns bid in turns with the rows once few rows are unmatched.
They need the transposed entries, which one thread finds while another one lets rows bid.

If columns may stay unmatched, and paths of those whose price is below 0 would read much, these bid
at the end of each phase (Bertsekas, Castañón, *A forward/reverse auction algorithm for asymmetric
assignment problems*, Computational Optimization and Applications 1, 1992).

A phase ends when few rows are unmatched. If bids in turns take long, they alternate with searches
for all unmatched rows at once (`joint_search`). The next phase begins from its prices and pairs,
but parts pairs whose slack exceeds the new epsilon. Only vertices that `is_slack` marks can have
such a pair, but for prices that have risen while a thread read them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from gpumatch.contracts import Control
from gpumatch.cpu.assignment.sparse.bidders import Bidders
from gpumatch.cpu.assignment.sparse.joint_search import JointSearch
from gpumatch.cpu.assignment.sparse.paths import SparsePaths
from gpumatch.cpu.assignment.sparse.tuning import Tuning
from gpumatch.cpu.searches.state import DONE, LOW, SCANS, SPENT
from gpumatch.numeric.auction_schedule import FallingEpsilon
from gpumatch.numeric.multiples import quantum_of, round_down

__all__ = ["Auction"]

LEAST = 2.0**-900
"""Floats whose first epsilon is less are too fine for auctions and joint searches.

Their epsilons fall by 2**-50, and one divided by an epsilon must be finite.
"""


class Auction:
    """Bids for the columns of `paths`, whose prices and pairs they change.

    Parameters
    ----------
    paths : SparsePaths
        Entries, prices and pairs.
    spread : number
        The range of the costs.
    floor : number
        A bound of all prices of a problem with a full assignment: below it, none exists. Or the
        price below which sums may overflow.
    tuning : Tuning
        When phases end, and how epsilon falls.
    control, beat
        What hears of each phase, and what it is told with between two calls of kernels.

    Attributes
    ----------
    epsilon : FallingEpsilon
        That of the phases now held.
    finest : float
        The last epsilon, if few pairs are slack.
    bidders : Bidders
        The rows and columns that bid, with the duals of rows and the marks of slack pairs.
    before : numpy.ndarray or None
        The prices from which strict searches of the phase would begin.
    is_infeasible : bool
        True once it is known that no full assignment exists.
    has_reverse : bool
        True if unmatched columns bid in each phase, where columns may stay unmatched.
    is_after_war : bool
        True if the phase before was a price war.
    is_doubtful : bool
        True if the phase is judged early: the first one, and one after a war, if all rows and
        columns must be matched.
    is_first : bool
        True in the first phase, whose progress tells what all phases read.
    is_too_fine : bool
        True if floats differ by so little that exact paths from one row at a time must serve them.
    is_low : bool
        True once prices were so low, for this or another reason, that a phase ended.
    """

    def __init__(
        self,
        paths: SparsePaths,
        spread: Any,
        floor: Any,
        tuning: Tuning,
        control: Control,
        beat: Callable[[], None],
    ) -> None:
        self.paths, self.nnz = paths, paths.costs.nnz
        self.spread, self.floor, self.tuning = spread, floor, tuning
        self.control, self.beat = control, beat
        self.nrows, self.number = paths.row_to_col.size, paths.price.dtype.type
        self.is_integer = paths.price.dtype.kind == "i"
        self.bidders = Bidders(paths, spread, floor, tuning, beat)
        self.epsilon = FallingEpsilon(0.0, 0.0, 1, tuning)
        self.finest = max(float(spread) * tuning.finest, 1.0 if self.is_integer else 0.0)
        self.is_infeasible = self.is_low = self.has_reverse = self.is_after_war = False
        self.is_doubtful, self.is_too_fine = paths.all_match, False
        self.is_first = False
        self.before: np.ndarray | None = None

    @cached_property
    def quantum(self) -> Any:
        """The number of which all differences of costs are small multiples; None if none is.

        It is None, too, if columns may stay unmatched.
        """
        if not self.paths.all_match:
            return None
        return quantum_of(self.paths.entries[2], self.tuning.few_values, self.tuning.sample)

    def hold(self) -> None:
        """Hold phases of falling epsilon, until hardly any row must bid in the next one.

        If a phase becomes a price war, the next one keeps its prices and pairs, but has a coarser
        epsilon, so that its bidders soon reach columns far away. Epsilon falls again from there. If
        all rows and columns must be matched, the next phase begins with joint searches, and joint
        searches end any phase in which no coarser epsilon may follow.

        Costs of few values have ties, which bids part one by one. If the first phase takes long on
        them, exact joint searches from the prices and pairs before it match nearly all rows.

        If hardly any row must bid, but many pairs are slack, though half as many as before at most,
        epsilon falls on: costs of their rows are smaller by orders of magnitude. It also falls on
        after a phase in which many rows have bid, because the exact paths of as many rows would be
        long.
        """
        paths = self.paths
        if paths.all_match:
            self.bidders.price_rows()
        paths.row_dual = None
        self.epsilon = self._first_epsilon()
        self.is_too_fine = self.epsilon.now < LEAST
        if self.is_too_fine:
            self.epsilon = FallingEpsilon(0.0, 0.0, 1, self.tuning)  # it cannot fall
            return
        if not self.is_integer:
            self.bidders.reach = self.number(self.epsilon.now * self.tuning.reach)
        self.is_first = True
        self._hold_phases(paths.start_with_unmatched_rows(), self.tuning.fewest, self.quantum)

    def hold_finer(self, bidders: np.ndarray) -> None:
        """Let these rows bid with a finer epsilon, and those of later phases; all pairs are tight.

        If few pairs are slack after a phase, others follow as in `hold`.
        """
        self._go_on_from_tight_pairs()
        self.epsilon.fall(self._least_epsilon(), is_calm=False)
        self._hold_phases(bidders, self.tuning.few)

    def hold_reverse(self) -> None:
        """Let unmatched columns whose price is below 0 bid, too, from the coarsest epsilon on.

        All pairs are tight, and no row must bid.
        """
        self._go_on_from_tight_pairs()
        self.has_reverse = True
        self.epsilon.begin_again()
        self.bidders.raise_columns(self.number(self.epsilon.now), self._most)
        if self.epsilon.fall(self.finest, is_calm=False):
            self._hold_phases(self.bidders.part_slack_pairs(self.epsilon.now), self.tuning.few)

    def _go_on_from_tight_pairs(self) -> None:
        """Take note that all pairs are tight, whatever has been before."""
        self.bidders.mark_none()
        self.is_after_war = self.is_doubtful = False
        if not self.paths.all_match:
            self.epsilon.patience = self.tuning.longest

    @property
    def can_fall(self) -> bool:
        """True if a finer epsilon may lead to shorter paths."""
        return not self.is_low and self.epsilon.can_fall(self._least_epsilon())

    def _hold_phases(self, bidders: np.ndarray, few: int, quantum: Any = None) -> None:
        """Hold phases from this epsilon on; the first one ends with so few unmatched rows.

        If all differences of costs are multiples of a quantum, exact searches may be better.
        """
        paths, tuning, epsilon = self.paths, self.tuning, self.epsilon
        is_loose, slack = False, 4 * self.nrows
        start: tuple[np.ndarray, ...] = ()
        if quantum:
            start = tuple(array.copy() for array in self._pairs)
            epsilon.patience = tuning.turns
            self.is_doubtful = False
        while (bidders.size > few or is_loose) and self._count_paths(bidders) > tuning.few_paths:
            began = bidders.size
            outcome, bidders = self._hold_phase(bidders, self.number(epsilon.now), few)
            if outcome == SPENT:
                paths.expected = math.inf
            elif self.is_first:
                paths.expected = tuning.phases * paths.readings
            self.is_first = False
            if outcome == LOW:
                self.is_low = True
                break
            if start:
                is_slow = int(paths.spot[SCANS]) > tuning.turns * self.nnz
                epsilon.patience = tuning.longest
                if is_slow and self._search_exactly(quantum, start):
                    break
                start = ()
                if is_slow:
                    bidders = self.bidders.unmatched[0].astype(np.int32)
                    continue
            if outcome == SPENT and bidders.size > few:
                if not (epsilon.rise() or paths.all_match):
                    break
                if not epsilon.can_rise:
                    bidders = self._narrow_prices()
                self.is_after_war, self.is_doubtful = True, paths.all_match
                continue
            self.is_after_war = self.is_doubtful = False
            if quantum and epsilon.now <= quantum * tuning.tied:
                round_down(paths.price, quantum)
                break
            before, slack = slack, self.bidders.count_slack_pairs()
            is_loose = tuning.loose * self.nrows < slack < before / 2  # else they are tied
            is_loose |= began > tuning.many * self.nrows
            is_calm = max(began, slack) <= tuning.calm * self.nrows
            if not epsilon.fall(self._least_epsilon() if is_loose else self.finest, is_calm):
                break
            few = min(2 * few, tuning.few)
            bidders = np.concatenate([bidders, self.bidders.part_slack_pairs(epsilon.now)])

    @property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Prices and pairs."""
        return self.paths.price, self.paths.row_to_col, self.paths.col_to_row

    def _search_exactly(self, quantum: Any, start: tuple[np.ndarray, ...]) -> bool:
        """Search from the prices and tight pairs of the start; False if searches find few paths."""
        for array, before in zip(self._pairs, start):
            array[:] = before
        self.bidders.price_rows()
        search = self._joint_search(is_exact=True)
        unmatched, found = self.paths.start_with_unmatched_rows(), self.nrows
        rows = unmatched.size
        while rows > self.tuning.few_paths and found >= self.tuning.slow * rows:
            found = search.round(quantum, self.beat)
            if not found:
                self.is_infeasible = True
                break
            rows -= found
        self.bidders.is_slack.fill(False)
        self.paths.record("search", unmatched, self.paths.matched, self.control)
        return rows <= self.tuning.few_paths or self.is_infeasible

    def repair(self) -> None:
        """Part all pairs that are not tight, whatever is marked."""
        self.bidders.part_all(0)

    def bid(
        self, waiting: np.ndarray, epsilon: Any, many: int, budget: int
    ) -> tuple[np.ndarray, int]:
        """Let these rows bid by all threads, for a budget or until `many` are unmatched.

        Returns the rows that are unmatched, and DONE, SPENT if it is a price war, or LOW.
        """
        waiting, is_peaceful = self.bidders.bid(waiting, epsilon, many, budget)
        return waiting, self._outcome(is_peaceful)

    # -- phases ------------------------------------------------------------------------------------

    def _first_epsilon(self) -> FallingEpsilon:
        gentle = self.tuning.gentle * self._typical_excess()
        first = max(min(self.spread / self.tuning.first, gentle), self._least_epsilon())
        coarser = self.tuning.coarser if self.paths.all_match else self.tuning.coarser_with_spare
        return FallingEpsilon(float(first), float(self.spread), coarser, self.tuning)

    def _typical_excess(self) -> float:
        """Return what a row typically saves by its cheapest column, as `Tuning.gentle` says."""
        paths = self.paths
        rows, excess = paths.excess(np.arange(0, self.nrows, self.nrows // self.tuning.sample + 1))
        dearer = excess[excess > 0]
        if not dearer.size:
            return math.inf
        if not paths.all_match:
            return float(np.quantile(dearer, 1 / 4))
        second = min(2 * rows / dearer.size, 1 / 2)
        return float(np.quantile(dearer, second)) * (1 - paths.matched / self.nrows)

    def _least_epsilon(self) -> float:
        """1, or a few units in the last place of most prices."""
        if self.is_integer:
            return 1.0
        price = self.paths.price
        return self.tuning.least * float(
            np.median(abs(price[:: price.size // self.tuning.sample + 1]))
        )

    def _count_paths(self, bidders: np.ndarray) -> int:
        """Return how many paths would serve all rows now. Each reads all entries once, at most."""
        of_columns = self.bidders.is_slack_col & (self.paths.col_to_row >= 0)
        return bidders.size + self.bidders.count_slack_pairs() + int(np.count_nonzero(of_columns))

    def _hold_phase(self, bidders: np.ndarray, epsilon: Any, few: int) -> tuple[int, np.ndarray]:
        """Let rows, and unmatched columns, bid until few rows wait.

        Returns DONE, SPENT if it is a price war, or LOW; and the rows that still wait. A row that
        has chosen to stay unmatched does not wait: prices of columns fall, so it will stay so.
        """
        paths, began = self.paths, bidders.size
        unmatched, many, outcome = paths.start_with_unmatched_rows(), few, DONE
        self.before = None if self.epsilon.can_rise else paths.price.copy()
        if paths.all_match:
            many = max(few, int(self.tuning.tail * self.nrows))
            if self.bidders.transposed is None:
                bidders, is_peaceful = self.bidders.bid_while_transposing(bidders, epsilon, many)
                outcome = self._outcome(is_peaceful)
            elif self.is_after_war and self.epsilon.can_rise:
                outcome = self._search_after_war(epsilon, few)
                bidders = self.bidders.unmatched[0].astype(np.int32)
                began = bidders.size
        if outcome == DONE:
            bidders, outcome = self._let_rows_bid(bidders, epsilon, many, began)
        is_war = outcome == SPENT and self.epsilon.can_rise
        if paths.all_match and outcome != LOW and not is_war:
            outcome = self._serve_last(epsilon, few)
        if paths.all_match:
            bidders = self.bidders.unmatched[0].astype(np.int32)
        elif self.has_reverse and outcome != LOW:
            self.bidders.raise_columns(epsilon, self._most)
            bidders = bidders[paths.row_to_col[bidders] < 0]
        paths.record("auction", unmatched, paths.matched, self.control)
        return outcome, bidders

    def _let_rows_bid(
        self, bidders: np.ndarray, epsilon: Any, many: int, began: int
    ) -> tuple[np.ndarray, int]:
        """Let rows bid until so many wait, or columns had better bid, too, or it is a price war.

        The phase began with `began` bidders. What they have read since then counts, so that a phase
        is judged after as many readings as if this thread alone had transposed the entries.

        Returns the rows that wait, and DONE, SPENT or LOW.
        """
        tuning, patience = self.tuning, self.epsilon.patience
        start = int(self.paths.spot[SCANS]) if self.is_after_war else 0
        budget = self.bidders.budget // 2 if self.is_doubtful else self.bidders.budget
        early = tuning.early_tail * self.nrows if self.is_doubtful else 0
        progress, outcome = [(0.0, began)], DONE
        while bidders.size > many and outcome == DONE:
            read = int(self.paths.spot[SCANS]) - start if len(progress) == 1 else 0
            bidders, outcome = self.bid(bidders, epsilon, many, max(budget - read, 0))
            reads = (int(self.paths.spot[SCANS]) - start) / self.nnz
            progress.append((reads, bidders.size))
            if self.is_first:
                yet = self._expected(progress) - reads
                self.paths.expected = self.tuning.phases * (self.paths.readings + yet)
            if outcome == DONE and not self._is_steady(progress):
                expected = self._expected(progress)
                is_war = expected * min(reads / tuning.trusted, 1) > patience
                if is_war and reads >= self._first_judged:
                    outcome = SPENT
                is_slow = reads >= tuning.doubted and expected > reads + tuning.early_reads
                if is_slow and bidders.size <= early:
                    many = bidders.size
        return bidders, outcome

    @property
    def _first_judged(self) -> int:
        """How many times a phase has read all entries when it may first be a price war."""
        return self.tuning.doubted if self.is_doubtful else self.tuning.trusted

    def _expected(self, progress: list[tuple[float, int]]) -> float:
        """The readings of all entries until the tail of the rows waits, to judge by the progress.

        The number of waiting rows falls as a power of the readings; the tail falls faster.
        """
        reads, rows = progress[-1]
        before = [mark for mark in progress if 0 < mark[0] <= reads / 2]
        doublings = math.log2(max(rows / (self.tuning.tail * self.nrows), 1))
        if not before or doublings == 0:
            return reads
        early, others = before[-1]
        power = math.log(max(others / rows, 1)) / math.log(reads / early)
        return reads * 2.0 ** min(doublings / max(power, 0.01), 60)

    def _is_steady(self, progress: list[tuple[float, int]]) -> bool:
        """Tell if the rows that wait get fewer as fast, in shares, as two readings before."""
        tuning, rates, (end, rows) = self.tuning, [], progress[-1]
        for mark in reversed(progress):
            if mark[0] <= end - tuning.pace:
                rates.append(math.log(mark[1] / max(rows, 1)) / (end - mark[0]))
                end, rows = mark
        is_known = progress[-1][0] < tuning.trusted and len(rates) > 1
        return is_known and rates[0] >= max(tuning.steady * rates[1], tuning.little)

    def _bid_in_turns(self, epsilon: Any, few: int) -> int:
        """Let rows and columns bid in turns until few are unmatched, or a search is better."""
        outcome = DONE
        most = int(self.paths.spot[SCANS]) + self.tuning.turns * self.nnz
        unmatched = self.bidders.unmatched
        while unmatched[0].size > few and outcome == DONE:
            outcome = self._outcome(self.bidders.bid_in_turns(unmatched, epsilon, few, most))
            unmatched = self.bidders.unmatched
            if outcome == DONE and int(self.paths.spot[SCANS]) > most:
                outcome = SPENT
        return outcome

    def _serve_last(self, epsilon: Any, few: int) -> int:
        """Bid in turns, and search paths for all unmatched rows at once, until few are unmatched.

        SPENT if few of them have disjoint paths, or turns after a search serve none of them, so
        that a coarser epsilon is better; LOW if no full assignment exists.
        """
        search, poor, is_idle = self._joint_search(), 0, False
        outcome = self._bid_in_turns(epsilon, few)
        while outcome == SPENT and not (
            self.epsilon.can_rise and (is_idle or poor >= self.tuning.poor)
        ):
            outcome = self._search_jointly(search, epsilon, few)
            poor += 1
            if outcome == DONE:
                before = self.bidders.unmatched[0].size
                outcome = self._bid_in_turns(epsilon, few)
                is_idle = self.bidders.unmatched[0].size == before
        return outcome

    def _search_after_war(self, epsilon: Any, few: int) -> int:
        """Search paths for all unmatched rows at once, twice; return DONE or LOW.

        A search moves the prices around all of them as far as bids of epsilon each do not get. The
        first one may reach all unmatched columns from a few rows near them, and moves others less.
        """
        search, outcome = self._joint_search(), DONE
        for _ in range(self.tuning.searches):
            if outcome == DONE and self.bidders.unmatched[0].size > few:
                outcome = self._search_once(search, epsilon)
        self.bidders.part_rows(self.paths.far)  # marks only
        return outcome

    def _search_once(self, search: JointSearch, epsilon: Any) -> int:
        """Search once; LOW if no full assignment exists, or if sums of prices may overflow."""
        found = search.round(epsilon, self.beat)
        self.is_infeasible = not found
        return DONE if found and self.paths.price.min() >= self.floor else LOW

    def _search_jointly(self, search: JointSearch, epsilon: Any, few: int) -> int:
        """Search while the searches find many paths; strictly, until few rows are unmatched.

        LOW if no full assignment exists, or prices are so low that sums may overflow. SPENT instead
        of strict searches, if a coarser epsilon may follow.
        """
        paths = self.paths
        found = rows = self.bidders.unmatched[0].size
        while rows > few and (found >= self.tuning.good_round * rows or search.strict):
            if search.strict and self.epsilon.can_rise:
                return SPENT
            if search.strict and self.before is not None:
                paths.price[:] = self.before
                self.before = None
                self.bidders.part_all(epsilon)
            before = rows
            if self._search_once(search, epsilon) == LOW:
                return LOW
            rows = self.bidders.unmatched[0].size
            found = before - rows
        self.bidders.part_rows(paths.far)  # marks only
        return DONE

    def _narrow_prices(self) -> np.ndarray:
        """Raise prices that are below the highest one by more than twice the range of the costs.

        Returns the unmatched rows, after pairs that are not within epsilon are parted.
        """
        price, epsilon = self.paths.price, self.number(self.epsilon.now)
        np.maximum(price, price.max() - 2 * self.spread, out=price)
        self.bidders.part_all(epsilon)
        return self.bidders.unmatched[0].astype(np.int32)

    def _joint_search(self, *, is_exact: bool = False) -> JointSearch:
        bidders = self.bidders
        return JointSearch(
            self.paths, bidders.row_dual, bidders.is_slack, self.tuning, is_exact=is_exact
        )

    @property
    def _most(self) -> int:
        """Entries that a phase may read before it is a price war."""
        return self.epsilon.patience * self.nnz

    def _outcome(self, is_peaceful: bool) -> int:
        """Return how the phase ends after bids, or DONE if it may go on."""
        if not is_peaceful:
            return LOW
        return DONE if int(self.paths.spot[SCANS]) <= self._most else SPENT
