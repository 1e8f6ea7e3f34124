"""Vasconcelos, Rosenhahn (2009) without a GPU: the auction's two kernels as interleaved threads.

A kernel in which threads write what others hold is a loop over the objects of one thread, written
as a generator. The scheduler of `gpumatch.reference.interleaving` advances the threads in a seeded
order. This module is for following the paper and for comparing the CUDA kernels with it. A thousand
persons take seconds, or minutes if they compete for the same objects.

As in the paper there is one auction, from prices of 0, with one epsilon, so there may be fewer
persons than objects. Epsilon is fine enough for integers of a moderate range to end exactly. For
others it is coarse, because prices may rise by as little as epsilon a round. The gap that is left
is closed afterwards.

Names
-----
=============================  =====================================================
paper                          here
=============================  =====================================================
persons, objects               rows, columns; ``persons <= objects``
benefit a_ij, absent: -inf     ``benefit``, minus the cost
price p_j                      ``price``, minus the column's dual
object of a person             ``row_to_col``, -1 if not associated
person of an object            ``col_to_row``, -1 if not associated
bid value, bid target          ``bid_value``, ``bid_target``, -1 if there is no bid
bidding kernel bk              :func:`bidding`
assignment kernel ak           :func:`assignment`
counter of assigned persons    ``counter``, an array of one number
reduction of the boolean       :func:`count_assigned`
stream
the host's loop                :func:`rounds`
=============================  =====================================================

A person's bid is a price, not an increment of one. All persons that bid for one object at a time
see the same price, so the order is that of the increments.

The paper has no price limit. Here it is an additional object for each person alone, of the benefit
minus the limit.

Interleavings
-------------
No thread writes what another thread of the launch reads, except the counter, whose atomic addition
is one turn. An object unassigns its previous person and assigns the highest bidder. No two objects
have the same previous person or the same bidder. So the assignment does not depend on the order of
the threads. There is a thread for each object with bids, because others would find nothing to do. A
person writes its own bid, and a place of the reduction its own sum, from values that no thread of
the launch changes. Those kernels are expressions over whole arrays. The tests run them as threads,
too.

References
----------
C. N. Vasconcelos, B. Rosenhahn: Bipartite graph matching computation on GPU. EMMCVPR 2009.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from gpumatch.contracts import AssignmentTask, Costs, Stopped
from gpumatch.cpu.assignment.auction import Precision, close, write_duals
from gpumatch.cpu.heartbeat import heartbeat
from gpumatch.cpu.matching.completion import complete
from gpumatch.numeric.arrays import count_matched
from gpumatch.reference.deveci2013 import UNMATCHED
from gpumatch.reference.interleaving import Grid, Turns

__all__ = ["Round", "assignment", "bidding", "count_assigned", "rounds", "run"]


STEPS = 32
"""Epsilons in the spread of the costs, a person, at most."""
TILE = 1 << 18
"""Net values at a time."""


class Round(NamedTuple):
    """One iteration of the host's loop.

    Attributes
    ----------
    bids : int
        Persons that bid.
    assigned : int
        Persons assigned after it.
    """

    bids: int
    assigned: int


# -- the kernels -----------------------------------------------------------------------------------


def bidding(
    benefit: np.ndarray,
    price: np.ndarray,
    row_to_col: np.ndarray,
    bid_value: np.ndarray,
    bid_target: np.ndarray,
    epsilon: float,
    jump: float,
    *,
    grid: Grid,
) -> None:
    """Let every person without an object bid for the one of greatest net value.

    A person that may have one object only offers ``jump`` more.
    """
    grid.begin_launch()
    persons = np.flatnonzero(row_to_col == UNMATCHED)
    bid_target[:] = UNMATCHED
    for part in np.array_split(persons, 1 + persons.size * price.size // TILE):
        value = benefit[part] - price
        each = np.arange(part.size)
        best = value.argmax(axis=1)
        most = value[each, best]
        value[each, best] = -np.inf
        second = value.max(axis=1)
        lead = np.where(second > -np.inf, most - second, jump)
        bid_target[part] = best
        bid_value[part] = price[best] + (lead + epsilon)


def assignment(
    price: np.ndarray,
    row_to_col: np.ndarray,
    col_to_row: np.ndarray,
    bid_value: np.ndarray,
    bid_target: np.ndarray,
    counter: np.ndarray,
    *,
    grid: Grid,
) -> None:
    """Give every object that has bids to the highest bidder; count those that were free."""

    bidders = defaultdict[int, list[int]](list)
    persons = np.flatnonzero(bid_target != UNMATCHED)
    for person, target in zip(persons.tolist(), bid_target[persons].tolist()):
        bidders[target].append(person)
    bids, prices, count = bid_value.data, price.data, counter.data
    mates = row_to_col.data, col_to_row.data

    def thread(objects: Sequence[int]) -> Turns:
        for column in objects:
            yield
            winner = max(bidders[column], key=bids.__getitem__)
            previous = mates[1][column]
            prices[column] = bids[winner]
            mates[1][column] = winner
            mates[0][winner] = column
            yield
            if previous == UNMATCHED:
                count[0] += 1
            else:
                mates[0][previous] = UNMATCHED

    grid.launch(thread, col_to_row.size, bidders)


def count_assigned(col_to_row: np.ndarray, *, grid: Grid) -> int:
    """The paper's way without atomics: a boolean for each object, reduced pairwise."""
    grid.begin_launch()
    assigned = (col_to_row != UNMATCHED).astype(np.int64)
    while assigned.size > 1:
        grid.begin_launch()
        half = -(-assigned.size // 2)
        assigned[: assigned.size - half] += assigned[half:]
        assigned = assigned[:half]
    return int(assigned.sum())


# -- the driver ------------------------------------------------------------------------------------


def rounds(
    benefit: np.ndarray,
    price: np.ndarray,
    row_to_col: np.ndarray,
    col_to_row: np.ndarray,
    epsilon: float,
    jump: float,
    convergence: str,
    grid: Grid,
) -> Iterator[Round]:
    """Alternate the kernels, a round each time the caller asks for one, until all have an object.

    The mates are a matching after each round.
    """
    persons = row_to_col.size
    bid_value, bid_target = np.zeros(persons), np.full(persons, UNMATCHED, np.int32)
    counter = np.array([np.count_nonzero(row_to_col != UNMATCHED)])
    assigned = int(counter[0])
    while assigned < persons:
        bids = bid_value, bid_target
        bidding(benefit, price, row_to_col, *bids, epsilon, jump, grid=grid)
        assignment(price, row_to_col, col_to_row, *bids, counter, grid=grid)
        if convergence == "counter":
            assigned = int(counter[0])
        else:
            assigned = count_assigned(col_to_row, grid=grid)
        yield Round(int(np.count_nonzero(bid_target != UNMATCHED)), assigned)


def run(task: AssignmentTask, *, finish: str = "exact", convergence: str = "counter") -> bool:
    """Match the rows at least cost, by the paper's kernels.

    Parameters
    ----------
    convergence : {"counter", "reduction"}
        How the host learns that all persons are assigned.
    """
    costs, limit = task.costs, task.limit
    row_to_col, col_to_row = task.mates
    row_to_col[:] = col_to_row[:] = UNMATCHED
    task.solution.col_dual[:] = 0
    if limit is None and not costs.is_complete:
        largest = row_to_col.copy(), col_to_row.copy()
        if not complete(task, *largest):
            return False
        if (largest[0] < 0).any():
            row_to_col[:], col_to_row[:] = largest
            return True
    precision = Precision.of(costs, limit).coarsened(STEPS * max(row_to_col.size, 1))
    if precision.is_workable and not _auction(task, precision, convergence):
        return False
    return close(task, precision, finish)


def _auction(task: AssignmentTask, precision: Precision, convergence: str) -> bool:
    """One auction; with a limit, each person has an additional object."""
    costs, limit, control = task.costs, task.limit, task.control
    row_to_col, col_to_row = task.mates
    nrows, ncols = costs.shape
    benefit = _benefit(costs, limit)
    price = np.zeros(benefit.shape[1])
    mates = np.full(nrows, UNMATCHED, np.int32), np.full(price.size, UNMATCHED, np.int32)
    grid = Grid("ct", task.seed, heartbeat(control, partial(count_matched, row_to_col)))
    try:
        steps = rounds(
            benefit, price, *mates, precision.epsilon, precision.spread, convergence, grid
        )
        for step in steps:
            row_to_col[:] = np.where(mates[0] < ncols, mates[0], UNMATCHED)
            col_to_row[:] = mates[1][:ncols]
            control.phase(found=0, matched=step.assigned, step="round", bids=step.bids)
    except Stopped:
        return False
    finally:
        write_duals(costs, limit, precision, -price[:ncols], row_to_col, *task.duals)
        task.solution.has_duals = True
    return True


def _benefit(costs: Costs, limit: float | None) -> np.ndarray:
    """The paper's matrix: minus the costs, -inf for a pair that is forbidden."""
    benefit = -costs.as_float().dense()
    if limit is None:
        return benefit
    nrows = costs.shape[0]
    own = np.full((nrows, nrows), -np.inf)
    np.fill_diagonal(own, -float(limit))
    return np.hstack([benefit, own])
