"""The auction of the dense engine: phases of bids whose epsilon falls, and the repair after them.

Rows bid one after the other (`candidate_bids.hold`), each thread for the rows of its own queue. A
phase ends when few rows are unmatched. The next phase begins from its prices and pairs, but parts
pairs whose slack exceeds the new epsilon.

The first epsilon is fine, because most costs need no more. If rows outbid each other for long by so
little, as those of a cluster do that must take far columns, epsilon is made coarser. The prices
stand, and so do the pairs, whose slack is less than that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from gpumatch.contracts import Control, Stopped
from gpumatch.cpu.assignment.dense import candidate_bids
from gpumatch.cpu.assignment.dense.candidate_paths import BUDGET, KnownPaths
from gpumatch.cpu.assignment.dense.rival import Rival
from gpumatch.cpu.assignment.dense.tuning import Tuning
from gpumatch.cpu.searches.state import KNEW, LOOKED, LOW, SCANS, Queue

__all__ = ["Auction"]

OFTEN = 4
"""Readings of all entries after which the auction may turn to something else, at the latest."""


class Auction:
    """Bids for the columns of `paths`, whose prices and pairs they change.

    Parameters
    ----------
    paths : KnownPaths
        The matrix, prices, pairs, and what each row knows.
    tuning : Tuning
        When phases end, and how epsilon falls.
    rival : Rival
        Paths that go on if the auction takes longer than they seem to need.
    control, beat
        What hears of each phase, and what it is told with between two calls of kernels.
    """

    def __init__(
        self,
        paths: KnownPaths,
        tuning: Tuning,
        rival: Rival,
        control: Control,
        beat: Callable[[], None],
    ) -> None:
        self.paths, self.costs, self.workers = paths, paths.costs, paths.workers
        self.tuning, self.control, self.beat = tuning, control, beat
        self.rival, self.read, self.has_lost = rival, 0, False
        self.looks_pay, self.is_war, self.wars_left = True, False, tuning.wars
        self.nrows = paths.row_to_col.size
        is_bounded = math.isfinite(self.costs.high)
        self.spread = float(
            self.costs.high - self.costs.low if is_bounded else 2 * self.costs.largest
        )
        self.coarsest = self.spread / tuning.first
        self.budget = min(BUDGET, OFTEN * self.costs.nnz)

    def hold(self) -> bool:
        """Hold phases of falling epsilon, until hardly any row must bid in the next one.

        Returns False if the rival has ended before: its prices and pairs are the result then.
        """
        tuning = self.tuning
        finest = max(self.spread * tuning.finest, 1 / tuning.fine if self.costs.is_integer else 0)
        bidders, fought = self.nrows - self.paths.matched, math.inf
        share = tuning.gentle if bidders > tuning.crowd * self.nrows else tuning.gentlest
        gentle = share * self._typical_excess()
        epsilon = max(min(self.coarsest, gentle), finest)
        while bidders > tuning.few or epsilon >= fought:
            if not self._hold_phase(epsilon) or epsilon <= finest:
                break
            if self.is_war:
                fought = min(fought, epsilon)
                epsilon = min(epsilon * tuning.coarser, self.coarsest)
                continue
            self.wars_left = 0  # a later phase begins at prices that the first one has made
            factor = tuning.factor if bidders > tuning.calm * self.nrows else tuning.factor**3
            epsilon = max(epsilon / factor, finest)
            self.part_slack_pairs(epsilon)
            bidders = self.nrows - self.paths.matched
        return not self.has_lost

    def _typical_excess(self) -> float:
        """Return the lower quartile of what dearer columns cost rows more than their cheapest."""
        reduced = self.paths.values[:: self.nrows // self.tuning.sample + 1] - self.paths.price
        reduced = reduced[reduced.min(axis=1) < math.inf]
        excess = reduced - reduced.min(axis=1, keepdims=True)
        dearer = excess[(excess > 0) & (excess < math.inf)]
        return float(np.quantile(dearer, 1 / 4)) if dearer.size else math.inf

    def _hold_phase(self, epsilon: float) -> bool:
        """Let rows bid until few are unmatched; False if it is a price war that may not go on.

        `is_war` is True after a war that ended it early, to go on with a coarser epsilon.
        """
        paths, tuning = self.paths, self.tuning
        unmatched = paths.start_with_unmatched_rows()
        waiting, scans, looks, knew = unmatched, 0, 0, 0
        self.is_war = False
        while waiting.size > tuning.few:
            threads = max(1, min(self.workers.threads, waiting.size // tuning.each))
            queues = [Queue(share) for share in np.array_split(waiting, threads)]
            few = tuning.few if threads == 1 else waiting.size // (tuning.shrink * threads)
            is_peaceful = self.workers.run(partial(self._hold, queues, epsilon, few), threads)
            waiting = np.concatenate([queue.waiting for queue in queues])
            scans += sum(int(queue.state[SCANS]) for queue in queues)
            looks += sum(int(queue.state[LOOKED]) for queue in queues)
            knew += sum(int(queue.state[KNEW]) for queue in queues)
            self.beat()
            if not is_peaceful or scans > tuning.most * self.costs.nnz or self._loses(scans):
                return False
            may_end = self.wars_left and epsilon < self.coarsest and waiting.size > tuning.few
            if may_end and scans > tuning.war * self.costs.nnz:
                self.is_war, self.wars_left = True, self.wars_left - 1
                break
        self.looks_pay = candidate_bids.looks_pay(looks, knew, paths.price.size)
        self.read += scans
        paths.spot[SCANS] = scans
        paths.record("auction", unmatched, paths.matched, self.control)
        return True

    def _loses(self, scans: int) -> bool:
        """True if the rival ends in the time that all phases have taken, and so many scans more."""
        allowed = self.tuning.faster * (self.read + scans) / self.workers.threads
        step = int(self.tuning.step * self.costs.nnz) + 1
        self.has_lost = self.rival.wins(allowed, step, self.control, self.beat)
        return self.has_lost

    def _hold(self, queues: list[Queue], epsilon: float, few: int, worker: int) -> bool:
        """Let the rows of the worker's queue bid; False if a price is below the floor."""
        queue, floor = queues[worker], -4 * (self.nrows + 1) * self.spread
        outcome = candidate_bids.hold(
            *self.paths.state,  # IN, OUT
            self.paths.scratch[worker], queue.rows, queue.state,  # OUT
            epsilon, self.spread, floor, few, self.budget,  # IN
        )  # fmt: skip
        return bool(outcome != LOW)

    def part_slack_pairs(self, epsilon: float) -> None:
        """Part the pairs whose slack exceeds epsilon."""
        rounding = 0.0 if self.costs.is_integer else self.tuning.rounding

        def part(worker: int, first: int, last: int) -> None:
            candidate_bids.part_slack(
                *self.paths.state,  # IN, OUT
                self.paths.scratch[worker],  # OUT
                float(epsilon), rounding, self.looks_pay, first, last,  # IN
            )  # fmt: skip

        if not self.paths.share(part, self.control):
            raise Stopped

    def round_prices(self) -> None:
        """Round prices down to integers, from where their fractions are farthest apart.

        Tight pairs stay tight then, and most pairs within epsilon become tight.
        """
        price, bound = self.paths.price, self.paths.known[2]
        fractions = np.sort(price % 1)
        gaps = np.diff(fractions, append=fractions[0] + 1)
        rise = -fractions[(gaps.argmax() + 1) % fractions.size] % 1
        price[:] = np.floor(price + rise + 1 / self.tuning.fine**2)  # but for rounding
        bound[:] = np.ceil(bound - rise - 1 / self.tuning.fine)
