"""Assignment by auction on the GPU: the host code of auction.cu, which describes the rounds.

The method is that of the auction on the CPU. The docstring of that module describes the epsilons
and the columns' auction after the rows', and shows why integers end exactly. For each epsilon, the
auction removes all pairs. Then rows bid for columns, and unmatched columns bid for rows. With
``scaling="none"``, the rows bid once, from prices of 0, by the last epsilon alone.

Integers are counted in 64-bit multiples of the last epsilon. Other costs, and integers too large
for that, are counted as float64. Then the Hungarian algorithm closes the gap from the auction's
prices. If its dense matrix of sparse costs exceeds the memory, the task's fallback closes the gap
on the host.

Until the auction ends, the host reads only the kernel's `State`.

Device memory in addition to the costs: 36 bytes a row and 40 a column; if columns bid, 16 a row and
20 a column more, and the transposed costs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from gpumatch.contracts import AssignmentTask, Control, Costs, Solution
from gpumatch.cuda import memory
from gpumatch.cuda.assignment.hungarian import tree as hungarian_tree
from gpumatch.cuda.kernels import COSTS, Kernels, Source, kernels_for
from gpumatch.cuda.launches import Board, Cooperative
from gpumatch.cuda.matching import cheap
from gpumatch.cuda.matching import engine as matching_engine
from gpumatch.cuda.memory import unmatched
from gpumatch.numeric.arrays import any_true
from gpumatch.numeric.auction_schedule import Precision, close_gaps

__all__ = ["run"]

SOURCE = Source(
    "assignment/auction.cu",
    (
        "open_auction<{Cost}>",
        *(
            f"{kernel}<{entries}>"
            for kernel in ("hold_rounds", "least_reduced")
            for entries in ("Dense<{Cost}, false>", "Dense<{Cost}, true>", "Sparse<{Cost}>")
        ),
    ),
    {"Cost": COSTS},
    structs=(
        *("State", "Auction<Number<{Cost}>>", "Terms<Number<{Cost}>>"),
        *("Dense<{Cost}, false>", "Sparse<{Cost}>"),
    ),
    cooperative=True,
)

_ROUNDS_A_LAUNCH = 4096  # between launches the host checks progress, time limit and Ctrl-C
_ENTRIES_A_LAUNCH = 2**34  # reading these takes some hundredths of a second at full memory speed
_BITS = 61  # bits of the integers that count costs, so that sums of a few fit into 64 bits
_BLOCK = SOURCE.constant("kBlock")


def run(
    task: AssignmentTask,
    *,
    scaling: str = "epsilon",
    finish: str = "exact",
    convergence: str = "counter",
    host_loop: str = "batch",
) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states.

    Parameters
    ----------
    scaling : {"epsilon", "none"}
        ``"epsilon"`` holds auctions with falling epsilons, from the given prices. ``"none"`` holds
        the paper's one auction, from prices of 0.
    finish : {"exact", "epsilon"}
        ``"exact"`` closes the gap of costs that are not integers. ``"epsilon"`` leaves it at up to
        n · epsilon.
    convergence : {"counter", "reduction"}
        The test that all rows are served: an atomic counter, or a reduction of one boolean for each
        object.
    host_loop : {"batch", "round"}
        The host reads the state after thousands of rounds, or after each round as in the paper.

    Returns
    -------
    bool
        True if the assignment is optimal, or no full assignment exists. False if the control has
        stopped the run, or a gap remains.
    """
    costs, solution, limit = task.costs, task.solution, task.limit
    if costs.shape[0] == 0:
        solution.col_dual[:] = 0
        solution.has_duals = True
        return True
    if limit is None and not costs.is_complete:
        largest = _largest_matching(task)
        if largest is None:
            return False
        if any_true(largest[0] < 0):
            solution.row_to_col[:], solution.col_to_row[:] = largest
            return True
    precision = Precision.of(costs, limit, bits=_BITS)
    if precision.is_workable:
        loop = convergence, _ROUNDS_A_LAUNCH if host_loop == "batch" else 1
        auction = _Auction(costs, solution.col_dual, limit, precision, *loop)
        done = _hold(auction, scaling, solution, task.control)
        if not done or precision.is_exact:
            return done
        if finish == "epsilon":
            return False
    return _close_gap(task)


def _hold(auction: _Auction, scaling: str, solution: Solution, control: Control) -> bool:
    """Hold the auction and write its result; False if the control has stopped it."""
    try:
        return auction.run_once(control) if scaling == "none" else auction.run(control)
    finally:
        auction.write(solution)


def _close_gap(task: AssignmentTask) -> bool:
    """Find the optimum from the auction's prices; on the host if a dense matrix does not fit."""
    try:
        return hungarian_tree.run(task)
    except MemoryError:
        if task.fallback is None or task.costs.has_matrix:
            raise
    return task.run_on_host(task.fallback)


def _largest_matching(task: AssignmentTask) -> tuple[cp.ndarray, cp.ndarray] | None:
    """Return a maximum matching of the allowed pairs; None if the control has stopped it."""
    graph = task.costs.pattern()
    mates = unmatched(graph.nrows), unmatched(graph.ncols)
    matching = task.matching(graph, *mates)
    return mates if cheap.run(matching) and matching_engine.run(matching) else None


# -- the driver ------------------------------------------------------------------------------------


class _Side(NamedTuple):
    """The duals and mates of the rows, or of the columns."""

    dual: cp.ndarray
    mate: cp.ndarray

    @classmethod
    def of(cls, dual: cp.ndarray) -> _Side:
        return cls(dual, unmatched(dual.size))


class _Numbers:
    """The unit of the duals: int64 multiples of the last epsilon if that is exact."""

    def __init__(self, precision: Precision) -> None:
        self.is_exact = precision.is_exact
        self.kind: Any = np.int64 if self.is_exact else np.float64
        self.shift = int(1 / precision.epsilon).bit_length() - 1 if self.is_exact else 0
        self.far = self.kind(2**63 - 1 if self.is_exact else np.inf)

    def of(self, number: float) -> Any:
        return self.kind(number * 2**self.shift)

    def of_prices(self, given: cp.ndarray, farthest: float) -> cp.ndarray:
        """Return the given prices, clipped to the range from ``-farthest`` to 0."""
        least = self.kind(-farthest)
        return cp.clip(given.astype(self.kind), least, 0) * self.of(1)


class _Auction:
    """The auctions for all epsilons. `best` has the last complete assignment and its prices."""

    def __init__(
        self,
        costs: Costs,
        col_dual: cp.ndarray,
        limit: float | None,
        precision: Precision,
        convergence: str,
        rounds_a_launch: int,
    ) -> None:
        nrows, ncols = costs.shape
        self.rounds_a_launch = rounds_a_launch
        self.costs, self.limit, self.precision = costs, limit, precision
        self.reduces = convergence == "reduction"
        self.numbers = _Numbers(precision)
        self.is_warm = any_true(col_dual != 0)
        self.all_match = limit is None and nrows == ncols
        memory.require_memory(16 * nrows + 24 * ncols, "the auction")
        self.rows = _Side.of(cp.empty(nrows, self.numbers.kind))
        self.cols = _Side.of(self.numbers.of_prices(col_dual, precision.farthest / 4))
        self.forward = _Floor(self.rows, self.cols, self._entries(costs), self.reduces)
        self.reverse: _Floor | None = None
        self.no_more_than = cp.asarray(
            self.numbers.far if limit is None else self.numbers.of(limit)
        )
        self.best: tuple[cp.ndarray, cp.ndarray, cp.ndarray] | None = None
        self.assigned = 0

    def run_once(self, control: Control) -> bool:
        """Hold the paper's auction, from prices of 0, by the last epsilon; False if stopped."""
        self.cols.dual.fill(0)
        return self._forward(self.precision.epsilon, 0, control) is not None

    def run(self, control: Control) -> bool:
        """Hold an auction for each epsilon; False if the control has stopped them."""
        for epsilon in self.precision.schedule(self.is_warm):
            self.rows.mate.fill(-1)
            self.cols.mate.fill(-1)
            matched = 0
            for auction in (self._forward, self._reverse):
                found = auction(epsilon, matched, control)
                if found is None:
                    return False
                matched += found
            self._settle()
            self.best = self.rows.mate.copy(), self.cols.mate.copy(), self.cols.dual.copy()
            self.assigned = matched
            if control.tick(matched) and epsilon > self.precision.epsilon:
                return False
        return True

    def _forward(self, epsilon: float, matched: int, control: Control) -> int | None:
        """Hold the auction in which rows bid for columns."""
        self.rows.dual.fill(-self.numbers.far)
        return self._hold("forward", self.forward, self.no_more_than, epsilon, matched, control)

    def _reverse(self, epsilon: float, matched: int, control: Control) -> int | None:
        """Hold the auction in which unmatched columns with prices below the cap bid for rows."""
        if self.all_match:
            return 0
        cap = self._cap()
        if not any_true((self.cols.mate < 0) & (self.cols.dual < cap)):
            return 0
        if self.reverse is None:
            entries = self._entries(self.costs.transpose())
            self.reverse = _Floor(self.cols, self.rows, entries, self.reduces)
        return self._hold("reverse", self.reverse, cap, epsilon, matched, control)

    def _hold(
        self,
        step: str,
        floor: _Floor,
        cap: cp.ndarray,
        epsilon: float,
        matched: int,
        control: Control,
    ) -> int | None:
        """Hold rounds until all bidders are served, and return the number of new pairs.

        The result is None if the control has stopped the rounds.
        """
        jump, least = self.numbers.of(self.precision.spread), self.numbers.of(epsilon)
        floor.open(cap)
        while floor.seen["waiting"]:
            floor.hold_rounds(cap, jump, least, self.rounds_a_launch)
            found = int(floor.seen["assigned"])
            if self.best is None:
                self.assigned = matched + found
            if control.tick(self.assigned) and floor.seen["waiting"]:
                return None
        control.phase(
            found=found,
            matched=matched + found,
            step=step,
            epsilon=epsilon,
            rounds=int(floor.seen["round"]),
        )
        return found

    def _entries(self, costs: Costs) -> _Entries:
        """Return the costs in the auction's units."""
        has_other_numbers = costs.is_integer and not self.numbers.is_exact
        return _Entries.of(costs.as_float() if has_other_numbers else costs, self.numbers.shift)

    def _cap(self) -> cp.ndarray:
        """Return the price of unmatched columns: the highest of matched ones, 0 with a limit."""
        if self.limit is not None:
            return cp.zeros((), self.numbers.kind)
        return cp.where(self.cols.mate >= 0, self.cols.dual, -self.numbers.far).max()

    def _settle(self) -> None:
        """Shift the prices so that those of unmatched columns are 0, and no price is above 0."""
        self.cols.dual[:] = cp.where(self.cols.mate >= 0, self.cols.dual - self._cap(), 0)

    def write(self, solution: Solution) -> None:
        """Write the last complete assignment, or the pairs found so far, into the result.

        The duals are feasible. They are exact if the assignment has exact duals.
        """
        if self.best is None:
            self.best = self.rows.mate, self.cols.mate, self.cols.dual
        row_to_col, col_to_row, price = self.best
        if self.numbers.is_exact:
            price = _rounded(price, row_to_col, self.numbers.shift)
            price = close_gaps(price, 2 * int(max(self.costs.largest, abs(self.limit or 0))))
        elif self.costs.is_integer:
            farthest = (row_to_col.size + 1) * self.costs.largest
            price = cp.rint(cp.maximum(price, -farthest)).astype(np.int64)
        least = _Entries.of(self.costs, 0).least_reduced(price, row_to_col.size)
        if self.limit is not None:
            cp.minimum(least, self.limit, out=least, casting="unsafe")
        solution.has_duals = False
        targets = *solution.mates, *solution.duals
        for target, source in zip(targets, (row_to_col, col_to_row, least, price)):
            target[:] = source
        solution.has_duals = True


def _rounded(price: cp.ndarray, row_to_col: cp.ndarray, shift: int) -> cp.ndarray:
    """Prices rounded to integers so that an optimal assignment stays optimal, as on the CPU."""
    scale = 1 << shift
    is_bad = cp.zeros(scale, np.int8)
    is_bad[(scale - 1 - price[row_to_col[row_to_col >= 0]]) % scale] = 1
    return (price + is_bad.argmin()) >> shift


# -- costs and rounds on the device ----------------------------------------------------------------


class _Entries(NamedTuple):
    """The costs as the kernels read them: Dense or Sparse of auction_bids.cuh."""

    kind: str
    kernels: Kernels
    struct: np.ndarray
    arrays: tuple[cp.ndarray, ...]
    total: int

    @classmethod
    def of(cls, costs: Costs, shift: int) -> _Entries:
        """Return the costs in units of ``2**-shift``."""
        nrows, ncols = costs.shape
        entries: Any = costs.entries()  # CuPy's
        if isinstance(entries, tuple):
            indptr, indices, weights = entries[0].astype(np.int64), *entries[1:]
            kernels = kernels_for(SOURCE, Cost=weights.dtype)
            struct = kernels.struct("Sparse")(
                indptr=indptr,
                indices=indices,
                weights=weights,
                length=-(-costs.nnz // nrows),
                shift=shift,
            )
            arrays = indptr, indices, weights
            return cls("Sparse<{Cost}>", kernels, struct, arrays, weights.size)
        pack = 16 // entries.itemsize
        is_aligned = ncols % pack == 0 and entries.data.ptr % 16 == 0
        kernels = kernels_for(SOURCE, Cost=entries.dtype)
        struct = kernels.struct("Dense")(values=entries, length=ncols, shift=shift)
        kind = f"Dense<{{Cost}}, {str(is_aligned).lower()}>"
        return cls(kind, kernels, struct, (entries,), entries.size)

    def least_reduced(self, price: cp.ndarray, nrows: int) -> cp.ndarray:
        """Return the least reduced cost of each row at these prices."""
        least = cp.empty(nrows, price.dtype)
        kernel = f"least_reduced<{self.kind}>"
        launch = Cooperative(self.kernels, kernel, block=_BLOCK, most=-(-32 * nrows // _BLOCK))
        launch(
            *(self.struct, np.int32(nrows), price),  # IN
            least,  # OUT
        )
        return least


class _Floor:
    """The launches in which the vertices of one side bid for those of the other."""

    def __init__(self, own: _Side, other: _Side, entries: _Entries, reduces: bool) -> None:
        nown, nother = own.mate.size, other.mate.size
        memory.require_memory(20 * nown + 16 * nother + reduces * (nown + nother), "the auction")
        self._entries, self._kernels = entries, entries.kernels
        most = entries.total // _BLOCK
        rounds = f"hold_rounds<{entries.kind}>"
        self._hold_rounds = Cooperative(self._kernels, rounds, block=_BLOCK, most=most)
        opening = "open_auction<{Cost}>"
        self._open = Cooperative(self._kernels, opening, block=_BLOCK, most=most)
        self._counts = cp.empty(self._open.blocks, np.int32)
        self._board = Board(self._kernels.struct("State"))
        self._queues = cp.empty((2, nown), np.int32)
        self._arrays = {  # OUT, then IN
            "bid_target": cp.empty(nown, np.int32),
            "bid_offer": cp.empty(nown, own.dual.dtype),
            "best": cp.empty(nother, np.int64),
            "winner": cp.empty(nother, np.uint64),
            "is_served": cp.empty(nother + nown, np.uint8) if reduces else None,
            "sums": cp.empty(self._hold_rounds.blocks, np.int64),
        }
        self._auction = self._kernels.struct("Auction")(
            nbidders=nown,  # IN
            nobjects=nother,
            own_dual=own.dual,  # IN, OUT
            other_dual=other.dual,
            own_mate=own.mate,
            other_mate=other.mate,
            bidders=self._queues,
            state=self._board.state,
            barrier=self._board.barrier,
            **self._arrays,
        )

    @property
    def seen(self) -> np.void:
        """The state that the host has read last."""
        return self._board.seen

    def open(self, cap: cp.ndarray) -> None:
        """Queue the unmatched vertices with a dual below the cap, by stream compaction."""
        self._open(
            self._auction,  # IN, OUT
            cap,  # IN
            self._counts,  # OUT
        )
        self._board.look()

    def hold_rounds(self, cap: cp.ndarray, jump: Any, epsilon: Any, most: int) -> None:
        """Hold at most this many rounds, and fewer if they read many entries."""
        self._hold_rounds(
            self._entries.struct,  # IN
            self._auction,  # IN, OUT
            self._kernels.struct("Terms")(cap=cap, jump=jump, epsilon=epsilon),  # IN
            *(np.int32(most), np.int64(_ENTRIES_A_LAUNCH)),
        )
        self._board.look()
