"""Dense transport with few columns: most rows go whole to their cheapest column, and never move.

At prices that are nearly right, a row whose second cheapest column costs much more than the
cheapest one ships all to that. Only the other rows, the marginal ones, need an exact flow. So

1. if many units must move at the first prices, a sample of the rows, with its share of the bounds,
   is solved in the same way and gives others;
2. one reading of the matrix finds the two cheapest columns of each row, and what the second one
   costs more, its excess;
3. of each column that has too much, the rows with the least excess are marginal, and of each that
   has too little, those whose second column it is: twice as many units as are to move, and all rows
   whose excess is no greater than that of such a row;
4. shortest paths between the columns (`column_paths`) ship the marginal rows exactly, or if there
   are rather many columns, and neither lower bounds nor limits, the network simplex method
   (`dense`);
5. another reading shows whether all other rows are still in their cheapest column. Then the flow is
   optimal. If not, steps 3 to 5 follow at the new prices, with more marginal rows.

A column may have a lower bound. A row may keep units at a limit, which is one more column here.

References
----------
Bertsekas, Castañón, *The auction algorithm for the transportation problem*, Annals of Operations
Research 20, 1989: lots of similar objects.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import Control, Stopped
from gpumatch.cpu.numba_tools.compiled import kernel, vector_kernel
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.cpu.transport import column_paths
from gpumatch.cpu.transport.dense import DenseProblem
from gpumatch.cpu.transport.sources import Matrix
from gpumatch.running.kept_memory import kept_empty

__all__ = ["FewColumns", "takes"]

MOST = 2**10
"""Columns that are few."""
RATIO = 8
"""Rows for each column."""
SAMPLE = 4
"""Rows for each one of a sample."""
LEAST = 2**12
"""Rows that need no sample: all of them are marginal."""
SHARE = 2.0
"""Marginal units for each one that is to move, at first."""
FAR = 2.0**-4
"""The units that columns have too many or too few at the first prices, as a share of all, from
which a sample is worth its time."""
ENTRIES = 2**24
"""Entries that are read between two ticks."""
NARROW = 2**8
"""Columns up to which paths are faster than pivots."""
MANY = 2**7
"""Rows for each column from which paths are faster than pivots, however many columns there are."""
WORK = 2**26
"""Numbers that paths read between two ticks."""


def takes(shape: tuple[int, int]) -> bool:
    """True if there are few columns for the rows."""
    nrows, ncols = shape
    return 1 < ncols <= MOST and nrows > RATIO * ncols


@vector_kernel
def cheapest(costs, limit, price, supply, best, second, least, excess, load, far, first, last):
    """Find the two cheapest columns of rows first to last, and add their supply to loads.

    The limit of a row, if there is one, is that of a column after all others, with the price 0.
    """
    ncols = costs.shape[1]
    for row in range(first, last):
        line = costs[row]
        one, two, place, other = far, far, 0, 0
        if limit.size > 0:
            one, place = limit[row], ncols
        for col in range(ncols):
            there = line[col] - price[col]
            behind = place if there < one else col
            other = behind if there < two else other
            two = lesser(two, greater(one, there))
            place = col if there < one else place
            one = lesser(one, there)
        best[row], second[row], least[row] = place, other, one
        excess[row] = two - one if two < far else far
        load[place] += supply[row]


class _Cheapest(NamedTuple):
    """The two cheapest columns of each row, the least reduced cost, the excess of the second one,
    and the load of each column."""

    cols: np.ndarray
    second: np.ndarray
    least: np.ndarray
    excess: np.ndarray
    load: np.ndarray


@kernel
def _least_with(keys, units, wanted):
    """Return the least key up to which there are as many units; the greatest one if there are not.

    It changes the order of both arrays.
    """
    first, last, key = 0, keys.size, keys[0]
    while first < last:
        key = keys[(first + last) // 2]
        below, place, above = first, first, last
        less = same = 0.0
        while place < above:
            if keys[place] < key:
                less += units[place]
                keys[place], keys[below] = keys[below], keys[place]
                units[place], units[below] = units[below], units[place]
                below += 1
                place += 1
            elif keys[place] > key:
                above -= 1
                keys[place], keys[above] = keys[above], keys[place]
                units[place], units[above] = units[above], units[place]
            else:
                same += units[place]
                place += 1
        if less >= wanted and below > first:
            last = below
        elif less + same >= wanted:
            return key
        else:
            wanted -= less + same
            first = above
    return key


@kernel
def find_bars(cols, second, excess, supply, surplus, share, room, bars, is_marginal):
    """Find up to which excess rows are marginal that are in a column, or have it as the second one.

    ``room`` is for two numbers of each row, twice, and for two of each column and two more. One row
    of each column is marginal in any case, so that units can pass through it.
    """
    keys, units, begins, nearest = room
    begins[:] = 0
    nearest[:] = -1
    for row in range(cols.size):
        col = cols[row]
        if nearest[col] < 0 or excess[row] < excess[nearest[col]]:
            nearest[col] = row
        begins[col + 2] += surplus[col] > 0
        begins[second[row] + 2] += surplus[second[row]] < 0
    for col in range(surplus.size):
        begins[col + 2] += begins[col + 1]
    for row in range(cols.size):
        for col, counts in (
            (cols[row], surplus[cols[row]] > 0),
            (second[row], surplus[second[row]] < 0),
        ):
            if counts:
                slot = begins[col + 1]
                keys[slot], units[slot] = excess[row], supply[row]
                begins[col + 1] += 1
    for col in range(surplus.size):
        if nearest[col] >= 0:
            is_marginal[nearest[col]] = 1
        part = slice(begins[col], begins[col + 1])
        if begins[col] < begins[col + 1]:
            bars[col] = _least_with(keys[part], units[part], share * abs(float(surplus[col])))


@kernel
def mark_marginal(cols, second, excess, bars, is_marginal):
    """Mark the rows whose excess is within the bars of their two columns."""
    for row in range(cols.size):
        if excess[row] <= bars[cols[row]] + bars[second[row]]:
            is_marginal[row] = 1


@kernel
def mark_strays(costs, limit, price, homes, least, tolerance, is_marginal):
    """Mark rows that are not in a cheapest column, and are not marginal; return how many."""
    count = 0
    for row in range(homes.size):
        if is_marginal[row] == 0:
            col = homes[row]
            there = limit[row] if col == costs.shape[1] else costs[row, col] - price[col]
            if there > least[row] + tolerance:
                is_marginal[row] = 1
                count += 1
    return count


@kernel
def list_flow(homes, supply, marginal, flow, rows, cols, units):
    """List the pairs with flow in order; those of row marginal[k] are in flow[k]. Count them."""
    count = at = 0
    for row in range(homes.size):
        if at == marginal.size or marginal[at] != row:
            rows[count], cols[count], units[count] = row, homes[row], supply[row]
            count += 1
            continue
        for col in range(flow.shape[1]):
            if flow[at, col] > 0:
                rows[count], cols[count], units[count] = row, col, flow[at, col]
                count += 1
        at += 1
    return count


class FewColumns:
    """A transport problem with a complete matrix of few columns and positive masses.

    Parameters
    ----------
    costs : int64 or float64 matrix
        None of the costs is infinite.
    supply, demand : int64 arrays
    limit : array, optional
        The cost of a unit of each row that stays; if it is None, all are shipped.
    control : Control
    seed : int
        It chooses the sample.
    level : int
        0, or how many samples this is one of.
    least : int64 array, optional
        The lower bounds of the columns. There is a flow that keeps to all bounds.
    tolerance : float
        The reduced cost that is rounding.

    Attributes
    ----------
    row_dual, col_dual : arrays
        The duals after `solve`, feasible but for rounding. A dual is above 0 only where the flow is
        at a lower bound.
    """

    def __init__(
        self,
        costs: np.ndarray,
        supply: np.ndarray,
        demand: np.ndarray,
        limit: np.ndarray | None,
        control: Control,
        seed: int = 0,
        level: int = 0,
        least: np.ndarray | None = None,
        tolerance: float = 0,
    ) -> None:
        self.costs, self.supply, self.control = costs, supply, control
        self.seed, self.level = seed, level
        self.tolerance = tolerance
        self.nrows, self.ncols = costs.shape
        number: Any = costs.dtype.type
        self.limit = np.empty(0, number) if limit is None else limit
        self.far = number(np.iinfo(number).max if costs.dtype.kind == "i" else np.inf)
        self.total = int(supply.sum())
        self.is_even = limit is None and self.total == int(demand.sum())
        never = self.total + 1  # so many units never fill a column, nor that of a limit
        more = [] if limit is None else [never]
        self.high = np.append(np.minimum(demand, never), np.array(more, np.int64))
        self.low = np.zeros_like(self.high)
        if self.is_even:
            self.low[:] = self.high
        elif least is not None:
            self.low[: self.ncols] = least
        self.price = np.zeros(self.high.size + 1, costs.dtype)
        self.row_dual = np.zeros(supply.size, costs.dtype)
        nothing = np.empty(0, np.int64)
        self._flow = nothing, nothing, nothing
        self.state = np.zeros(column_paths.STATES, np.int64)
        self.rounds = self.marginal = 0
        self.sample = max(self.nrows // SAMPLE, LEAST // 2, 2 * self.ncols)
        self.takes_all = self.nrows <= max(LEAST, 2 * self.sample) or self.high.size == 1
        self.takes_pivots = self.ncols > NARROW and self.nrows < MANY * self.ncols
        self.takes_pivots &= limit is None and (self.is_even or least is None)
        self.pivots = 0

    @property
    def col_dual(self) -> np.ndarray:
        return self.price[: self.ncols]

    def solve(self, col_dual: np.ndarray | None = None) -> bool:
        """Find a cheapest flow and its duals, from duals of columns; False if stopped."""
        has_ended = True
        try:
            if col_dual is not None:
                self.col_dual[:] = col_dual
            found = self._cheapest()
            if not self.takes_all and self._are_far(found):
                self.col_dual[:] = self._sampled(col_dual)
                found = self._cheapest()
            self._improve(found)
        except Stopped:
            has_ended = False
            top = self.col_dual.max() if self.is_even else 0
            np.minimum(self.col_dual - top, 0, out=self.col_dual)
            found = self._cheapest(must_end=True)
            self.row_dual[:] = found.least
            self._flow = self._greedy(found.cols)
        return has_ended

    def flow(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows, columns and units of the flow in order."""
        return self._flow

    def _greedy(self, cols: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The flow in which rows ship to these columns what fits, in their order."""
        rows = np.argsort(cols, kind="stable")
        ends, supply = cols[rows], self.supply[rows]
        before = np.cumsum(supply) - supply
        begins = np.searchsorted(ends, np.arange(self.high.size))
        before -= before[np.minimum(begins, rows.size - 1)][ends]
        flow = np.empty(rows.size, np.int64)
        flow[rows] = np.clip(self.high[ends] - before, 0, supply)
        used = np.flatnonzero((flow > 0) & (cols < self.ncols))
        return used, cols[used].astype(np.int64), flow[used]

    @property
    def counts(self) -> dict[str, int]:
        """The marginal rows, the rounds, and the pivots and paths of all of them."""
        paths = int(self.state[column_paths.PATHS])
        counts = {"marginal": self.marginal, "rounds": self.rounds, "pivots": self.pivots}
        return {**counts, "paths": paths}

    def _are_far(self, found: _Cheapest) -> bool:
        """True if so many units have to move that prices of a sample are nearer."""
        return float(np.abs(self._surplus(found)).sum()) > FAR * self.total

    def _sampled(self, col_dual: np.ndarray | None) -> np.ndarray:
        """Prices by a sample of the rows, with its share of the bounds, from given ones."""
        sample = self._some_rows()
        supply = self.supply[sample]
        total = int(supply.sum())
        share = float(total) / float(self.total)
        high = np.ceil(self.high[: self.ncols] * share).astype(np.int64)
        low = np.floor(self.low[: self.ncols] * share).astype(np.int64)
        high[0] += max(total - int(high.sum()), 0)
        if int(low.sum()) > total:  # by rounding
            low[:] = 0
        few = FewColumns(
            self.costs[sample], supply, high, self.limit[sample] if self.limit.size else None,
            self.control, self.seed, self.level + 1, low, self.tolerance,
        )  # fmt: skip
        if not few.solve(col_dual):
            raise Stopped
        return few.col_dual

    def _some_rows(self) -> np.ndarray:
        """One row of each few neighbours, at random."""
        ends = np.arange(self.sample + 1) * self.nrows // self.sample
        return np.random.default_rng(self.seed).integers(ends[:-1], ends[1:])

    def _cheapest(self, *, must_end: bool = False) -> _Cheapest:
        """Find the cheapest columns; raises Stopped, unless it must end."""
        number = self.costs.dtype
        cols, second = np.empty((2, self.nrows), np.int32)
        least, excess = np.empty((2, self.nrows), number)
        found = _Cheapest(cols, second, least, excess, np.zeros(self.high.size, np.int64))
        step = ENTRIES // self.ncols + 1
        for first in range(0, self.nrows, step):
            cheapest(
                self.costs, self.limit, self.price, self.supply,  # IN
                *found,  # OUT
                self.far, first, min(first + step, self.nrows),  # IN
            )  # fmt: skip
            if self.control.tick(0) and not must_end:
                raise Stopped
        return found

    def _improve(self, found: _Cheapest) -> None:
        """Ship the marginal rows until all others are in their cheapest columns."""
        share, tolerance = SHARE, self.tolerance
        is_marginal = np.full(self.nrows, self.takes_all, np.uint8)
        while True:
            if not self.takes_all:
                self._mark(found, share, is_marginal)
            marginal, before = np.flatnonzero(is_marginal), self.price.copy()
            ship = self._ship_by_pivots if self.takes_pivots else self._ship
            flow, homes = ship(found, marginal), found.cols
            if (self.price != before).any():
                found = self._cheapest()
            strays = mark_strays(
                self.costs, self.limit, self.price, homes, found.least, tolerance,  # IN
                is_marginal,  # OUT
            )  # fmt: skip
            if flow is not None and strays == 0:
                break
            share *= 2
        self.row_dual[:] = found.least
        count = self.nrows - marginal.size + int(np.count_nonzero(flow))
        ends = np.empty((3, count), np.int64)
        list_flow(
            homes, self.supply, marginal, flow,  # IN
            *ends,  # OUT
        )  # fmt: skip
        self._flow = ends[0], ends[1], ends[2]
        if self.limit.size:
            is_shipped = ends[1] < self.ncols
            self._flow = ends[0][is_shipped], ends[1][is_shipped], ends[2][is_shipped]

    def _surplus(self, found: _Cheapest) -> np.ndarray:
        """The units that each column has too many, or if below 0 lacks, at its price."""
        price, load = self.price[:-1], np.clip(found.load, self.low, self.high)
        load[price < 0], load[price > 0] = self.high[price < 0], self.low[price > 0]
        return found.load - load

    def _mark(self, found: _Cheapest, share: float, is_marginal: np.ndarray) -> None:
        """Mark rows that may have to leave their cheapest column."""
        surplus = self._surplus(found)
        bars = np.zeros(surplus.size, self.costs.dtype)
        room = (
            np.empty(2 * self.nrows, self.costs.dtype), np.empty(2 * self.nrows),
            *np.empty((2, surplus.size + 2), np.int64),
        )  # fmt: skip
        find_bars(
            *found[:2], found.excess, self.supply, surplus, share,  # IN
            room, bars, is_marginal,  # OUT
        )  # fmt: skip
        if self.takes_pivots:  # a round takes long, so there shall be few
            bars[:] = bars.max()
        mark_marginal(
            *found[:2], found.excess, bars,  # IN
            is_marginal,  # OUT
        )  # fmt: skip

    def _ship(self, found: _Cheapest, marginal: np.ndarray) -> np.ndarray | None:
        """The cheapest flow of the marginal rows; None if some of their units can go nowhere."""
        count, size = marginal.size, self.high.size
        supply, homes = self.supply[marginal], found.cols[marginal]
        costs = self.costs if count == self.nrows else self.costs[marginal]
        if self.limit.size:
            costs = np.concatenate([costs, self.limit[marginal, None]], axis=1)
        number = costs.dtype
        pieces = (
            kept_empty((count, size), np.int64), kept_empty((count, size), np.int32),
            kept_empty((size, count), np.int32), np.empty(size, np.int32),
        )  # fmt: skip
        excess = np.append(found.load, 0)
        np.subtract.at(excess, homes, supply)
        nodes = size + 1
        net = (
            np.empty((nodes, nodes), number),
            np.empty((nodes, nodes), np.int32),
            self.price,
            excess,
        )
        bounds = np.empty(size, np.int64), self.low, self.high
        room = np.empty(nodes, number), *(np.empty(nodes, np.int32) for _ in range(5))
        column_paths.begin(
            costs, homes, supply,  # IN
            pieces, net, bounds,  # OUT
            self.far,  # IN
        )  # fmt: skip
        outcome, before = column_paths.SPENT, int(self.state[column_paths.PATHS])
        while outcome == column_paths.SPENT:
            outcome = column_paths.move(
                costs,  # IN
                pieces, net, bounds, room, self.state,  # OUT
                self.far, WORK,  # IN
            )  # fmt: skip
            if self.control.tick(0):
                raise Stopped
        self.price -= self.price[-1]
        if number.kind == "f" and outcome == column_paths.DONE:
            column_paths.retrace(
                costs, pieces,  # IN
                self.price,  # OUT
                bounds,  # IN
                *room[3:5],  # OUT
            )  # fmt: skip
        price = self.price[:-1]
        if self.is_even:
            price -= price.max()
        else:  # a column that may be empty, and is, costs no more than nothing
            price[self.low == 0] = np.minimum(price[self.low == 0], 0)
        self.rounds += 1
        self.marginal = count
        self.control.phase(
            found=int(self.state[column_paths.PATHS]) - before, matched=0 if self.level else
            self.total, step="paths", marginal=count, level=self.level,
        )  # fmt: skip
        return pieces[0] if outcome == column_paths.DONE else None

    def _ship_by_pivots(self, found: _Cheapest, marginal: np.ndarray) -> np.ndarray | None:
        """The same by the network simplex method."""
        supply, homes = self.supply[marginal], found.cols[marginal]
        left = self.high - found.load
        np.add.at(left, homes, supply)
        if (left <= 0).any():
            return None
        problem = DenseProblem(
            Matrix(self.costs[marginal]), supply, left, None, self.control, self.seed,
            level=self.level + 1,
        )  # fmt: skip
        if not problem.solve(self.col_dual):
            raise Stopped
        self.price[:-1] = problem.col_dual
        self.rounds += 1
        self.marginal, self.pivots = marginal.size, self.pivots + problem.counts["pivots"]
        flow = np.zeros((marginal.size, self.ncols), np.int64)
        rows, cols, units = problem.flow()
        flow[rows, cols] = units
        return flow
