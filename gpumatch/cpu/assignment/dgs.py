"""Deep Greedy Switching: a quick assignment, usually within a percent of the best.

From an assignment of agents to jobs (here rows and columns), the best exchange of every agent and
of every job is looked up. The best of all is made, the vertices that took part look again, and so
on until no exchange gains anything (Roverso et al. 2010, Algorithms 1 and 2). Then giving one row
another column does not make the result better, even if that column's row gets the first row's.

The two evaluations are one, on the costs and on their transpose. Let sigma be the mates. Vertex v
looks at each w on the other side, and at the change if v takes w and w's mate takes sigma(v):

    gain = c(v, sigma(v)) + c(sigma(w), w) - c(v, w) - c(sigma(w), sigma(v))

A vertex without a mate costs its ``idle`` price: 0 for a column, for a row the limit if there is
one. With a limit a row may also drop its column. A forbidden pair costs inf, and no exchange leads
to one. If all rows must be assigned and some pairs are forbidden, the start is completed to a
maximum matching first, so a full assignment is found if there is one.

Gains are kept until a vertex takes part in an exchange, and may be out of date by then. So an
exchange is made only if it still gains something. When no exchange that was kept is left, all
vertices are looked up again, until that finds nothing. Each exchange lowers the cost, even as
rounded sums of two, so the algorithm ends.

The duals are only a bound on what is missed. Some sweeps of Bellman and Ford's relaxation move the
prices towards those at which every row's own column is its cheapest. That cannot succeed fully
unless the assignment is optimal. The best bound among the sweeps is kept.

Encodings
---------
``gain[v]``     the gain of v's best exchange, 0: nothing
``choice[v]``   the other side's vertex that v takes in it, -1 none: v drops its mate
Those of a ``side`` are at `Side`. Kernels read dense costs, or stored entries in CSR: `_places`,
`_entry`, `_cost` and `_best_choice` are each compiled for the entries at hand.

O(nm) for looking up all, O(n + m) for each exchange. Memory: the costs twice, because the columns
are read as often as the rows.

References
----------
Roverso, Naiem, El-Beltagy, El-Ansary, Haridi, *A GPU-enabled solver for time-constrained linear sum
assignment problems*, INFOS 2010.
Naiem, El-Beltagy, *Deep greedy switching: a fast and simple approach for linear assignment
problems*, ICNAAM 2009.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import AssignmentTask, Control, Costs, Entries
from gpumatch.cpu.assignment.search.entries import by_entries, count_entries
from gpumatch.cpu.assignment.search.fair_duals import write_fair_duals
from gpumatch.cpu.assignment.sparse.feasibility import complete
from gpumatch.cpu.numba_tools.compiled import inlined, kernel
from gpumatch.cpu.numba_tools.vector_min import lesser
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.numeric.arrays import count_matched
from gpumatch.numeric.dgs_start import any_pairs, turns

__all__ = ["Differences", "begin_bound", "bound", "run", "start_from", "switch_until_none"]

BUDGET = 2**22
"""Entries looked at between two returns to Python: some hundredths of a second."""
SWEEPS = 20
"""Sweeps over all costs for the duals, at most.

Of costs |x - y| with 500 rows, 5, 10 and 20 sweeps leave gaps of 4.3 %, 0.8 % and 0.7 %. Of uniform
ones, sweeps after the first narrow nothing.
"""
PATIENCE = 2
"""Sweeps that narrow the gap by less than a tenth after which there are no more."""


class Side(NamedTuple):
    """What one side may take and what it has: all its vertices are rows, or all are columns.

    Attributes
    ----------
    entries : array or tuple
        Dense costs, or indptr, indices and costs of the stored ones.
    mate : int32 array
    paid : int64 or float64 array
        What each vertex's pair costs, or ``idle``.
    idle : number
        What it costs to have no mate, ``far`` if all must have one.
    far : number
        Above all costs: the cost of a forbidden pair.
    """

    entries: Entries
    mate: np.ndarray
    paid: np.ndarray
    idle: Any
    far: Any


# -- dense and stored entries ----------------------------------------------------------------------


@kernel
def _dense_places(entries, vertex):
    return 0, entries.shape[1]


@kernel
def _stored_places(entries, vertex):
    return entries[0][vertex], entries[0][vertex + 1]


_places = by_entries(_dense_places, _stored_places)
"""The range of the vertex's entries: the first, and the one after the last."""


@kernel
def _dense_entry(entries, vertex, place):
    return place, entries[vertex, place]


@kernel
def _stored_entry(entries, vertex, place):
    return entries[1][place], entries[2][place]


_entry = by_entries(_dense_entry, _stored_entry)
"""The other vertex, and the cost, of an entry."""


@kernel
def _dense_cost(entries, vertex, other, far):
    return entries[vertex, other]


@kernel
def _stored_cost(entries, vertex, other, far):
    first, last = entries[0][vertex], entries[0][vertex + 1]
    while first < last:
        middle = (first + last) // 2
        if entries[1][middle] < other:
            first = middle + 1
        else:
            last = middle
    if first < entries[0][vertex + 1] and entries[1][first] == other:
        return entries[2][first]
    return far


_cost = by_entries(_dense_cost, _stored_cost)
"""The cost of a pair, ``far`` if it is not stored."""


# -- start, exchanges, bound -----------------------------------------------------------------------


@kernel
def take_cheapest(entries, row_to_col, col_to_row, rows, done, limit, budget):
    """Give rows[done:] the cheapest of the free columns, if below ``limit``; how many are done."""
    while done < rows.size and budget > 0:
        row = rows[done]
        first, last = _places(entries, row)
        least, nearest = limit, -1
        for place in range(first, last):
            col, cost = _entry(entries, row, place)
            if cost < least and col_to_row[col] < 0:
                least, nearest = cost, col
        if nearest >= 0:
            row_to_col[row], col_to_row[nearest] = nearest, row
        budget -= 1 + last - first
        done += 1
    return done


@kernel
def difference(own, other, vertex, wanted, cost):
    """The gain if ``vertex`` takes ``wanted`` at ``cost``, and their mates take each other."""
    zero = own.paid.dtype.type(0)
    mate, loser = own.mate[vertex], other.mate[wanted]
    rest = zero
    if mate >= 0 and loser >= 0:
        rest = zero + _cost(other.entries, mate, loser, own.far)
    elif mate >= 0:
        rest = other.idle
    elif loser >= 0:
        rest = own.idle
    if cost >= own.far or rest >= own.far:
        return zero
    return own.paid[vertex] + other.paid[wanted] - (cost + rest)


@kernel
def difference_without(own, other, vertex):
    """The gain if ``vertex`` drops its mate."""
    if own.mate[vertex] < 0 or own.idle >= own.far or other.idle >= own.far:
        return own.paid.dtype.type(0)
    return own.paid[vertex] - (own.idle + other.idle)


@kernel
def _best_listed(entries, own, other, vertex, best):
    """Entry by entry, because some may be missing, and the vertex may have no mate."""
    choice = -1
    first, last = _places(entries, vertex)
    for place in range(first, last):
        wanted, cost = _entry(entries, vertex, place)
        if wanted != own.mate[vertex]:
            gain = difference(own, other, vertex, wanted, own.paid.dtype.type(0) + cost)
            if gain > best:
                best, choice = gain, wanted
    return best, choice


@kernel
def _best_dense(entries, own, other, vertex, best):
    """In loops that compile to vector instructions: the best gain, then its place."""
    mate, paid = own.mate[vertex], own.paid[vertex]
    if mate < 0:
        return _best_listed(entries, own, other, vertex, best)
    line, crossing = entries[vertex], other.entries[mate]
    loss = -best
    for wanted in range(line.size):
        loss = lesser(loss, _loss(line, crossing, paid, other, wanted))
    if loss < -best:
        for wanted in range(line.size):
            if _loss(line, crossing, paid, other, wanted) == loss:
                return -loss, wanted
    return best, -1


_best_choice = by_entries(_best_dense, _best_listed)
"""The first exchange that gains most, if more than ``best``: its gain, and the vertex taken."""


@inlined
def _loss(line, crossing, paid, other, wanted):
    """The `difference` of a vertex that has a mate, with the sign turned."""
    loser = other.mate[wanted]
    rest = crossing[loser]  # read, whatever it is, so that there is no branch
    rest = rest if loser >= 0 else other.idle
    return (line[wanted] + rest) - (paid + other.paid[wanted])


@kernel
def find_best(own, other, vertex):
    """The best exchange of a vertex: the gain, 0 if there is none, and what it takes (ADE)."""
    least = max(difference_without(own, other, vertex), own.paid.dtype.type(0))
    return _best_choice(own.entries, own, other, vertex, least)


@kernel
def evaluate(own, other, gain, choice, first, last):
    """Look up the best exchanges of vertices first to last."""
    for vertex in range(first, last):
        gain[vertex], choice[vertex] = find_best(own, other, vertex)


@kernel
def exchange(own, other, vertex, wanted):
    """Give ``vertex`` what it wants if that still gains anything; return whether it did."""
    zero = own.paid.dtype.type(0)
    mate = own.mate[vertex]
    if wanted == mate:
        return False
    if wanted < 0:
        gains = difference_without(own, other, vertex) > 0
        if gains:
            _leave(own, vertex)
            _leave(other, mate)
        return gains
    loser = other.mate[wanted]
    cost = zero + _cost(own.entries, vertex, wanted, own.far)
    if difference(own, other, vertex, wanted, cost) <= 0:
        return False
    _join(own, other, vertex, wanted, cost)
    if mate >= 0 and loser >= 0:
        _join(own, other, loser, mate, zero + _cost(other.entries, mate, loser, own.far))
    elif mate >= 0:
        _leave(other, mate)
    elif loser >= 0:
        _leave(own, loser)
    return True


@kernel
def _join(own, other, vertex, wanted, cost):
    own.mate[vertex], other.mate[wanted] = wanted, vertex
    own.paid[vertex] = other.paid[wanted] = cost


@kernel
def _leave(side, vertex):
    side.mate[vertex] = -1
    side.paid[vertex] = side.idle


@kernel
def _exchange_and_look(own, other, vertex, own_gain, own_choice, other_gain, other_choice):
    """Make the vertex's best exchange, and let all vertices that took part look again."""
    mate, wanted = own.mate[vertex], own_choice[vertex]
    loser = other.mate[wanted] if wanted >= 0 else -1
    made = exchange(own, other, vertex, wanted)
    for again in (vertex, loser):
        if again >= 0:
            own_gain[again], own_choice[again] = find_best(own, other, again)
    for again in (mate, wanted):
        if again >= 0:
            other_gain[again], other_choice[again] = find_best(other, own, again)
    return made


@kernel
def _first_greatest(gain):
    """The place of the first of the greatest gains."""
    least = -gain[0]
    for vertex in range(gain.size):
        least = lesser(least, -gain[vertex])
    for vertex in range(gain.size):
        if gain[vertex] == -least:
            return vertex
    return 0


@kernel
def switch(rows, cols, row_gain, row_choice, col_gain, col_choice, budget):
    """Make the best exchanges one by one; return how many, and whether none is left."""
    made = 0
    # Each looks through both gains, and lets two rows and two columns look again.
    work = 3 * (row_gain.size + col_gain.size)
    while budget > 0:
        row, col = _first_greatest(row_gain), _first_greatest(col_gain)
        if row_gain[row] <= 0 and col_gain[col] <= 0:
            return made, True
        if row_gain[row] > col_gain[col]:
            made += _exchange_and_look(rows, cols, row, row_gain, row_choice, col_gain, col_choice)
        else:
            made += _exchange_and_look(cols, rows, col, col_gain, col_choice, row_gain, row_choice)
        budget -= work
    return made, False


@kernel
def relax(entries, price, held, minima, lowered, is_fixed, dear, first, last):
    """One sweep over rows first to last.

    ``minima`` gets the least that a row can pay, at most ``dear``. ``lowered`` gets the prices at
    which a row would pay no less than ``held``, for all columns whose price is not fixed.
    """
    for row in range(first, last):
        least = dear
        begin, end = _places(entries, row)
        for place in range(begin, end):
            col, cost = _entry(entries, row, place)
            least = lesser(least, cost - price[col])
            before = lowered[col]
            lowered[col] = before if is_fixed[col] else lesser(before, cost - held[row])
        minima[row] = least


# -- the algorithm ---------------------------------------------------------------------------------


def run(task: AssignmentTask, *, start: str = "random") -> bool:
    """Assign the rows, and bound what better assignments cost; see `gpumatch.contracts`.

    Parameters
    ----------
    start : {"random", "greedy"}
        Give each free row a free column at random, if it may take it; or give each, in random
        order, the cheapest one. Rows that must have a column and got none are matched anyhow.

    Returns
    -------
    bool
        True when no exchange is left, or no full assignment exists; False when stopped.
    """
    costs, limit, control = task.costs, task.limit, task.control
    row_to_col, col_to_row = task.mates
    price = begin_bound(task)
    if not start_from(start, task):
        return False
    if row_to_col.size == 0 or (limit is None and (row_to_col < 0).any()):
        return True
    differences = Differences(costs, row_to_col, col_to_row, price.dtype.type, limit)
    with Workers(task.threads, costs.nnz) as workers:
        if not switch_until_none(differences, _Evaluation(differences, workers, control), control):
            return False
    with control.part("bound"):
        return bound(task, price)


# -- the start -------------------------------------------------------------------------------------


def start_from(start: str, task: AssignmentTask) -> bool:
    """Assign free rows, all if there is no limit and they can be; False when stopped."""
    row_to_col, col_to_row = task.mates
    if start == "random":
        _take_any(task)
    elif not _take_cheapest(task):
        return False
    if task.limit is not None or (row_to_col >= 0).all():
        return True
    return complete(task, row_to_col, col_to_row)


def _take_any(task: AssignmentTask) -> None:
    """Give each free row a free column at random, if it may take it."""
    row_to_col, col_to_row = task.mates
    rows, cols = any_pairs(row_to_col, col_to_row, task.seed)
    if not task.costs.is_complete:
        is_allowed = task.costs.allows(rows, cols)
        rows, cols = rows[is_allowed], cols[is_allowed]
    row_to_col[rows], col_to_row[cols] = cols, rows


def _take_cheapest(task: AssignmentTask) -> bool:
    """Give the free rows, one after the other, their cheapest free columns; False when stopped."""
    costs, limit = task.costs, task.limit
    row_to_col, col_to_row = task.mates
    rows, entries = turns(row_to_col, task.seed), costs.entries()
    row_limit = costs.far if limit is None else limit
    done = 0
    while done < rows.size:
        done = take_cheapest(
            entries,  # IN
            row_to_col, col_to_row,  # OUT
            rows, done, row_limit, BUDGET,  # IN
        )  # fmt: skip
        if task.control.tick(count_matched(row_to_col)):
            return False
    return True


# -- switching -------------------------------------------------------------------------------------


class Differences:
    """Both sides of a problem, and the best exchange last found for each vertex of either.

    Attributes
    ----------
    rows, cols : Side
        What agents and jobs may take and what they have. Their mates are the caller's arrays.
    row_gain, row_choice, col_gain, col_choice : arrays
        The gain of each, 0 for nothing, and what it takes.
    """

    def __init__(
        self,
        costs: Costs,
        row_to_col: np.ndarray,
        col_to_row: np.ndarray,
        number: Any,
        limit: float | None,
    ) -> None:
        far = number(costs.far)
        row_idle = far if limit is None else number(limit)
        rows = np.flatnonzero(row_to_col >= 0)
        cols = row_to_col[rows]
        row_paid = np.full(row_to_col.size, row_idle)
        col_paid = np.zeros(col_to_row.size, number)
        row_paid[rows] = col_paid[cols] = costs.at(rows, cols)
        self.rows = Side(costs.entries(), row_to_col, row_paid, row_idle, far)
        self.cols = Side(costs.transpose().entries(), col_to_row, col_paid, number(0), far)
        self.row_gain, self.row_choice = _nothing(row_paid)
        self.col_gain, self.col_choice = _nothing(col_paid)

    @property
    def matched(self) -> int:
        return count_matched(self.rows.mate)


def switch_until_none(
    differences: Differences, evaluate_all: Callable[[], bool], control: Control
) -> bool:
    """Algorithm 1; False when stopped.

    Parameters
    ----------
    evaluate_all : callable
        Looks up the best exchanges of all vertices; False when stopped.
    """
    exchanges = 1
    while exchanges:
        with control.part("difference evaluation"):
            if not evaluate_all():
                return False
        with control.part("switching"):
            exchanges, ended = _switch(differences, control)
        control.phase(found=0, matched=differences.matched, exchanges=exchanges)
        if not ended:
            return False
    return True


def _switch(differences: Differences, control: Control) -> tuple[int, bool]:
    """Make exchanges while any is left; return how many, and whether none is left."""
    d, exchanges, ended = differences, 0, False
    while not ended:
        more, ended = switch(
            d.rows, d.cols,  # OUT: mate, paid
            d.row_gain, d.row_choice, d.col_gain, d.col_choice,  # OUT
            BUDGET,  # IN
        )  # fmt: skip
        exchanges += more
        if control.tick(d.matched):
            return exchanges, False
    return exchanges, True


class _Evaluation:
    """Looks up the best exchanges on the workers' threads (ADE and JDE for all)."""

    def __init__(self, differences: Differences, workers: Workers, control: Control) -> None:
        self.differences, self.workers, self.control = differences, workers, control

    def __call__(self) -> bool:
        d = self.differences
        agents = d.rows, d.cols, d.row_gain, d.row_choice
        jobs = d.cols, d.rows, d.col_gain, d.col_choice
        return all(self._evaluate(*whose) for whose in (agents, jobs))

    def _evaluate(self, own: Side, other: Side, gain: np.ndarray, choice: np.ndarray) -> bool:
        """Look up the best exchanges of one side; False when stopped."""
        size, threads = own.mate.size, self.workers.threads
        length = max(1, count_entries(own.entries) // max(size, 1))
        step = max(1, BUDGET // length)
        for begin in range(0, size, step * threads):

            def evaluate_share(worker: int, begin: int = begin) -> bool:
                first = min(begin + worker * step, size)
                evaluate(
                    own, other,  # IN
                    gain, choice,  # OUT
                    first, min(first + step, size),  # IN
                )  # fmt: skip
                return True

            self.workers.run(evaluate_share, threads)
            if self.control.tick(self.differences.matched):
                return False
        return True


def _nothing(paid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros_like(paid), np.full(paid.size, -1, np.int32)


# -- the bound -------------------------------------------------------------------------------------


def begin_bound(task: AssignmentTask) -> np.ndarray:
    """Put duals that are feasible for any costs into the solution; return the given prices."""
    solution, limit, largest = task.solution, task.limit, task.costs.largest
    price = np.minimum(solution.col_dual, 0)
    solution.row_dual[:] = -largest if limit is None else min(-largest, limit)
    solution.col_dual[:] = 0
    solution.has_duals = solution.are_fair = True
    return price


def bound(task: AssignmentTask, price: np.ndarray) -> bool:
    """Put the best duals of some sweeps into the solution; False when stopped.

    Parameters
    ----------
    price : array of length ncols
        Prices to begin from, at most 0; not kept.
    """
    solution = task.solution
    has_ended = _sweep(task, price)
    if not solution.are_fair and solution.row_dual.dtype.kind == "f":
        solution.has_duals = False
        write_fair_duals(task.costs.entries(), solution.col_dual, solution.row_dual, task.limit)
        solution.has_duals = solution.are_fair = True
    return has_ended


def _sweep(task: AssignmentTask, price: np.ndarray) -> bool:
    """Hold the sweeps; False when stopped."""
    costs, solution, limit, control = task.costs, task.solution, task.limit, task.control
    row_to_col, (row_dual, col_dual) = solution.row_to_col, solution.duals
    entries, far = costs.entries(), costs.far
    rows = np.flatnonzero(row_to_col >= 0)
    cols = row_to_col[rows]
    paid = costs.at(rows, cols).astype(price.dtype)
    dear = price.dtype.type(far if limit is None else limit)
    held = np.full(row_to_col.size, dear)
    minima, lowered = np.empty_like(row_dual), np.empty_like(price)
    is_fixed = np.ones(price.size, bool)
    is_fixed[cols] = False
    farthest = (row_to_col.size + 1) * costs.largest  # of any price from 0
    total = float(paid.sum(dtype=np.float64))
    total += 0 if limit is None else float(limit) * (row_to_col.size - rows.size)
    gap, in_vain = np.inf, 0
    step = max(1, BUDGET * row_to_col.size // max(costs.nnz, 1))
    for _ in range(SWEEPS):
        held[rows] = paid - price[cols]
        lowered[:] = price
        for first in range(0, held.size, step):
            last = min(first + step, held.size)
            relax(
                entries, price, held,  # IN
                minima, lowered,  # OUT
                is_fixed, dear, first, last,  # IN
            )  # fmt: skip
            if control.tick(rows.size):
                return False
        missed = total - float(minima.sum(dtype=np.float64) + price.sum(dtype=np.float64))
        in_vain = 0 if missed < 0.9 * gap else in_vain + 1
        if missed < gap:
            gap = missed
            solution.has_duals = solution.are_fair = False
            row_dual[:], col_dual[:] = minima, price
            solution.has_duals = True
        if in_vain == PATIENCE or (lowered == price).all():
            break
        price, lowered = np.maximum(lowered, -farthest), price
    return True
