"""Dense transport problems by the network simplex method: a core of arcs, and pricing.

1. *Estimate*: rows and columns are grouped by their costs (`levels`), and the groups, with the sums
   of their masses, are a problem of a sixteenth of the entries, which is solved in the same way.
   The duals of its rows give duals of all columns: v_j is the least c_ij - u_i of the rows that
   stand for groups. Its flow, poured out over the members of the groups, is a first flow.
2. *Core*: the pairs of least reduced cost at these duals, a few of each row and of each column, are
   the first arcs (`candidates`). An auction on them (`auction`) improves the first flow, if there
   is one, and its flow makes the first tree (`planting`).
3. *Pivots*: the network simplex method (`simplex`) finds the best flow on the arcs.
4. *Pricing*: one reading of the matrix finds pairs that cost less than their duals. A few of each
   row become arcs, and step 3 follows. If there is none, the flow is optimal.

The first flow of a problem with spare demand, limits or costs without structure is greedy: arcs in
the order of their reduced costs ship what they can, those of rows first whose second best column
costs much more. A small one without structure has all pairs as arcs.

The tree keeps all conditions of the contract at its root: an arc from row i to the root costs its
limit, and one from the root to a column costs 0. If all rows must ship, the limit is greater than
all costs. As all pairs are allowed, an optimal flow then leaves no unit.

The pairs are `gpumatch.contracts.transport.AllPairs`: a matrix or points (`sources`), or what is on
a GPU. Memory beside them: 500 bytes a vertex, and a sixteenth of a matrix.

References
----------
Schmitzer, *A sparse multiscale algorithm for dense optimal transport*, Journal of Mathematical
Imaging and Vision 56, 2016.
Gottschlich, Schuhmacher, *The shortlist method for fast computation of the earth mover's distance
and finding optimal solutions to transportation problems*, PLoS ONE 9, 2014.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import Control, Stopped
from gpumatch.contracts.transport import AllPairs
from gpumatch.cpu.transport import simplex
from gpumatch.cpu.transport.auction import Auction
from gpumatch.cpu.transport.auction import Tuning as Phases
from gpumatch.cpu.transport.levels import MEMBERS, Groups, grouped, singles
from gpumatch.cpu.transport.planting import absorb, plant, replant
from gpumatch.cpu.transport.sources import Matrix
from gpumatch.cpu.transport.sweeps import sweep_all
from gpumatch.running.kept_memory import kept_empty

__all__ = ["DenseProblem", "Tuning", "dearer", "rounding_of"]


class Tuning(NamedTuple):
    """What the steps decide by."""

    whole: int = 2**14
    """Entries up to which all pairs are arcs from the beginning."""
    loose: int = 2**16
    """The same if the costs have no structure that groups show."""
    spread: float = 0.85
    """The spread of groups from which they are loose. It is about 1 for random costs, and at most
    0.7 for points in up to 50 dimensions."""
    features: int = 8
    """Columns by which rows are compared, and rows by which columns are."""
    row_arcs: int = 12
    """The arcs of a row in the first core."""
    col_arcs: int = 4
    """The arcs of a column in the first core."""
    more_arcs: int = 6
    """The arcs that a row gets in a pricing."""
    swept: int = 3 * 2**10
    """Nodes from which on pivots come in sweeps, because one changes the duals of too many."""
    swept_near: int = 2**14
    """The same after an auction, which leaves few pivots."""
    auction: Phases = Phases(fine=4, few=1 / 1024)
    """The auction on the first core. It may be coarse, as pivots follow, but hardly any row may
    wait: its units would stay, and pivots bring each to a column from the root."""
    finer: Phases = Phases(fine=1 / 2, few=0)
    """The same from `swept_near` nodes on, where a pivot takes much longer."""
    pivots: int = 2**23
    """Arcs and nodes that pivots look at between two ticks."""


DEFAULT = Tuning()
CORE_BLOCKS = 3
"""Blocks of a core's arcs for one of all pairs. There, a few rows have all arcs worth a look."""
ROUNDING = 2.0**-46
"""The reduced cost of floats that is rounding, as a share of the largest magnitude."""


def rounding_of(extremes: tuple[Any, Any], *, is_integer: bool) -> float:
    """The reduced cost that is rounding, for costs of these extremes: 0 for integers."""
    return 0 if is_integer else ROUNDING * max(abs(float(value)) for value in extremes)


def dearer(extremes: tuple[Any, Any], ranges: int, *, is_integer: bool) -> Any:
    """A cost above all, by so many times their range and, of floats, by their magnitude."""
    low, high = extremes
    more = 1 if is_integer else max(abs(low), abs(high)) or 1
    return high + ranges * (high - low) + more


class Start(NamedTuple):
    """A flow that ships all."""

    rows: np.ndarray
    cols: np.ndarray
    flow: np.ndarray


class DenseProblem:
    """A transport problem in which all pairs are allowed; all masses are positive.

    Parameters
    ----------
    source : AllPairs, or matrix
        All pairs and their costs.
    supply, demand : int64 arrays
    limit : array, optional
        The costs of units that stay; if it is None, the supply is at most the demand.
    control : Control
    seed : int
        It chooses the columns and rows by which others are compared.
    tuning : Tuning

    Attributes
    ----------
    row_dual, col_dual : arrays
        The duals after `solve`, feasible but for rounding.
    """

    def __init__(
        self,
        source: AllPairs | np.ndarray,
        supply: np.ndarray,
        demand: np.ndarray,
        limit: np.ndarray | None,
        control: Control,
        seed: int = 0,
        tuning: Tuning | None = None,
        level: int = 0,
    ) -> None:
        self.source = source = Matrix(source) if isinstance(source, np.ndarray) else source
        self.supply, self.demand, self.limit = supply, demand, limit
        self.control, self.seed, self.level = control, seed, level
        self.tuning = tuning or DEFAULT
        self.nrows, self.ncols = source.shape
        self.entries = self.nrows * self.ncols
        self.total = int(supply.sum())
        self.is_even = limit is None and self.total == int(demand.sum())
        low, high = source.extremes
        if limit is not None:
            low, high = min(low, limit.min()), max(high, limit.max())
        number: Any = source.dtype.type
        is_integer = source.dtype.kind == "i"
        self.dear = number(dearer((low, high), 1, is_integer=is_integer))
        self.tolerance = number(rounding_of((low, high), is_integer=is_integer))
        nodes = self.nrows + self.ncols + 1
        self.dual = np.zeros(nodes, source.dtype)
        self.tree: tuple[np.ndarray, ...] = (
            *(np.empty(nodes, np.int32) for _ in range(2)), np.zeros(nodes, np.int64),
            *(np.empty(nodes, np.int32) for _ in range(4)),
        )  # fmt: skip
        self.state = np.zeros(simplex.STATES, np.int64)
        self.arcs = self._arcs_to_root()
        self.count = nodes - 1
        # what a row's second best column costs more
        self.regret = np.zeros(self.nrows, source.dtype)
        self.rounds = self.readings = 0
        self.has_all = self.entries <= self.tuning.whole
        self.is_near = False
        # arcs with flow that the tree does not hold yet, and their units
        self.aside = np.empty(0, np.int64), np.empty(0, np.int64)

    def _arcs_to_root(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The arcs between the root and all other nodes."""
        nrows, root = self.nrows, self.nrows + self.ncols
        every = np.arange(root, dtype=np.int32)
        tails, heads = every.copy(), every.copy()
        heads[:nrows] = tails[nrows:] = root
        cost = np.zeros(root, self.source.dtype)
        cost[:nrows] = self.dear if self.limit is None else self.limit
        return tails, heads, cost

    @property
    def row_dual(self) -> np.ndarray:
        return self.dual[: self.nrows]

    @property
    def col_dual(self) -> np.ndarray:
        return self.dual[self.nrows : -1]

    # -- steps -------------------------------------------------------------------------------------

    def solve(self, col_dual: np.ndarray | None = None) -> bool:
        """Find a cheapest flow and its duals, from duals of columns; False if stopped."""
        start: Start | None = None
        flow: np.ndarray | None = None
        try:
            groups = None if self.has_all or col_dual is not None else self._grouped()
            is_loose = (
                groups is not None and max(part.spread for part in groups) > self.tuning.spread
            )
            self.has_all |= is_loose and self.entries <= self.tuning.loose
            if self.has_all:
                self._add_all(col_dual)
            else:
                if col_dual is None:
                    col_dual, start = self._estimate(groups)
                start = None if is_loose else start
                flow = self._add_core(col_dual, start)
            if flow is None:
                self._begin()
            else:
                self._ship_again(flow)
            while True:
                self._pivot()
                if self.has_all or not self._price():
                    break
        except Stopped:
            self._lower()
            return False
        if self.has_all:
            self._lower()
        else:  # the last reading has found no pair that undercuts these duals
            np.minimum(self.col_dual, 0, out=self.col_dual)
        return True

    def flow(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows, columns and units of the flow."""
        _, arc, flow, *_ = self.tree
        nodes = np.flatnonzero((flow[:-1] > 0) & (arc[:-1] >= self.nrows + self.ncols))
        used = np.concatenate([arc[nodes], self.aside[0]])
        units = np.concatenate([flow[nodes], self.aside[1]])
        return self.arcs[0][used], self.arcs[1][used] - np.int32(self.nrows), units

    @property
    def counts(self) -> dict[str, int]:
        """The pivots, the arcs, and the readings of the whole matrix."""
        return {
            "pivots": int(self.state[simplex.PIVOTS]), "arcs": self.count,
            "readings": self.readings, "rounds": self.rounds,
        }  # fmt: skip

    @property
    def shipped(self) -> int:
        """The units that go to columns."""
        _, arc, flow, *_ = self.tree
        rows = np.arange(self.nrows)
        return self.total - int(flow[: self.nrows][arc[: self.nrows] == rows].sum())

    @property
    def _reported(self) -> int:
        """What ticks report: units of smaller problems are none of the caller's."""
        return 0 if self.level else self.shipped

    def _beat(self) -> None:
        if self.control.tick(self._reported):
            raise Stopped

    # -- the estimate ------------------------------------------------------------------------------

    def _grouped(self) -> tuple[Groups, Groups] | None:
        """Groups of rows and of columns; None if there are too few of both."""
        few = self.tuning.features
        if max(self.nrows, self.ncols) <= MEMBERS * few:
            return None
        rng = np.random.default_rng(self.seed)
        of_rows, of_cols = singles(self.nrows), singles(self.ncols)
        if self.nrows > MEMBERS * few:
            some = np.sort(rng.permutation(self.ncols)[:few])
            of_rows = grouped(self.source.features(0, some))
        if self.ncols > MEMBERS * few:
            some = np.sort(rng.permutation(self.nrows)[:few])
            of_cols = grouped(self.source.features(1, some))
        return of_rows, of_cols

    def _estimate(self, groups: tuple[Groups, Groups] | None) -> tuple[np.ndarray, Start | None]:
        """Duals of the columns, and a flow if there is one, by the problem of groups."""
        if groups is None:
            return np.zeros(self.ncols, self.source.dtype), None
        of_rows, of_cols = groups
        smaller = DenseProblem(
            self.source.part(of_rows.heads, of_cols.heads), of_rows.sums(self.supply),
            of_cols.sums(self.demand), None if self.limit is None else self.limit[of_rows.heads],
            self.control, self.seed, self.tuning, self.level + 1,
        )  # fmt: skip
        if not smaller.solve():
            self._begin()
            raise Stopped
        col_dual = self.source.conjugate(of_rows.heads, smaller.row_dual, self._look)
        return col_dual, self._poured(smaller, of_rows, of_cols) if self.is_even else None

    def _look(self) -> None:
        """Tick before there is a tree; raises Stopped with the tree of the root alone."""
        if self.control.tick(0):
            self._begin()
            raise Stopped

    def _poured(self, smaller: DenseProblem, of_rows: Groups, of_cols: Groups) -> Start:
        """The flow of groups, divided among their members."""
        rows, cols, units = smaller.flow()
        order = np.lexsort((cols, rows))
        groups = np.stack([rows[order], cols[order], units[order]]).astype(np.int64)
        most = self.nrows + self.ncols + units.size
        ends = np.empty((2, most), np.int32)
        start = Start(ends[0], ends[1], np.empty(most, np.int64))
        count = simplex.pour(
            of_rows.members, of_rows.begins[:-1].copy(), of_cols.members,
            of_cols.begins[:-1].copy(), groups, self.supply.copy(), self.demand.copy(),
            *start,
        )  # fmt: skip
        return Start(*(part[:count] for part in start))

    # -- arcs --------------------------------------------------------------------------------------

    def _add(self, rows: np.ndarray, cols: np.ndarray) -> None:
        """Add pairs to the arcs."""
        count = self.count + rows.size
        if count > self.arcs[0].size:
            tails, heads, cost = (kept_empty(2 * count, part.dtype) for part in self.arcs)
            for new, old in zip((tails, heads, cost), self.arcs):
                new[: self.count] = old[: self.count]
            self.arcs = tails, heads, cost
        part = slice(self.count, count)
        for target, values in zip(self.arcs, (rows, cols + self.nrows, self.source.at(rows, cols))):
            target[part] = values
        self.count = count

    def _add_all(self, col_dual: np.ndarray | None) -> None:
        """Add all pairs, and take given duals of columns."""
        shape = self.nrows, self.ncols
        rows, cols = np.indices(shape, np.int32)
        self._add(rows.ravel(), cols.ravel())
        if col_dual is not None:
            self.col_dual[:] = col_dual
        if self.ncols > 1:
            costs = self.arcs[2][self.count - self.entries : self.count].reshape(shape)
            least = np.partition(costs - self.col_dual, 1, axis=1)[:, :2]
            self.row_dual[:] = least[:, 0]
            self.regret = least[:, 1] - least[:, 0]

    def _add_core(self, col_dual: np.ndarray, start: Start | None) -> np.ndarray | None:
        """Add the best pairs of each row and of each column, and those of a flow.

        Return the flow of the pairs, if there is one. They are in order then.
        """
        most = self.tuning.row_arcs, self.tuning.col_arcs
        near = self.source.nearest(col_dual, most, self._look)
        self.readings += 1
        self.row_dual[:], self.col_dual[:], self.regret = near.row_dual, col_dual, near.regret
        if start is None:
            self._add(*near.of_rows)
            self._add(*near.of_cols)
            return None
        of_start = start.rows * np.int64(self.ncols) + start.cols
        of_best = (
            rows * np.int64(self.ncols) + cols for rows, cols in (near.of_rows, near.of_cols)
        )
        places = np.sort(np.concatenate([of_start, *of_best]))
        places = places[np.append(True, places[1:] != places[:-1])]  # np.unique hashes: slower
        rows, cols = np.divmod(places, self.ncols)
        self._add(rows.astype(np.int32), cols.astype(np.int32))
        flow = np.zeros(places.size, np.int64)
        np.add.at(flow, np.searchsorted(places, of_start), start.flow)
        return flow

    # -- pivots and pricing ------------------------------------------------------------------------

    def _begin(self) -> None:
        """Make the first tree, a greedy one."""
        root = self.nrows + self.ncols
        tails, heads, cost = (part[root : self.count] for part in self.arcs)
        keys = cost - self.dual[tails] - self.dual[heads] - self.regret[tails]
        order = root + np.argsort(keys)
        simplex.begin(
            self.arcs,  # IN
            self.tree, self.dual,  # OUT
            self.supply, self.demand,  # IN
        )  # fmt: skip
        simplex.greedy(
            self.arcs, order,  # IN
            self.tree,  # OUT
            self.nrows,  # IN
        )  # fmt: skip
        self._refresh()

    def _ship_again(self, flow: np.ndarray) -> None:
        """Make the first tree of a flow of the pairs in order, after an auction has improved it."""
        root = self.nrows + self.ncols
        tails, heads, cost = (part[root : self.count] for part in self.arcs)
        too_much = cost - self.dual[tails] - self.dual[heads]
        epsilon = float(np.average(too_much, weights=flow / self.total))
        indptr = np.searchsorted(tails, np.arange(self.nrows + 1))
        cols = heads - np.int32(self.nrows)
        is_large = self.dual.size > self.tuning.swept_near
        auction = Auction(
            (indptr, cols, cost), self.supply, self.demand, None, self.col_dual, self.control,
            is_even=True, tuning=self.tuning.finer if is_large else self.tuning.auction, flow=flow,
            epsilon=epsilon, is_whole=not self.level,
        )  # fmt: skip
        try:
            auction.run()
        finally:
            used, units = self._plant(auction.flow)
        used, units, closing = replant(
            self.arcs, self.count, used, units, self.tree, self.dual, auction.price, self._beat
        )  # fmt: skip
        while closing.size:
            closing = absorb(self.arcs, used, units, closing, self.tree, self.nrows)
            self.aside = used[closing], units[closing]
            self._beat()
        self._refresh()

    def _plant(self, flow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Make a tree of a flow of the pairs in order; return its arcs and their units."""
        root = self.nrows + self.ncols
        tails, heads, _ = (part[root : self.count] for part in self.arcs)
        left, need = self.supply.copy(), self.demand.copy()
        np.subtract.at(left, tails, flow)
        np.subtract.at(need, heads - np.int32(self.nrows), flow)
        sent = np.concatenate([left, need, flow])
        used = np.flatnonzero(sent)
        units, self.is_near = sent[used], True
        closing = plant(self.arcs, used, units, self.tree, self.dual, self.nrows)
        self.aside = used[closing], units[closing]
        return used, units

    def _refresh(self) -> None:
        simplex.refresh_duals(
            self.arcs,  # IN
            self.tree, self.dual,  # OUT
        )  # fmt: skip

    def _pivot(self) -> None:
        """Exchange arcs until none is cheaper than the duals of its ends; raises Stopped."""
        before = int(self.state[simplex.PIVOTS])
        if self.dual.size > (self.tuning.swept_near if self.is_near else self.tuning.swept):
            sweep_all(
                self.arcs, self.count,  # IN
                self.tree, self.dual,  # OUT
                self.nrows,  # IN
                self.state,  # OUT
                self.tolerance, self._beat,  # IN
            )  # fmt: skip
        else:
            self._pivot_one_by_one()
        self.rounds += 1
        self.control.phase(
            found=int(self.state[simplex.PIVOTS]) - before, matched=self._reported, step="pivots",
            arcs=self.count, level=self.level,
        )  # fmt: skip

    def _pivot_one_by_one(self) -> None:
        """Exchange arcs, with duals that are right after each pivot; raises Stopped."""
        outcome, size = simplex.SPENT, self.count**0.5
        block = max(32, int(size if self.has_all else size / CORE_BLOCKS))
        while outcome == simplex.SPENT:
            outcome = simplex.pivot(
                self.arcs, self.count,  # IN
                self.tree, self.dual,  # OUT
                self.nrows,  # IN
                self.state,  # OUT
                block, self.tolerance, self.tuning.pivots,  # IN
            )  # fmt: skip
            self._beat()
        self._refresh()

    def _price(self) -> int:
        """Add pairs that cost less than the duals of their ends; return how many."""
        pairs = self.source.undercuts(
            self.row_dual, self.col_dual, self.tolerance, self.tuning.more_arcs, self._beat
        )
        self.readings += 1
        self._add(*pairs)
        return int(pairs[0].size)

    def _lower(self) -> None:
        """Make the duals feasible but for rounding."""
        np.minimum(self.col_dual, 0, out=self.col_dual)
        self.row_dual[:] = self.source.row_minima(self.col_dual)
        if self.limit is not None:
            np.minimum(self.row_dual, self.limit, out=self.row_dual)
