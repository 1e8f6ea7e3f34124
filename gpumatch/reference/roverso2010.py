"""Roverso et al. (2010) without a GPU: Deep Greedy Switching's kernels as interleaved threads.

Every kernel is a loop over the agents, jobs or exchanges of one thread, written as a generator. The
scheduler of `gpumatch.reference.interleaving` advances the threads in a seeded order. It is slow.
With a few hundred agents, it is for following the paper and for comparing the CUDA kernels with it.

Names
-----
==============================  ====================================================
paper                           here
==============================  ====================================================
agents I, jobs J                rows, columns
benefit a_ij                    minus ``cost[i, j]``; inf is a forbidden pair
tau, sigma                      ``row_to_col``, ``col_to_row`` (-1: a job left over)
differences of agents, jobs     ``gain`` of a :class:`Differences`
NA, NJ; best switches           ``choice`` of one: the job of an agent, the agent of a job
ADE, JDE (Algorithm 2)          :func:`evaluate`, of the cost matrix and of its transpose
the same, by section V.B        :func:`evaluate_exchanges`
SWITCH(i, j, sigma)             :func:`exchange`: agent i takes job j, whose agent takes tau(i)
Algorithm 1                     :func:`switch_sequentially`
conflict check CC, Algorithm 4  :func:`claim`, :func:`select`
Algorithm 3                     :func:`switch_in_parallel`
==============================  ====================================================

The listings of Algorithms 3 and 4 are lost in our copy, so this follows their description in
section V.C. Of all exchanges that were found, those that share no agent and no job with a better
one are made at a time, by a thread each. Their agents and jobs are evaluated again. Agents and jobs
in conflict keep the exchanges that they had found, which are checked again when their turn comes.
When no exchange is left, all agents and jobs are evaluated, until that finds nothing.

If a row may go without a column at a limit, there is one more job for each agent. It costs every
agent the limit.

Interleavings
-------------
An exchange claims its agents and jobs in one turn, by what is an atomic maximum on a device. The
best exchange of all holds everything that it claims, whatever the order is, so each round makes at
least one. Exchanges that are made share nothing, so no thread reads what another one writes.

References
----------
R. Roverso, A. Naiem, M. El-Beltagy, S. El-Ansary, S. Haridi: A GPU-enabled solver for
time-constrained linear sum assignment problems. INFOS 2010.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from gpumatch.contracts import AssignmentTask, Costs, Stopped
from gpumatch.cpu.assignment.dgs.relaxation import begin_bound, bound
from gpumatch.cpu.assignment.dgs.start import start_from
from gpumatch.cpu.heartbeat import heartbeat
from gpumatch.numeric.arrays import count_matched
from gpumatch.reference.deveci2013 import UNMATCHED
from gpumatch.reference.interleaving import Grid, Turns

__all__ = [
    "Differences",
    "Exchanges",
    "claim",
    "evaluate",
    "evaluate_exchanges",
    "exchange",
    "gain_of",
    "run",
    "select",
    "switch_in_parallel",
    "switch_sequentially",
]


class Differences(NamedTuple):
    """The best exchange of each agent or of each job: its gain (0: none), and its partner."""

    gain: np.ndarray
    choice: np.ndarray

    @classmethod
    def none(cls, size: int) -> Differences:
        return cls(np.zeros(size), np.full(size, UNMATCHED, np.int32))


class Exchanges(NamedTuple):
    """Exchanges that may be made, one entry each: the gain, the agent and the job that it takes."""

    gain: np.ndarray
    row: np.ndarray
    col: np.ndarray

    @classmethod
    def of(cls, agents: Differences, jobs: Differences) -> Exchanges:
        """The exchanges that gain something, those of the agents, then those of the jobs."""
        rows, cols = np.flatnonzero(agents.gain > 0), np.flatnonzero(jobs.gain > 0)
        return cls(
            np.concatenate([agents.gain[rows], jobs.gain[cols]]),
            np.concatenate([rows, jobs.choice[cols]]),
            np.concatenate([agents.choice[rows], cols]),
        )


# -- the kernels -----------------------------------------------------------------------------------


def gain_of(
    cost: np.ndarray, row_to_col: np.ndarray, col_to_row: np.ndarray, row: int, col: int
) -> float:
    """What is gained when the agent takes the job, and the job's agent takes the agent's."""
    held, other = row_to_col[row], col_to_row[col]
    before, after = cost[row, held], cost[row, col]
    if other != UNMATCHED:
        before, after = before + cost[other, col], after + cost[other, held]
    return float(before - after) if after < np.inf else -np.inf


def evaluate(
    gain: Callable[[int, int], float],
    which: np.ndarray,
    differences: Differences,
    others: int,
    *,
    grid: Grid,
) -> None:
    """Find the best exchange of some agents, or of some jobs: a thread each (ADE, JDE)."""

    def thread(places: Sequence[int]) -> Turns:
        for place in places:
            yield
            vertex = int(which[place])
            gains = [gain(vertex, other) for other in range(others)]
            best = int(np.argmax(gains))
            differences.gain[vertex] = max(gains[best], 0.0)
            differences.choice[vertex] = best

    grid.launch(thread, which.size)


def evaluate_exchanges(
    gain: Callable[[int, int], float],
    which: np.ndarray,
    differences: Differences,
    others: int,
    *,
    grid: Grid,
) -> None:
    """Find the best exchanges by a thread for each, which stores its gain in a matrix (V.B).

    Then a thread for each row of the matrix takes the best.
    """
    matrix = np.empty((which.size, others))

    def evaluating(places: Sequence[int]) -> Turns:
        for place in places:
            yield
            at, other = divmod(place, others)
            matrix[at, other] = gain(int(which[at]), other)

    def choosing(places: Sequence[int]) -> Turns:
        for place in places:
            yield
            best = int(matrix[place].argmax())
            differences.gain[which[place]] = max(matrix[place, best], 0.0)
            differences.choice[which[place]] = best

    grid.launch(evaluating, matrix.size)
    grid.launch(choosing, which.size)


def claim(
    exchanges: Exchanges,
    row_to_col: np.ndarray,
    col_to_row: np.ndarray,
    row_claim: np.ndarray,
    col_claim: np.ndarray,
    *,
    grid: Grid,
) -> None:
    """Let each exchange claim its agents and jobs; the best one gets them, or the first (CC)."""

    def thread(numbers: Sequence[int]) -> Turns:
        for number in numbers:
            rows, cols = _taking_part(exchanges, number, row_to_col, col_to_row)
            for claims, vertices in ((row_claim, rows), (col_claim, cols)):
                for vertex in vertices:
                    yield
                    if _is_better(exchanges, number, int(claims[vertex])):
                        claims[vertex] = number

    grid.launch(thread, exchanges.gain.size)


def select(
    exchanges: Exchanges,
    row_to_col: np.ndarray,
    col_to_row: np.ndarray,
    row_claim: np.ndarray,
    col_claim: np.ndarray,
    is_selected: np.ndarray,
    *,
    grid: Grid,
) -> None:
    """Mark the exchanges that hold all they claimed (CC)."""

    def thread(numbers: Sequence[int]) -> Turns:
        for number in numbers:
            yield
            rows, cols = _taking_part(exchanges, number, row_to_col, col_to_row)
            is_selected[number] = all(row_claim[row] == number for row in rows) and all(
                col_claim[col] == number for col in cols
            )

    grid.launch(thread, exchanges.gain.size)


def exchange(
    rows: np.ndarray,
    cols: np.ndarray,
    row_to_col: np.ndarray,
    col_to_row: np.ndarray,
    *,
    grid: Grid,
) -> None:
    """Give each agent its job, and the job's agent the job it had: a thread each (SWITCH)."""

    def thread(places: Sequence[int]) -> Turns:
        for place in places:
            row, col = rows[place], cols[place]
            yield
            held, other = row_to_col[row], col_to_row[col]
            yield
            row_to_col[row], col_to_row[col] = col, row
            yield
            col_to_row[held] = other
            if other != UNMATCHED:
                row_to_col[other] = held

    grid.launch(thread, rows.size)


def _is_better(exchanges: Exchanges, number: int, holder: int) -> bool:
    if holder == UNMATCHED:
        return True
    mine, theirs = exchanges.gain[number], exchanges.gain[holder]
    return bool(mine > theirs or (mine == theirs and number < holder))


def _taking_part(
    exchanges: Exchanges, number: int, row_to_col: np.ndarray, col_to_row: np.ndarray
) -> tuple[list[int], list[int]]:
    """The agents and the jobs whose mates an exchange changes."""
    row, col = int(exchanges.row[number]), int(exchanges.col[number])
    other = int(col_to_row[col])
    return [row] + ([other] if other != UNMATCHED else []), [int(row_to_col[row]), col]


# -- the drivers -----------------------------------------------------------------------------------


class _State:
    """Costs, an assignment of all agents, and the differences last found."""

    def __init__(
        self,
        cost: np.ndarray,
        row_to_col: np.ndarray,
        col_to_row: np.ndarray,
        evaluation: str = "auto",
    ) -> None:
        self.cost = cost
        self._evaluate = EVALUATION[evaluation]
        self.mates = row_to_col, col_to_row
        self.agents = Differences.none(cost.shape[0])
        self.jobs = Differences.none(cost.shape[1])

    def evaluate(self, rows: np.ndarray, cols: np.ndarray, grid: Grid) -> None:
        """Evaluate the differences of these agents and jobs."""
        nrows, ncols = self.cost.shape
        self._evaluate(self.gain, rows, self.agents, ncols, grid=grid)
        self._evaluate(lambda col, row: self.gain(row, col), cols, self.jobs, nrows, grid=grid)

    def evaluate_all(self, grid: Grid) -> None:
        nrows, ncols = self.cost.shape
        self.evaluate(np.arange(nrows), np.arange(ncols), grid)

    def gain(self, row: int, col: int) -> float:
        return gain_of(self.cost, *self.mates, row, col)


def switch_sequentially(state: _State, grid: Grid) -> Iterator[int]:
    """Algorithm 1's inner loop: the best exchange, then the next best; yields 1 for each made."""
    while True:
        row, col = int(state.agents.gain.argmax()), int(state.jobs.gain.argmax())
        if max(state.agents.gain[row], state.jobs.gain[col]) <= 0:
            return
        if state.agents.gain[row] > state.jobs.gain[col]:
            col = int(state.agents.choice[row])
        else:
            row = int(state.jobs.choice[col])
        best = Exchanges(np.ones(1), np.array([row]), np.array([col]))
        rows, cols = map(np.array, _taking_part(best, 0, *state.mates))
        is_made = state.gain(row, col) > 0
        if is_made:
            exchange(best.row, best.col, *state.mates, grid=grid)
        state.evaluate(rows, cols, grid)
        if is_made:
            yield 1


def switch_in_parallel(state: _State, grid: Grid) -> Iterator[int]:
    """Algorithm 3's inner loop: all exchanges that conflict with no better one; how many."""
    nrows, ncols = state.cost.shape
    while True:
        found = Exchanges.of(state.agents, state.jobs)
        gains = np.array([state.gain(*pair) for pair in zip(found.row, found.col)])
        valid = Exchanges(*(part[gains > 0] for part in found._replace(gain=gains)))
        if valid.gain.size == 0:
            return
        claims = np.full(nrows, UNMATCHED), np.full(ncols, UNMATCHED)
        is_selected = np.zeros(valid.gain.size, bool)
        claim(valid, *state.mates, *claims, grid=grid)
        select(valid, *state.mates, *claims, is_selected, grid=grid)
        chosen = np.flatnonzero(is_selected)
        parts = [_taking_part(valid, number, *state.mates) for number in chosen.tolist()]
        exchange(valid.row[chosen], valid.col[chosen], *state.mates, grid=grid)
        rows, cols = (np.concatenate(part) for part in zip(*parts))
        state.evaluate(rows, cols, grid)
        yield chosen.size


EVALUATION = {"auto": evaluate, "global": evaluate, "shared": evaluate_exchanges}
SWITCHING = {
    "auto": switch_sequentially,
    "sequential": switch_sequentially,
    "parallel": switch_in_parallel,
}


def run(
    task: AssignmentTask,
    *,
    start: str = "random",
    evaluation: str = "auto",
    switching: str = "auto",
) -> bool:
    """Assign the rows, as `gpumatch.cpu.assignment.dgs.engine.run`, by the paper's kernels.

    Parameters
    ----------
    evaluation : {"auto", "global", "shared"}
        By a thread for each agent or job, as ``"auto"``, or by a thread for each exchange.
    switching : {"auto", "sequential", "parallel"}
        One exchange at a time, as ``"auto"``, or all that don't conflict.
    """
    limit = task.limit
    row_to_col = task.solution.row_to_col
    price = begin_bound(task)
    if not start_from(start, task):
        return False
    if row_to_col.size == 0 or (limit is None and (row_to_col < 0).any()):
        return True
    if not _improve(task, evaluation, switching):
        return False
    return bound(task, price)


def _improve(task: AssignmentTask, evaluation: str, switching: str) -> bool:
    """Evaluate all and switch, until nothing changes; False when stopped."""
    costs, limit, control = task.costs, task.limit, task.control
    row_to_col, col_to_row = task.mates
    ncols = col_to_row.size
    mates = _with_own_jobs(row_to_col, col_to_row, limit)
    state = _State(_cost_matrix(costs, limit), *mates, evaluation)
    grid = Grid("ct", task.seed, heartbeat(control, partial(count_matched, row_to_col)))
    made = 1
    try:
        while made:
            state.evaluate_all(grid)
            made, steps = 0, 0
            for exchanges in SWITCHING[switching](state, grid):
                made, steps = made + exchanges, steps + 1
                kept = state.mates[0] < ncols
                row_to_col[:] = np.where(kept, state.mates[0], UNMATCHED)
                col_to_row[:] = state.mates[1][:ncols]
            matched = int(np.count_nonzero(row_to_col != UNMATCHED))
            control.phase(found=0, matched=matched, exchanges=made, steps=steps)
    except Stopped:
        return False
    return True


def _cost_matrix(costs: Costs, limit: float | None) -> np.ndarray:
    """All costs in float64, inf for a forbidden pair; with a limit, one more job for each agent."""
    cost = costs.as_float().dense()
    nrows = cost.shape[0]
    return cost if limit is None else np.hstack([cost, np.full((nrows, nrows), float(limit))])


def _with_own_jobs(
    row_to_col: np.ndarray, col_to_row: np.ndarray, limit: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Copies of the mates; with a limit, agents without a job get one of the additional jobs."""
    nrows, ncols = row_to_col.size, col_to_row.size
    extra = 0 if limit is None else nrows
    to_col = row_to_col.copy()
    to_row = np.concatenate([col_to_row, np.full(extra, UNMATCHED, np.int32)])
    idle = np.flatnonzero(to_col == UNMATCHED)
    to_col[idle] = ncols + idle
    to_row[ncols + idle] = idle
    return to_col, to_row
