"""Dense transport with few columns: most rows go whole to their cheapest column, and never move.

At prices that are nearly right, a row whose second cheapest column costs much more than the
cheapest one ships all to that. Only the other rows, the marginal ones, need an exact flow into what
demand is left. So

1. a sample of the rows, with its share of the demand, is solved in the same way and gives prices;
2. one reading of the matrix finds the cheapest column of each row, and what the second one costs
   more;
3. in each column, the rows with the least excess are marginal: twice as many units as the column
   has too many, and every row whose excess is no greater than that of such a row;
4. the network simplex method (`dense`) solves the problem of the marginal rows exactly;
5. another reading shows whether all other rows are still in their cheapest column. Then the flow is
   optimal. If not, steps 3 to 5 follow at the new prices with twice as many marginal rows.

References
----------
Bertsekas, Castañón, *The auction algorithm for the transportation problem*, Annals of Operations
Research 20, 1989: lots of similar objects.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import Control, Stopped
from gpumatch.cpu.numba_tools.compiled import vector_kernel
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.cpu.transport.dense import DenseProblem, rounding_of

__all__ = ["FewColumns", "takes"]

MOST = 2**10
"""Columns that are few."""
RATIO = 8
"""Rows for each column, and from a sample to all rows."""
LEAST = 2**9
"""Rows that need no sample."""
ENTRIES = 2**24
"""Entries that are read between two ticks."""


def takes(shape: tuple[int, int]) -> bool:
    """True if there are few columns for the rows."""
    nrows, ncols = shape
    return 1 < ncols <= MOST and nrows > max(LEAST, RATIO * ncols)


@vector_kernel
def cheapest(costs, price, supply, best, least, excess, load, far, first, last):
    """Find the cheapest column of rows first to last, and add their supply to its load."""
    for row in range(first, last):
        line = costs[row]
        one, two, place = far, far, 0
        for col in range(line.size):
            there = line[col] - price[col]
            two = lesser(two, greater(one, there))
            place = col if there < one else place
            one = lesser(one, there)
        best[row], least[row], excess[row] = place, one, two - one
        load[place] += supply[row]


class _Cheapest(NamedTuple):
    """The cheapest column of each row, its reduced cost, the excess of the second, and loads."""

    cols: np.ndarray
    least: np.ndarray
    excess: np.ndarray
    load: np.ndarray


class FewColumns:
    """A transport problem with a complete matrix of few columns, positive masses and no limits.

    The parameters are those of `DenseProblem`.

    Attributes
    ----------
    row_dual, col_dual : arrays
        The duals after `solve`, feasible but for rounding.
    """

    def __init__(
        self,
        costs: np.ndarray,
        supply: np.ndarray,
        demand: np.ndarray,
        control: Control,
        seed: int = 0,
        level: int = 0,
    ) -> None:
        self.costs, self.supply, self.demand = costs, supply, demand
        self.control, self.seed, self.level = control, seed, level
        number: Any = costs.dtype.type
        self.far = number(np.iinfo(number).max if costs.dtype.kind == "i" else np.inf)
        self.col_dual = np.zeros(demand.size, costs.dtype)
        self.row_dual = np.zeros(supply.size, costs.dtype)
        nothing = np.empty(0, np.int64)
        self._flow = nothing, nothing, nothing
        self.rounds = self.marginal = self.pivots = 0

    def solve(self, col_dual: np.ndarray | None = None) -> bool:
        """Find a cheapest flow and its duals, from duals of columns; False if stopped."""
        try:
            self.col_dual[:] = self._sampled() if col_dual is None else col_dual
            self._improve()
        except Stopped:
            np.minimum(self.col_dual, 0, out=self.col_dual)
            found = self._cheapest(self.col_dual, must_end=True)
            self.row_dual[:] = found.least
            self._flow = self._greedy(found.cols)
            return False
        return True

    def flow(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows, columns and units of the flow."""
        return self._flow

    def _greedy(self, cols: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The flow in which rows ship to these columns what fits, in their order."""
        rows = np.argsort(cols, kind="stable")
        ends, supply = cols[rows], self.supply[rows]
        before = np.cumsum(supply) - supply
        begins = np.searchsorted(ends, np.arange(self.demand.size))
        before -= before[np.minimum(begins, rows.size - 1)][ends]
        flow = np.empty(rows.size, np.int64)
        flow[rows] = np.clip(self.demand[ends] - before, 0, supply)
        used = np.flatnonzero(flow)
        return used, cols[used], flow[used]

    @property
    def counts(self) -> dict[str, int]:
        """The marginal rows, the rounds, and the pivots of all of them."""
        return {"marginal": self.marginal, "rounds": self.rounds, "pivots": self.pivots}

    def _sampled(self) -> np.ndarray:
        """Prices by a sample of the rows, with its share of the demand."""
        nrows = self.supply.size
        rng = np.random.default_rng(self.seed)
        sample = np.sort(rng.permutation(nrows)[: max(nrows // RATIO, LEAST // 2)])
        supply = self.supply[sample]
        share = float(supply.sum()) / float(self.supply.sum())
        demand = np.ceil(self.demand * share).astype(np.int64)
        demand += max(int(supply.sum()) - int(demand.sum()), 0)
        rows = self.costs[sample]
        if takes(rows.shape):
            few = FewColumns(rows, supply, demand, self.control, self.seed, self.level + 1)
            ended, col_dual = few.solve(), few.col_dual
        else:
            all_pairs = DenseProblem(rows, supply, demand, None, self.control, level=1)
            ended, col_dual = all_pairs.solve(), all_pairs.col_dual
        if not ended:
            raise Stopped
        return col_dual

    def _cheapest(self, price: np.ndarray, *, must_end: bool = False) -> _Cheapest:
        """Find the cheapest columns; raises Stopped, unless it must end."""
        nrows, ncols = self.costs.shape
        number = self.costs.dtype
        found = _Cheapest(
            np.empty(nrows, np.int32), np.empty(nrows, number), np.empty(nrows, number),
            np.zeros(ncols, np.int64),
        )  # fmt: skip
        step = ENTRIES // ncols + 1
        for first in range(0, nrows, step):
            cheapest(
                self.costs, price, self.supply,  # IN
                *found,  # OUT
                self.far, first, min(first + step, nrows),  # IN
            )  # fmt: skip
            if self.control.tick(0) and not must_end:
                raise Stopped
        return found

    def _improve(self) -> None:
        """Solve the problem of marginal rows until all others are in their cheapest columns."""
        share, tolerance = 2, rounding_of(self.costs)
        found = self._cheapest(self.col_dual)
        while True:
            is_marginal = self._marginal(found, share)
            marginal, fixed = np.flatnonzero(is_marginal), np.flatnonzero(~is_marginal)
            left, homes = self.demand.copy(), found.cols[fixed]
            np.subtract.at(left, homes, self.supply[fixed])
            problem = DenseProblem(
                self.costs[marginal], self.supply[marginal], left, None, self.control,
                self.seed, level=self.level + 1,
            )  # fmt: skip
            if not problem.solve(self.col_dual):
                raise Stopped
            self.rounds += 1
            self.marginal, self.pivots = marginal.size, self.pivots + problem.counts["pivots"]
            self.col_dual[:] = problem.col_dual
            found = self._cheapest(self.col_dual)
            there = self.costs[fixed, homes] - self.col_dual[homes]
            if (there <= found.least[fixed] + tolerance).all():
                break
            share *= 2
        self.row_dual[:] = found.least
        rows, cols, flow = problem.flow()
        self._flow = (
            np.concatenate([fixed, marginal[rows]]), np.concatenate([homes, cols]),
            np.concatenate([self.supply[fixed], flow]),
        )  # fmt: skip

    def _marginal(self, found: _Cheapest, share: int) -> np.ndarray:
        """Mark the rows that may have to leave their cheapest column.

        One row of each column is marginal in any case, so that each column has some demand left.
        """
        order = np.lexsort((found.excess, found.cols))
        cols, excess = found.cols[order], found.excess[order]
        begins = np.searchsorted(cols, np.arange(self.demand.size + 1))
        most, first = None, np.zeros(order.size, bool)
        over = found.load - self.demand
        for col in np.flatnonzero(np.diff(begins)).tolist():
            begin, end = begins[col], begins[col + 1]
            first[begin] = True
            if over[col] > 0:
                units = np.cumsum(self.supply[order[begin:end]])
                many = np.searchsorted(units, share * int(over[col]))
                last = excess[min(begin + many, end - 1)]
                most = last if most is None else max(most, last)
        if most is None:
            most = np.partition(found.excess, 0)[0]
        is_marginal = np.empty(order.size, bool)
        is_marginal[order] = first | (excess <= most)
        return is_marginal
