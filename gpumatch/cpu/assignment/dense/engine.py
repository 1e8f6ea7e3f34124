"""Our own engine for dense costs on the CPU: exact bids and paths that read few lines of a matrix.

Each row knows its cheapest columns, and a bound of all others that holds while prices fall (see
`known_columns`). On that stand these steps, each of which leaves what the next needs:

1. *Start*: if all columns must be matched, these are priced at their least costs, and rows take the
   columns for which they are cheapest. Then each row looks at its line. Rows bid for columns, a
   limited number of times. So far these are Jonker and Volgenant's steps, and two readings of the
   matrix.
2. *Trial*: shortest augmenting paths, as long as they are short: those served tell that the others
   will read no more than a share of the matrix. Costs that are drawn at random end here, and those
   with many ties.
3. *Auction*: else free rows bid, with an epsilon that falls from what a row typically pays more for
   another column than its cheapest. As in `engine`, a phase ends when few rows wait, and these go
   on into the next. At the end nearly all rows have a column, at prices within the last epsilon of
   optimal ones. If columns may stay free, there is no auction, because their prices must stay 0.
4. *Repair*: integer prices are rounded down, and pairs that are not exactly tight are parted.
5. *Paths*: exact shortest augmenting paths for the rows that are left.

The result is exact: no epsilon is left in it, and no column was left out but by a bound. Points in
the plane, costs of low rank and distances that are maximised need steps 3 to 5. An auction reads 8
to 30 matrices' worth of lines then; Jonker and Volgenant's paths read a line for each row of a
tree.

All numbers are float64. Integers are exact in it if 16 (n + 1) max |c| < 2**53; larger ones go to
`shortest_augmenting_path`, and so do small matrices, whose paths take milliseconds. In middling
matrices, paths in the whole matrix come before step 1, unless all rows want the same columns. They
give way, with prices and pairs kept, when the paths so far tell that the others will read more than
the other steps would. `tuning` has the bounds.

Memory beside the costs: 510 bytes a row, and 50 bytes a column and 24 more for each thread.

References
----------
Bertsekas, *Auction algorithms for network flow problems*, Computational Optimization and
Applications 1, 1992.
Bus, Tvrdík, *Look-back auction algorithm for the assignment problem and its distributed memory
implementation*, PDCS 2003.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from gpumatch.contracts import AssignmentTask, Control, Stopped
from gpumatch.cpu.assignment.dense import candidates
from gpumatch.cpu.assignment.dense import tuning as tunings
from gpumatch.cpu.assignment.dense.candidate_paths import BUDGET, KnownPaths
from gpumatch.cpu.assignment.dense.paths import DensePaths
from gpumatch.cpu.assignment.dense.tuning import Tuning
from gpumatch.cpu.assignment.search.bid_queue import Queue
from gpumatch.cpu.assignment.search.paths import Paths
from gpumatch.cpu.assignment.search.state import FOUND, LOW, NEXT, SCANS, SPENT
from gpumatch.cpu.heartbeat import heartbeat
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["run", "takes"]


def takes(task: AssignmentTask, tuning: Tuning | None = None) -> bool:
    """Whether the costs are many, not all the same, and exact in float64."""
    costs, tuning = task.costs, tuning or tunings.DEFAULT
    largest = max(costs.largest, abs(task.limit or 0))
    largest = max(largest, abs(task.solution.col_dual).max(initial=0))
    is_exact = not costs.is_integer or 16 * (costs.shape[0] + 1) * largest < 2**53
    return costs.nnz > tuning.small and costs.low < costs.high and is_exact


def run(task: AssignmentTask, tuning: Tuning | None = None) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped."""
    tuning = tuning or tunings.DEFAULT
    if task.costs.nnz <= tuning.middle:
        ended = _try_whole_lines(task, tuning)
        if ended is not None:
            return ended
    task.solution.has_duals = False
    with Workers(task.threads, task.costs.nnz) as workers:
        engine = _DenseEngine(task, workers, tuning)
        try:
            engine.run()
        except Stopped:
            return False
        finally:
            engine.paths.write_duals(*task.duals)
            task.solution.has_duals = True
    return True


def _try_whole_lines(task: AssignmentTask, tuning: Tuning) -> bool | None:
    """Paths in the whole matrix, if they are short: as `run` answers; None if they are not."""
    costs, control = task.costs, task.control
    paths = DensePaths(costs.entries(), costs, *task.mates, task.solution.col_dual, task.limit)
    try:
        if not paths.begin(control):
            return False
        if paths.all_match and paths.matched < tuning.spread_out * costs.shape[0]:
            return None
        if not paths.bid(control):
            return False
        ended = try_paths(paths, tuning.patience, control, step=int(tuning.step * costs.nnz) + 1)
    except Stopped:
        return False
    finally:
        paths.write_duals(*task.duals)
        task.solution.has_duals = True
    return True if ended else None


def try_paths(paths: Paths, most: float, control: Control, *, step: int) -> bool:
    """Paths for the free rows; False if more than `most` scans are ahead, as those served tell.

    The last paths are longer than the first, but none scans more than the whole matrix.
    """
    free = paths.start_with_free_rows()
    beat = heartbeat(control, lambda: paths.matched)
    outcome = SPENT if free.size else FOUND
    while outcome == SPENT:
        outcome = paths.augment_some(free, step)
        beat()
        scans, served = int(paths.spot[SCANS]), int(paths.spot[NEXT])
        if scans * (free.size - served) > most * (served + 1):
            break
    paths.record("trial", free, paths.matched, control)
    return outcome != SPENT


class _DenseEngine:
    """The steps, on the state that `KnownPaths` has."""

    def __init__(self, task: AssignmentTask, workers: Workers, tuning: Tuning) -> None:
        self.tuning = tuning
        self.costs, self.control, self.workers = task.costs, task.control, workers
        self.paths = KnownPaths(task, workers)
        self.nrows = task.solution.row_to_col.size
        paths = self.paths  # not self: a circle of references would keep all arrays for longer
        self.beat = heartbeat(self.control, lambda: paths.matched)
        is_bounded = math.isfinite(self.costs.high)
        self.spread = float(
            self.costs.high - self.costs.low if is_bounded else 2 * self.costs.largest
        )

    def run(self) -> None:
        """All steps; raises Stopped."""
        paths, control = self.paths, self.control
        if not (paths.begin(control) and paths.look(control) and paths.bid(control)):
            raise Stopped
        if self._try_paths():
            return
        if paths.all_match:
            self._hold_auction()
            if self.costs.is_integer:
                self._round_prices()
            self._part_slack_pairs(0)
        if not paths.augment(control):
            raise Stopped

    # -- the trial ---------------------------------------------------------------------------------

    def _try_paths(self) -> bool:
        """Paths while they are short, or cannot be avoided; whether that was all."""
        most = self.tuning.trial * self.costs.nnz if self.paths.all_match else math.inf
        step = int(self.tuning.step * self.costs.nnz) + 1
        if try_paths(self.paths, most, self.control, step=min(step, BUDGET)):
            return True
        self.paths.leave_search()
        return False

    # -- the auction -------------------------------------------------------------------------------

    def _hold_auction(self) -> None:
        """Auctions of falling epsilon, until few rows are parted for the next."""
        tuning = self.tuning
        finest = max(self.spread * tuning.finest, 1 / tuning.fine if self.costs.is_integer else 0)
        gentle = tuning.gentle * self._typical_excess()
        epsilon = max(min(self.spread / tuning.first, gentle), finest)
        bidders = self.nrows - self.paths.matched
        while bidders > tuning.few and self._hold_phase(epsilon) and epsilon > finest:
            factor = tuning.factor if bidders > tuning.calm * self.nrows else tuning.factor**3
            epsilon = max(epsilon / factor, finest)
            self._part_slack_pairs(epsilon)
            bidders = self.nrows - self.paths.matched

    def _typical_excess(self) -> float:
        """The lower quartile of what other columns cost rows more than their cheapest."""
        reduced = self.paths.values[:: self.nrows // self.tuning.sample + 1] - self.paths.price
        reduced = reduced[reduced.min(axis=1) < math.inf]
        excess = reduced - reduced.min(axis=1, keepdims=True)
        dearer = excess[(excess > 0) & (excess < math.inf)]
        return float(np.quantile(dearer, 1 / 4)) if dearer.size else math.inf

    def _hold_phase(self, epsilon: float) -> bool:
        """Let the free rows bid until few are left; False if that is not worth it any more."""
        paths, tuning = self.paths, self.tuning
        free = paths.start_with_free_rows()
        waiting, scans = free, 0
        while waiting.size > tuning.few:
            threads = max(1, min(self.workers.threads, waiting.size // tuning.each))
            queues = [Queue(share) for share in np.array_split(waiting, threads)]
            few = tuning.few if threads == 1 else waiting.size // (tuning.shrink * threads)
            is_peaceful = self.workers.run(partial(self._hold, queues, epsilon, few), threads)
            waiting = np.concatenate([queue.waiting for queue in queues])
            scans += sum(int(queue.state[SCANS]) for queue in queues)
            self.beat()
            if not is_peaceful or scans > tuning.most * self.costs.nnz:
                return False
        paths.spot[SCANS] = scans
        paths.record("auction", free, paths.matched, self.control)
        return True

    def _hold(self, queues: list[Queue], epsilon: float, few: int, worker: int) -> bool:
        """Let the rows of the worker's queue bid; False if a price is too low."""
        queue, floor = queues[worker], -4 * (self.nrows + 1) * self.spread
        outcome = candidates.hold(
            *self.paths.state,  # IN, OUT
            self.paths.scratch[worker], queue.rows, queue.state,  # OUT
            epsilon, self.spread, floor, few, BUDGET,  # IN
        )  # fmt: skip
        return bool(outcome != LOW)

    def _part_slack_pairs(self, epsilon: float) -> None:
        """Part the pairs that cost their rows over epsilon more than they must."""
        rounding = 0.0 if self.costs.is_integer else self.tuning.rounding

        def part(worker: int, first: int, last: int) -> None:
            candidates.part_slack(
                *self.paths.state,  # IN, OUT
                self.paths.scratch[worker],  # OUT
                float(epsilon), rounding, first, last,  # IN
            )  # fmt: skip

        if not self.paths.share(part, self.control):
            raise Stopped

    def _round_prices(self) -> None:
        """Round prices down to integers, from where their fractions are most apart.

        As in `engine`: so tight pairs stay tight, and those within epsilon mostly become so.
        """
        price, bound = self.paths.price, self.paths.known[2]
        fractions = np.sort(price % 1)
        gaps = np.diff(fractions, append=fractions[0] + 1)
        rise = -fractions[(gaps.argmax() + 1) % fractions.size] % 1
        price[:] = np.floor(price + rise + 1 / self.tuning.fine**2)  # but for rounding
        bound[:] = np.ceil(bound - rise - 1 / self.tuning.fine)
