"""Our own engine for costs on the CPU: an auction for the prices, exact paths for the proof.

Sparse costs go through four steps. Each leaves what the next needs:

1. *Trial*: the least costs, and the pairs that they make, as `sparse_paths` finds them. If the rows
   that are left may choose among several cheapest columns each, as many as can be are matched to
   such columns, by the searches of matchings. If few rows are left then, they get shortest
   augmenting paths. If these read no more than ``TRIAL`` times the entries, that is all.
2. *Auction*, from the trial's prices and pairs: free rows bid one after the other, with an epsilon
   that falls from what a row typically pays more for another column than its cheapest (`bidding`).
   A phase ends when few rows wait, and what is left goes on into the next, because the last rows of
   a phase take as many bids as all others. At the end nearly all rows have a column, at prices
   within the last epsilon of optimal ones.
3. *Repair*: pairs that are not exactly tight are parted. These are few, because a bid
   higher than epsilon leaves the bidder's pair tight.
4. *Paths*: exact shortest augmenting paths for the rows that are left. They are short, since the
   prices are nearly right. If columns may stay free, then so do those whose price the auction has
   lowered although they are free now: each searches for its own augmenting path, in the transposed
   matrix, or for the price 0.

So the result is exact: no epsilon is left in it. Floats are taken as they are, and a pair counts as
tight if it is but for rounding. Integers lose their common divisor, and are multiplied by a power
of two, so that bids may differ by less than 1, which breaks most ties. After the auction their
prices are rounded down to units again. If v_k <= v_j + y for an integer y, that holds for the
rounded ones, too: tight pairs stay tight. Pairs within epsilon of it mostly become so.

Memory beside the costs: 12 bytes an entry, 20 if costs are integers, and 40 a vertex; while all
tight pairs are matched, 4 more an entry and 28 a vertex, and with the transposed matrix of step 4,
24 more an entry.

References
----------
Bertsekas, *Auction algorithms for network flow problems*, Computational Optimization and
Applications 1, 1992.
Duff, Koster, *On algorithms for permuting large entries to the diagonal of a sparse matrix*, SIAM
J. Matrix Analysis 22, 2001.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import AssignmentTask, Stopped
from gpumatch.cpu.assignment import bidding, dense_engine, sparse_paths
from gpumatch.cpu.assignment.dense_paths import FOUND, HEAD, NEXT, SCANS, SPENT
from gpumatch.cpu.assignment.feasibility import complete
from gpumatch.cpu.assignment.queues import Queue
from gpumatch.cpu.assignment.shortest_augmenting_path import SparsePaths
from gpumatch.cpu.heartbeat import heartbeat
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["run"]

BUDGET = 2**22
"""Entries looked at between two returns to Python: a tenth of a second."""
TRIAL = 4
"""Times the entries that the trial's paths may read, and may be expected to by its first ones."""
LEFT_OVER = 1 / 40
"""The share of the rows that may be left to the trial's paths."""
SMALL = 2**11
"""Entries up to which paths are always tried: an auction has a millisecond of overhead."""
STEP = 1 / 4
"""The share of the entries that the trial reads before it is asked."""
FIRST = 4
"""The first epsilon is at most the range of costs divided by this."""
FACTOR = 5
"""From one epsilon to the next; Bertsekas advises 4 to 10."""
CALM = 1 / 200
"""The share of rows from which on a phase is so short that the next may be three factors finer."""
FINEST = 2.0**-24
"""The last epsilon, as a share of the range of costs."""
FEW = 16
"""Rows that may wait at the end of a phase."""
EACH = 256
"""Rows that must wait for each thread beyond the first; half as many end its share."""
MOST = 32
"""Times the entries that a phase may read. One that takes more is a war of prices."""
FINE = 2**12
"""What integers are multiplied by, at most."""
SAMPLE = 2**10
"""Costs whose common divisor is found first, because it mostly is 1; rows that are a sample."""
CHOICE = 2
"""Tight columns of a free row, on average, from which on all tight pairs are searched."""
GENTLE = 0.7
"""The first epsilon is at most the lower quartile of what a row could save, times this.

No simple fraction: costs that are small integers would tie.
"""
ROUNDING = 2.0**-50
"""The share of costs and prices by which a float's pair may miss being tight."""


def run(task: AssignmentTask) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped."""
    entries = task.costs.entries()
    if not isinstance(entries, tuple):
        return dense_engine.run(task)
    with Workers(task.threads, task.costs.nnz) as workers:
        engine = _Engine(task, entries, workers)
        try:
            engine.run()
        except Stopped:
            return False
        finally:
            engine.write()
    return True


class _Engine:
    """The state of a solution; its prices are in units of the scaled costs."""

    def __init__(self, task: AssignmentTask, entries: Any, workers: Workers) -> None:
        self.costs, self.solution, self.control = task.costs, task.solution, task.control
        self.workers = workers
        col_dual, limit = task.solution.col_dual, task.limit
        self.is_given = bool(col_dual.any())
        indptr, indices, weights = entries
        self.is_integer = col_dual.dtype.kind == "i"
        self.units = _Units.of(weights, limit, self.nrows) if self.is_integer else _Units()
        weights, col_dual, limit = self.units.scaled(weights, col_dual, limit)
        low, high = _extent(weights, limit)
        self.is_even = low == high and limit is None  # whatever the pairs are
        if not (self.is_given or self.is_even):
            task.solution.clear()
        self.paths = SparsePaths(
            (indptr, indices, weights), task.costs, *task.mates, col_dual, limit
        )
        self.number = self.paths.price.dtype.type
        self.spread = self.number(high - low)
        self.task = task
        self.floor = -(self.nrows + 1) * max(-low, high)
        self.budget = min(BUDGET, MOST * (task.costs.nnz + self.nrows))
        self.rounding = 0.0 if self.is_integer else ROUNDING
        self.beat = heartbeat(self.control, lambda: self.paths.matched)
        self.is_settled = True

    @property
    def nrows(self) -> int:
        return self.solution.row_to_col.size

    def run(self) -> None:
        """All steps; raises Stopped."""
        if self.is_given:
            self.is_settled = False
            if not self.paths.all_match:
                np.minimum(self.paths.price, 0, out=self.paths.price)
        elif self.is_even:
            if not complete(self.task, *self.task.mates):
                raise Stopped
            return
        elif self._try_paths():
            return
        else:
            self._hold_auction()
            self._round_prices()
        if self._serve_rows() and not self.paths.all_match:
            self._serve_cols()

    def write(self) -> None:
        """The duals of the prices, in the units of the costs."""
        paths, (row_dual, col_dual) = self.paths, self.solution.duals
        if not paths.all_match:
            np.minimum(paths.price, 0, out=paths.price)
            if not self.is_settled:
                paths.price[self.solution.col_to_row < 0] = 0
        paths.write_duals(row_dual, col_dual)
        self.units.restore(row_dual, col_dual)

    # -- the trial ---------------------------------------------------------------------------------

    def _try_paths(self) -> bool:
        """Pairs and paths from the least costs, while these are cheap; whether that was all."""
        paths, control = self.paths, self.control
        if not paths.begin(control):
            raise Stopped
        free = paths.start_with_free_rows()
        if free.size and self._have_choice(free):
            if not paths.match_all_tight(control, self.workers):
                raise Stopped
            free = paths.start_with_free_rows()
        few = LEFT_OVER * self.nrows if self.costs.nnz > SMALL else free.size
        needs_paths = self.units.is_crude or self.spread == 0
        is_promising = free.size <= few or needs_paths
        step, most = int(STEP * self.costs.nnz) + 1, TRIAL * self.costs.nnz
        outcome = SPENT if free.size else FOUND
        while outcome == SPENT and is_promising:
            outcome = paths.augment_some(free, min(step, sparse_paths.BUDGET))
            self.beat()
            scans, served = int(paths.spot[SCANS]), int(paths.spot[NEXT]) + 1
            is_slow = scans > most or most / 4 > scans > most * served / free.size
            if is_slow and not needs_paths:
                break
        paths.record("trial", free, paths.matched, control)
        if outcome != SPENT:
            return True
        paths.leave_search()
        if paths.all_match:
            paths.price -= paths.price.max()
        return False

    def _have_choice(self, rows: np.ndarray) -> bool:
        """Whether these rows have several tight columns each, by a sample of them."""
        own, excess = self.paths.excess(rows[:: rows.size // SAMPLE + 1])
        return bool(np.count_nonzero(excess == 0) >= CHOICE * own)

    # -- the auction -------------------------------------------------------------------------------

    def _hold_auction(self) -> None:
        """Auctions of falling epsilon, until few rows are parted for the next."""
        self.is_settled = False
        finest = max(self.spread * FINEST, 1 if self.is_integer else 0)
        epsilon = max(min(self.spread / FIRST, GENTLE * self._typical_excess()), finest)
        bidders = self.nrows - self.paths.matched
        while bidders > FEW and self._hold_phase(self.number(epsilon)) and epsilon > finest:
            factor = FACTOR if bidders > CALM * self.nrows else FACTOR**3
            epsilon = max(epsilon / factor, finest)
            self._part_slack_pairs(epsilon)
            bidders = self.nrows - self.paths.matched

    def _typical_excess(self) -> float:
        """The lower quartile of what other columns cost rows more than their cheapest."""
        _, excess = self.paths.excess(np.arange(0, self.nrows, self.nrows // SAMPLE + 1))
        dearer = excess[excess > 0]
        return float(np.quantile(dearer, 1 / 4)) if dearer.size else math.inf

    def _hold_phase(self, epsilon: Any) -> bool:
        """Let the free rows bid until few are left; False if that is not worth it any more."""
        paths = self.paths
        free = paths.start_with_free_rows()
        waiting, scans = free, 0
        while waiting.size > FEW:
            threads = max(1, min(self.workers.threads, waiting.size // EACH))
            queues = [Queue(share) for share in np.array_split(waiting, threads)]
            few = FEW if threads == 1 else EACH // 2
            is_peaceful = self.workers.run(partial(self._hold, queues, epsilon, few), threads)
            waiting = np.concatenate([queue.waiting for queue in queues])
            scans += sum(int(queue.state[bidding.SCANS]) for queue in queues)
            self.beat()
            if not is_peaceful or scans > MOST * self.costs.nnz:
                return False
        paths.spot[SCANS] = scans
        paths.record("auction", free, paths.matched, self.control)
        return True

    def _hold(self, queues: list[Queue], epsilon: Any, few: int, worker: int) -> bool:
        """Let the rows of the worker's queue bid; False if a price is too low."""
        paths, queue = self.paths, queues[worker]
        outcome = bidding.hold(
            *paths.entries,  # IN
            paths.price, paths.row_to_col, paths.col_to_row, queue.rows, queue.state,  # OUT
            epsilon, self.spread, paths.limit, paths.leaves,  # IN
            paths.far, self.floor, few, self.budget,  # IN
        )  # fmt: skip
        return bool(outcome != bidding.LOW)

    def _part_slack_pairs(self, epsilon: Any) -> None:
        """Part the pairs that cost their rows over epsilon more than they must."""
        paths, count = self.paths, self.workers.threads
        bounds = [self.nrows * share // count for share in range(count + 1)]

        def part(worker: int) -> bool:
            bidding.drop_slack(
                *paths.entries, paths.price,  # IN
                paths.row_to_col, paths.col_to_row,  # OUT
                paths.limit, paths.leaves, self.number(epsilon), self.rounding,  # IN
                *bounds[worker : worker + 2],  # IN
            )  # fmt: skip
            return True

        self.workers.run(part, count)
        self.beat()

    def _round_prices(self) -> None:
        """Round integer prices down to the units of the costs, from where they are most apart.

        A pair within epsilon of being tight is tight then, unless its column's fraction of a unit
        is at one end of the circle of fractions, and that of a column as cheap at the other.
        """
        scale, price = self.units.scale, self.paths.price
        matched = price[self.solution.col_to_row >= 0]
        if scale == 1 or not matched.size:
            return
        fractions = np.flatnonzero(np.bincount(matched % scale, minlength=scale))
        gaps = np.diff(fractions, append=fractions[0] + scale)
        first = fractions[(gaps.argmax() + 1) % fractions.size]
        rise = (scale - first) % scale
        price[:] = np.minimum((price + rise) // scale * scale, 0)

    # -- exact paths -------------------------------------------------------------------------------

    def _serve_rows(self) -> bool:
        """Exact paths for all rows that are left; False if one has none."""
        paths = self.paths
        self._part_slack_pairs(0)
        if not (paths.match_tight(self.control) and paths.augment(self.control)):
            raise Stopped
        return paths.leaves or paths.matched == self.nrows

    def _serve_cols(self) -> None:
        """Paths for the columns that are free at a price below 0, until there are none."""
        paths = self.paths
        row_dual, col_to_row = self.solution.row_dual, self.solution.col_to_row
        if not paths.leaves:
            paths.price -= paths.price.max()
        roots = np.flatnonzero((col_to_row < 0) & (paths.price < 0)).astype(np.int32)
        if roots.size:
            paths.write_minima(row_dual)
            entries = _transpose(paths.entries, paths.price.size)
            mates = col_to_row, self.solution.row_to_col
            turned = SparsePaths(entries, self.costs, *mates, row_dual, self.number(0))
            turned.spot[:] = 0
            turned.spot[HEAD] = -1
            if not turned.serve(roots, self.control):
                raise Stopped
            row_dual[:] = turned.price
            turned.write_minima(paths.price)
            paths.price[col_to_row < 0] = 0  # but for rounding
        self.is_settled = True


class _Units(NamedTuple):
    """Integer costs as they are counted here: from `origin` on, in units, each `scale` steps.

    `is_crude` if that is not possible, because they are so large that steps would overflow.
    """

    origin: int = 0
    unit: int = 1
    scale: int = 1
    is_crude: bool = False

    @classmethod
    def of(cls, weights: np.ndarray, limit: Any, nrows: int) -> _Units:
        """The largest common unit, and as many steps as there is room for."""
        low, high = (int(end) for end in _extent(weights, limit))
        unit = 0 if limit is None else int(limit) - low
        for part in weights[:SAMPLE], weights:
            if unit != 1:
                unit = math.gcd(unit, int(np.gcd.reduce(part - low, initial=0)))
        unit = max(unit, 1)
        room = 2**60 // (8 * (nrows + 1) * max((high - low) // unit, 1))
        if room == 0:
            return cls(is_crude=True)
        return cls(low, unit, min(FINE, 2 ** (room.bit_length() - 1)))

    def scaled(self, weights: Any, price: Any, limit: Any) -> tuple[Any, Any, Any]:
        """Costs, prices and the limit in these units."""
        if self == _Units() or self.is_crude:
            return weights, price, limit
        costs = (weights - self.origin) // self.unit * self.scale
        if limit is not None:
            limit = (limit - self.origin) // self.unit * self.scale
        return costs, price // self.unit * self.scale, limit

    def restore(self, row_dual: np.ndarray, col_dual: np.ndarray) -> None:
        """Make the duals those of the costs, rounded to whole units."""
        if self == _Units() or self.is_crude:
            return
        col_dual[:] = col_dual // self.scale * self.unit
        row_dual[:] = self.origin - (-row_dual // self.scale) * self.unit


def _extent(weights: np.ndarray, limit: Any) -> tuple[Any, Any]:
    """The least and the greatest of costs and limit."""
    ends = [] if limit is None else [limit]
    if weights.size:
        ends += [weights.min(), weights.max()]
    return (min(ends), max(ends)) if ends else (0, 0)


def _transpose(entries: Any, ncols: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The entries by columns."""
    _, indices, weights = entries
    turned = np.empty(ncols + 1, np.int64), np.empty_like(indices), np.empty_like(weights)
    sparse_paths.transpose(
        *entries,  # IN
        *turned,  # OUT
    )  # fmt: skip
    return turned
