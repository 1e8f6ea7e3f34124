"""Our own engine for dense costs on the CPU: exact bids and paths that read few lines of a matrix.

Each row knows its cheapest columns, and a bound of all others that holds while prices fall (see
`candidates`). On that stand these steps, each from the prices and pairs of the one before:

1. *Start*: if all columns must be matched, they are priced at their least costs, and rows take the
   columns for which they are cheapest. If unmatched rows have several tight columns each, tight
   pairs are matched by cardinality (`ties`), in turns with shortest augmenting paths, as long as
   that serves many rows. Then each row looks at its line. Rows bid for columns, a limited number
   of times. But for ties, these are the steps of Jonker and Volgenant, and two readings of the
   matrix.
2. *Trial*: shortest augmenting paths, as long as they are short: the paths so far tell that the
   others will read no more than a share of the matrix. Costs that are drawn at random end here, and
   those with many ties. Then paths by whole lines (`paths`) follow, whose readings are cheaper,
   as long as they expect few of them: so end points near a line. In a large matrix, a sparse core
   (`core`) comes before the trial if more rows are unmatched, but not most, and after it if fewer
   are. Points in a few dimensions end there.
3. *Auction* (`auction`): else unmatched rows bid, with an epsilon that falls from what a row
   typically saves by its cheapest column. As in `sparse.engine`, a phase ends when few rows are
   unmatched, and these enter the next one. At the end nearly all rows have a column, at prices
   within the last epsilon of optimal ones. If columns may stay unmatched, steps 2 to 4 are left
   out, because prices of unmatched columns must stay 0. If the auction takes longer than the last
   paths of the trial seem to need, these go on, and the first to end gives the result (`rival`).
4. *Repair*: integer prices are rounded down, and pairs that are not exactly tight are parted. If
   unmatched rows have several tight columns each then, tight pairs are matched as in step 1.
5. *Paths*: the unmatched rows get exact shortest augmenting paths, by known columns while these
   are short, then by whole lines.

The result is exact: no epsilon is left in it, and no column was left out but by a bound. Points in
the plane, costs of low rank and distances that are maximised need steps 3 to 5. An auction reads 8
to 30 times the matrix then; the paths of Jonker and Volgenant read a line for each row of a tree.

Before all that, square costs that samples show to be Monge, or nearly so, are matched by the
diagonal of their order (`monge`). One reading of the matrix proves it, or tells which rows need
paths.

All numbers are float64. Integers are exact in it if 16 (n + 1) max |c| < 2**53; larger ones go to
`shortest_augmenting_path`, and so do small matrices, whose paths take milliseconds. In middling
matrices, paths in the whole matrix come before step 1, unless all rows want the same columns. They
give way, with prices and pairs kept, when the paths so far tell that the others will read more than
the other steps would. `tuning` has the bounds.

Memory beside the costs: 510 bytes a row, and 50 bytes a column and 24 more for each thread. A core
takes some 60 bytes for each of its pairs, which are 40 a row at first.

References
----------
Bertsekas, *Auction algorithms for network flow problems*, Computational Optimization and
Applications 1, 1992.
Bus, Tvrdík, *Look-back auction algorithm for the assignment problem and its distributed memory
implementation*, PDCS 2003.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpumatch.contracts import AssignmentTask, Control, Stopped
from gpumatch.cpu.assignment.dense import ties
from gpumatch.cpu.assignment.dense import tuning as tunings
from gpumatch.cpu.assignment.dense.auction import Auction
from gpumatch.cpu.assignment.dense.candidate_paths import BUDGET, KnownPaths
from gpumatch.cpu.assignment.dense.core import Core
from gpumatch.cpu.assignment.dense.paths import DensePaths
from gpumatch.cpu.assignment.dense.rival import Rival
from gpumatch.cpu.assignment.dense.tuning import Tuning
from gpumatch.cpu.heartbeat import heartbeat
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.cpu.searches.paths import Paths
from gpumatch.cpu.searches.state import FOUND, NEXT, SCANS, SPENT
from gpumatch.numeric import monge

__all__ = ["run", "takes"]

LATE = 2
"""A trial by whole lines scans at most this many times the scans that it may expect."""
JUDGED = 8
"""Paths are judged again when they have read one part in so many more."""


def takes(task: AssignmentTask, tuning: Tuning | None = None) -> bool:
    """True if the costs are many, not all equal, and exact in float64."""
    costs, tuning = task.costs, tuning or tunings.DEFAULT
    largest = max(costs.largest, abs(task.limit or 0))
    largest = max(largest, abs(task.solution.col_dual).max(initial=0))
    is_exact = not costs.is_integer or 16 * (costs.shape[0] + 1) * largest < 2**53
    return costs.nnz > tuning.small and costs.low < costs.high and is_exact


def run(task: AssignmentTask, tuning: Tuning | None = None) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped."""
    tuning = tuning or tunings.DEFAULT
    ended = _try_sort(task, tuning)
    if ended is not None:
        return ended
    rival = Rival()
    if task.costs.nnz <= tuning.middle:
        ended = _try_whole_lines(task, tuning, rival)
        if ended is not None:
            return ended
    task.solution.has_duals = False
    with Workers(task.threads, task.costs.nnz) as workers:
        engine = _DenseEngine(task, workers, tuning, rival)
        try:
            engine.run()
        except Stopped:
            return False
        finally:
            engine.paths.write_duals(*task.duals)
            task.solution.has_duals = task.solution.are_fair = True
    return True


def _try_sort(task: AssignmentTask, tuning: Tuning) -> bool | None:
    """Try the diagonal of a Monge order; return what `run` would, or None if it does not help.

    Then no pair is left, but in a large matrix the prices are, because costs that are nearly Monge
    have such prices. Paths in the whole matrix, which come next in a smaller one, begin without.
    """
    costs, control, solution = task.costs, task.control, task.solution
    is_square = costs.shape[0] == costs.shape[1] and task.limit is None
    if not (is_square and costs.is_complete and costs.has_matrix):
        return None
    if (solution.row_to_col >= 0).any() or solution.col_dual.any():
        return None
    values: Any = costs.entries()
    rounding = 0.0 if costs.is_integer else tuning.rounding
    noise = tuning.in_order * (float(costs.high) - float(costs.low))
    found = monge.sort(values, max(rounding * costs.largest, noise))
    if found is None:
        return None
    rows = np.arange(costs.shape[0], dtype=np.int32)
    solution.row_to_col[:], solution.col_dual[:] = found.row_to_col, found.price
    solution.col_to_row[found.row_to_col] = rows
    paths = DensePaths(values, costs, *task.mates, solution.col_dual, None)
    paths.unit, helps = costs.shape[1], True
    try:
        paths.part_slack_pairs(rounding)
        paths.record("sort", rows, paths.matched, control)
        if paths.matched < rows.size:
            step = int(tuning.step * costs.nnz) + 1
            helps = try_paths(paths, tuning.lines * rows.size, control, step=step)
        return True if helps else None
    except Stopped:
        return False
    finally:
        if helps:
            paths.write_duals(*task.duals)
            solution.has_duals = solution.are_fair = True
        else:
            solution.clear()
            if costs.nnz > tuning.middle:
                solution.col_dual[:] = found.price


def _try_whole_lines(task: AssignmentTask, tuning: Tuning, rival: Rival) -> bool | None:
    """Try paths in the whole matrix; return what `run` would, or None if they are not short.

    The rival keeps these then.
    """
    costs, control = task.costs, task.control
    paths = DensePaths(costs.entries(), costs, *task.mates, task.solution.col_dual, task.limit)
    try:
        if not paths.begin(control):
            return False
        before = paths.matched
        if _try_ties(paths, tuning, control):
            return True
        is_tied = paths.matched > before
        if paths.all_match and paths.matched < tuning.spread_out * costs.shape[0]:
            rival.keep(paths, tuning.patience)
            return None
        if not paths.bid(control):
            return False
        patience = tuning.patience if paths.all_match and not is_tied else tuning.lone_patience
        step = int(tuning.first_step * costs.nnz) + 1
        ended = try_paths(paths, patience, control, step=step, longest=LATE * patience)
        if not ended:
            rival.keep(paths, lines_ahead(paths))
    except Stopped:
        return False
    finally:
        paths.write_duals(*task.duals)
        task.solution.has_duals = task.solution.are_fair = True
    return True if ended else None


def _try_ties(paths: DensePaths, tuning: Tuning, control: Control) -> bool:
    """Match tight pairs and augment in turns, while rows have ties; True if all are matched."""
    nrows, values, is_worth_it = paths.row_to_col.size, paths.values, not paths.leaves
    while is_worth_it and ties.have_ties(paths, values, tuning.ties):
        before = paths.matched
        found = ties.match_tight(paths, control)
        is_worth_it = found >= tuning.tied * (nrows - before)
        if before + found == nrows:
            return True
        if is_worth_it:
            longest, step = nrows / 2, int(tuning.step * paths.costs.nnz) + 1
            if try_paths(paths, math.inf, control, step=step, longest=longest):
                return True
            is_worth_it = paths.matched > before + found  # else no price has changed
    return False


def try_paths(
    paths: Paths,
    most: float,
    control: Control,
    *,
    step: int,
    longest: float = math.inf,
    name: str = "trial",
) -> bool:
    """Augment from the unmatched rows; False if more than `most` scans seem to be ahead.

    The paths so far tell. The last paths are longer than the first, but none scans more than the
    whole matrix. After `longest` scans the attempt ends, too.
    """
    unmatched = paths.start_with_unmatched_rows()
    beat = heartbeat(control, lambda: paths.matched)
    outcome, scans = SPENT if unmatched.size else FOUND, 0
    while outcome == SPENT:
        outcome = paths.augment_some(unmatched, min(step, paths.budget))
        beat()
        before, scans, served = scans, int(paths.spot[SCANS]), int(paths.spot[NEXT])
        if JUDGED * (scans - before) < scans:
            step += step // JUDGED  # so the judgements are few, and late by so little
        if scans * (unmatched.size - served) > most * (served + 1) or scans > longest:
            break
    paths.record(name, unmatched, paths.matched, control)
    return outcome != SPENT


def lines_ahead(paths: Paths) -> float:
    """How many scans the unmatched rows seem to take yet, to judge by those that have paths."""
    unmatched = paths.row_to_col.size - paths.matched
    return int(paths.spot[SCANS]) * unmatched / (int(paths.spot[NEXT]) + 1)


class _DenseEngine:
    """The steps, on the state of `KnownPaths`."""

    def __init__(
        self, task: AssignmentTask, workers: Workers, tuning: Tuning, rival: Rival
    ) -> None:
        self.task, self.tuning, self.rival = task, tuning, rival
        self.costs, self.control, self.workers = task.costs, task.control, workers
        self.paths = KnownPaths(task, workers)
        paths = self.paths  # not self: a circle of references would keep all arrays for longer
        beat = heartbeat(self.control, lambda: paths.matched)
        self.auction = Auction(paths, tuning, rival, self.control, beat)

    def run(self) -> None:
        """Take all steps; raises Stopped."""
        paths, control, tuning = self.paths, self.control, self.tuning
        if not paths.begin(control):
            raise Stopped
        if self._try_ties():
            return
        if not (paths.look(control) and paths.bid(control)):
            raise Stopped
        if not paths.all_match:
            self._serve(tuning.short)
        elif not self._try_core_or_trial():
            if not self.auction.hold():
                self._take(self.rival)
                return
            if self.costs.is_integer:
                self.auction.round_prices()
            self.auction.part_slack_pairs(0)
            if not self._try_ties():
                self._serve(tuning.short_of_ties)

    def _try_core_or_trial(self) -> bool:
        """Try a sparse core and the trial, the likelier one first; True if all rows are matched."""
        paths, tuning = self.paths, self.tuning
        unmatched = 1 - paths.matched / paths.row_to_col.size
        has_core = self.costs.is_complete and self.costs.nnz > tuning.middle
        has_core &= unmatched <= tuning.too_many and not paths.is_given
        if has_core and unmatched > tuning.many:
            return self._try_core() or self._try_trial()
        return self._try_trial() or (has_core and self._try_core())

    def _try_core(self) -> bool:
        """Solve a core, and price all pairs; False if it would hold too many."""
        core = Core(self.task, self.paths, self.tuning)
        is_solved = core.solve()
        if core.round and not is_solved:
            self.auction.part_slack_pairs(0)
        return is_solved

    def _take(self, rival: Rival) -> None:
        """Take the prices and pairs of the rival, which has ended."""
        ours, theirs = self.paths, rival.paths
        if theirs is not None:
            ours.price[:] = theirs.price
            ours.row_to_col[:], ours.col_to_row[:] = theirs.row_to_col, theirs.col_to_row

    # -- paths -------------------------------------------------------------------------------------

    def _try_ties(self) -> bool:
        """Match tight pairs by cardinality, if there are many; True if all rows are matched."""
        paths, tuning = self.paths, self.tuning
        if paths.leaves or not ties.have_ties(paths, paths.values, tuning.ties):
            return False
        with paths.by_lines() as lines:
            return _try_ties(lines, tuning, self.control)

    def _try_trial(self) -> bool:
        """Augment while paths are short; True if no further row can be matched."""
        tuning = self.tuning
        if self._try_known(tuning.trial, tuning.known):
            return True
        is_long = self.paths.spot[SCANS] <= tuning.known * self.costs.nnz
        is_large = self.costs.nnz > tuning.middle  # else whole lines have been tried
        if is_large and tuning.lines and self._try_lines(tuning.lines):
            return True
        return not is_long and self._try_known(tuning.trial)

    def _serve(self, short: float) -> None:
        """Serve all unmatched rows: by known columns while paths are short, then by whole lines."""
        most = short * (self.paths.row_to_col.size - self.paths.matched)
        most = max(self.tuning.trial, most)
        if not self._try_known(most, most, name="paths"):
            self._try_lines(math.inf, name="paths")

    def _try_known(self, most: float, longest: float = math.inf, name: str = "trial") -> bool:
        """Augment by known columns; False if paths seem to read the entries more than so often."""
        nnz = self.costs.nnz
        step = min(int(self.tuning.step * nnz) + 1, BUDGET)
        has_ended = try_paths(
            self.paths, most * nnz, self.control, step=step, longest=longest * nnz, name=name
        )
        if not has_ended:
            self.paths.leave_search()
        return has_ended

    def _try_lines(self, most: float, name: str = "trial") -> bool:
        """Augment by whole lines; False if paths seem to read the entries more than so often."""
        nrows = self.paths.row_to_col.size
        with self.paths.by_lines() as lines:
            step = min(2 * int(self.tuning.step * self.costs.nnz) + 1, lines.budget)
            most *= nrows
            has_ended = try_paths(
                lines, most, self.control, step=step, longest=LATE * most, name=name
            )
            if not has_ended:
                self.rival.keep(lines, lines_ahead(lines))
        return has_ended
