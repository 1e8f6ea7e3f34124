"""The Hungarian algorithm on the GPU: Date and Nagi's classical and alternating tree variants.

K. Date, R. Nagi, "GPU-accelerated Hungarian algorithms for the Linear Assignment Problem", Parallel
Computing 57, 2016. hungarian_classical.cu, hungarian_tree_paper.cu (the paper's trees) and
hungarian_tree.cu (ours) say how they work. Here are the initial reduction, the launches, and the
conversion of costs and duals.

The kernels count in 64-bit integers, so that tight edges have slack 0 exactly. Integer costs are
used as they are. Others become multiples of a power of two, with about 2**57 units to the largest.
That is finer than float64 itself near the largest cost. With forbidden pairs, duals may exceed the
bound that they have without. Then the search begins again, with units and an order of its steps
that suit any duals.

Device memory in addition to the costs, in bytes a row and bytes a column: 80 and 44 with our trees,
41 and 33 with the paper's; 56 and 24 with the classical variant, and 4 for each edge that its
adjacency has room for.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import cupy as cp
import numpy as np

from gpumatch.contracts import AssignmentTask, Control, Costs, Solution
from gpumatch.cuda import memory
from gpumatch.cuda.assignment.divided_rows import ArrayRows
from gpumatch.cuda.kernels import BLOCK, COSTS, Kernels, Source, blocks_for, kernels_for
from gpumatch.cuda.launches import Board, Cooperative, record_seconds
from gpumatch.cuda.memory import unmatched
from gpumatch.cuda.surveys import count_matched
from gpumatch.numeric.arrays import any_true

__all__ = ["Patience", "run_classical", "run_tree"]

REDUCTION = Source(
    "assignment/hungarian_reduction.cu",
    ("row_minima<{Cost}>", "column_minima<{Cost}>"),
    {"Cost": COSTS},
    structs=("Problem<{Cost}>",),
)
CLASSICAL = Source(
    "assignment/hungarian_classical.cu",
    # costs; whether rows begin at multiples of 16 bytes
    ("hungarian_classical<{Cost}, false>", "hungarian_classical<{Cost}, true>"),
    {"Cost": COSTS},
    structs=("State", "Member", "Problem<{Cost}>", "Trees", "Adjacency"),
    cooperative=True,
)
TREE = Source(
    "assignment/hungarian_tree.cu",
    ("hungarian_tree<{Cost}, false>", "hungarian_tree<{Cost}, true>"),
    {"Cost": COSTS},
    structs=("State", "Member", "Problem<{Cost}>", "Trees", "Slacks", "Level", "Search"),
    cooperative=True,
)
TREE_PAPER = Source(
    "assignment/hungarian_tree_paper.cu",
    ("hungarian_tree_paper<{Cost}, false>", "hungarian_tree_paper<{Cost}, true>"),
    {"Cost": COSTS},
    structs=("State", "Member", "Problem<{Cost}>", "Trees", "Slacks"),
    cooperative=True,
)

_STEPS_A_LAUNCH = 256  # the host looks in between: progress, time limit, Ctrl-C
_TRACE = TREE.constant("kTraceLength"), TREE.constant("kTraceWidth")
_BLOCK = TREE.constant("kBlock")
_FAR = np.uint64(2**64 - 1)  # kFar in hungarian_tree.cu
_NEVER = np.int64(TREE.constant("kNever"))  # forbids a pair among integers
# Stages that the host knows, which all kernels number alike.
_CHECK, _DONE, _FULL, _TOO_FINE = map(TREE.constant, ("kCheck", "kDone", "kFull", "kTooFine"))
_AT_NEAREST_LEAF, _AT_SECOND_LEAF, _ANYWHERE = map(
    TREE.constant, ("kAtNearestLeaf", "kAtSecondLeaf", "kAnywhere")
)
_PARTS = ("compression", "forward", "reverse and augmentation", "dual update")
_UNIT_BITS = 57  # of the largest cost: finer than float64 is there, and leaves room for duals
_ROOM_BITS = 60  # of duals that do not have to be watched closely: sums of a few fit 64 bits
_MOST_BITS = 1000  # 2.0**bits is finite
# Neither is measured. Prices that take more repairs are worth little. Few pairs of a row are tight,
# and room for 64 is little beside a row of thousands of costs; more is made when it is needed.
_ADOPTIONS = 4  # times that given prices are repaired before they are given up
_EDGES_A_ROW = 64  # that the adjacency has room for at first


class Patience(NamedTuple):
    """How many steps a search may take: until nine rows in ten have a column, and in all."""

    for_most: int
    in_all: int

    def is_out(self, steps: int, wanting: int, rows: int) -> bool:
        """Whether it is over after these steps, if this many of the rows want a column."""
        return steps > self.in_all or (steps > self.for_most and 10 * wanting > rows)


def run_classical(task: AssignmentTask) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped.

    Which of several optimal assignments is found depends on the order in which the device runs its
    threads. `task.seed` and `task.threads` have no influence on it.
    """
    return _run(_Classical, task)


def run_tree(
    task: AssignmentTask, *, search: str = "levels", patience: Patience | None = None
) -> bool:
    """The same by alternating trees and column slacks.

    ``search="levels"`` takes in a range of slacks at each level, and goes on past the nearest leaf;
    ``search="paper"`` does what the paper does. When its `patience` is over, a search ends as if it
    were stopped.
    """
    kinds: dict[str, Kind] = {"levels": _Tree, "paper": _PaperTree}
    return _run(kinds[search], task, patience)


def _run(kind: Kind, task: AssignmentTask, patience: Patience | None = None) -> bool:
    costs, solution, control = task.costs, task.solution, task.control
    if costs.shape[0] == 0:
        solution.col_dual[:] = 0
        solution.has_duals = True
        return True
    values = costs.dense()
    attempts = _attempts(costs, task.limit)
    for units in attempts:
        problem = _Problem(values, units, task.limit, solution)
        with control.part("initial reduction"):
            problem.reduce()
        search = kind(problem)
        is_last = units is attempts[-1]  # then duals exceed their bound if rows must stay free
        try:
            ended = search.finish(control, patience)
        finally:
            if is_last or not search.is_too_fine:
                problem.write(solution)
                search.report(control)
        if not search.is_too_fine:
            return ended
    return True


# -- costs -----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Units:
    """The units in which the kernels count, and how far they may count.

    Attributes
    ----------
    bits : int
        Costs, and duals, are whole multiples of ``2**-bits``; 0 for integers.
    lift : int
        Costs so small that ``2.0**bits`` overflows are multiplied by ``2**lift`` beforehand.
    largest : int
        The largest cost in units.
    most : int
        The bound of the duals. If one exceeds it, the next attempt begins, or there is no solution.
    most_given : int
        The bound of prices to begin from.
    is_patient : bool
        Whether searches end at the nearest leaf, even if they could go on.
    """

    is_integer: bool
    bits: int
    lift: int
    largest: int
    most: int
    most_given: int
    is_patient: bool

    @property
    def scale(self) -> np.float64:
        return np.float64(math.ldexp(1.0, self.bits - self.lift))

    @property
    def most_distance(self) -> int:
        return self.most - self.largest

    def lifted(self, values: cp.ndarray) -> cp.ndarray:
        return cp.ldexp(values, self.lift) if self.lift else values

    def fixed(self, lifted: cp.ndarray) -> cp.ndarray:
        if self.is_integer:
            return lifted.astype(np.int64)
        return cp.rint(lifted.astype(np.float64) * self.scale).astype(np.int64)

    def given(self, fixed: cp.ndarray) -> cp.ndarray:
        return fixed if self.is_integer else cp.ldexp(fixed.astype(np.float64), -self.bits)


def _attempts(costs: Costs, limit: float | None) -> list[_Units]:
    """The units to try: first the finest, last those whose duals are sure to fit.

    Let c be the largest cost or limit, in units, and n the rows. If searches end at the nearest
    leaf, an alternating path of at most n rows leads from the least dual of a column to one that is
    0. So no column's dual is below -2nc, and no row's is above (2n + 1)c; given duals add to both.
    A row whose dual is greater cannot be matched. If (n + 1)c < 2**62, all duals fit 64 bits, and
    distances fit 64 bits without a sign. Without forbidden pairs one row leads from any column to
    any other, and n counts as 1. Searches that end farther out are tried while duals leave room.
    """
    largest = max(costs.largest, 0 if limit is None else abs(limit))
    exponent = 0 if costs.is_integer else _UNIT_BITS - math.frexp(largest)[1]
    n = 1 if costs.is_complete else min(costs.shape)

    def units(bits: int, *, is_patient: bool) -> _Units:
        most_cost = int(largest) if costs.is_integer else 2**_UNIT_BITS >> exponent - bits
        given, most = 2 * most_cost, 2**_ROOM_BITS
        if is_patient:
            given = min(given, 2**63 - 1 - 2 * (n + 1) * most_cost)
            most = (2 * n + 1) * most_cost + given
        lift = max(0, bits - _MOST_BITS)
        return _Units(costs.is_integer, bits, lift, most_cost, most, given, is_patient)

    coarser = 0 if costs.is_integer else max(0, (n + 1).bit_length() - (62 - _UNIT_BITS))
    last = units(exponent - coarser, is_patient=True)
    first = units(exponent, is_patient=False)
    return [last] if first.largest > 2**_UNIT_BITS else [first, last]


class _Problem:
    """A problem on the device, its matching and its duals in the kernels' units."""

    def __init__(
        self, values: cp.ndarray, units: _Units, limit: float | None, start: Solution
    ) -> None:
        self.given, self.values, self.units = values, units.lifted(values), units
        self.nrows, self.ncols = values.shape
        self.given_limit = limit
        self.limit = _NEVER if limit is None else np.int64(_fixed_limit(limit, units))
        self.all_match = limit is None and self.nrows == self.ncols
        self.kernels = kernels_for(REDUCTION, Cost=values.dtype)
        self.row_to_col = unmatched(self.nrows)
        self.col_to_row = start.col_to_row.copy()
        self.row_dual = cp.zeros(self.nrows, np.int64)
        self.col_dual = units.fixed(units.lifted(start.col_dual))
        cp.clip(self.col_dual, -units.most_given, units.most_given, out=self.col_dual)

    def struct(self) -> np.ndarray:
        """Problem<Cost> of dense_costs.cuh, which all sources here share."""
        return self.kernels.struct("Problem")(
            values=self.values,  # IN
            nrows=self.nrows,
            ncols=self.ncols,
            scale=self.units.scale,
            limit=self.limit,
            most=self.units.most,
            row_to_col=self.row_to_col,  # IN, OUT
            col_to_row=self.col_to_row,
            row_dual=self.row_dual,
            col_dual=self.col_dual,
        )

    def reduce(self) -> None:
        """Begin from given prices, as far as they fit, or by the reduction (Algorithm 1)."""
        is_given = any_true(self.col_to_row >= 0) or any_true(self.col_dual != 0)
        if is_given and self._adopt():
            return
        self.row_to_col.fill(-1)
        self.col_to_row.fill(-1)
        self.col_dual.fill(0)
        self._reduce_rows()
        if self.all_match:
            self._reduce_columns()

    def write(self, solution: Solution) -> None:
        """Write the matching and the duals back; if all match, no column's dual is above 0."""
        solution.has_duals = False
        if self.all_match:
            most = self.col_dual.max()
            self.col_dual -= most
            self.row_dual += most
        solution.row_to_col[:] = self.row_to_col
        solution.col_to_row[:] = self.col_to_row
        solution.col_dual[:] = self.units.given(self.col_dual)
        if self.units.is_integer:
            solution.row_dual[:] = self.row_dual
        else:
            solution.row_dual[:] = self._least_of_rows(solution.col_dual)
        solution.has_duals = True

    def _least_of_rows(self, col_dual: cp.ndarray) -> cp.ndarray:
        """The duals of rows that the given costs allow: units may be too coarse for small ones."""
        least = ArrayRows(self.given, np.inf, lambda: False).least_of_rows(col_dual)
        if self.given_limit is not None:
            least = cp.minimum(least, self.given_limit)
        return cp.where(least < np.inf, least, 0)  # no pair is allowed

    def _adopt(self) -> bool:
        """Keep the pairs that are tight at the given prices; False if that does not end."""
        if not self.all_match:
            cp.minimum(self.col_dual, 0, out=self.col_dual)
        for _ in range(_ADOPTIONS):
            if not self.all_match:
                self.col_dual[self.col_to_row < 0] = 0
            self._reduce_rows()
            cols = cp.flatnonzero(self.col_to_row >= 0)
            rows = self.col_to_row[cols]
            paid = self.units.fixed(self.values[rows, cols])
            is_dear = paid - self.col_dual[cols] > self.row_dual[rows]
            if not any_true(is_dear):
                self.row_to_col[rows] = cols
                return True
            self.col_to_row[cols[is_dear]] = -1
        return False

    def _reduce_rows(self) -> None:
        self.kernels["row_minima<{Cost}>"](
            (blocks_for(32 * self.nrows),),
            (BLOCK,),
            (
                self.struct(),  # IN
                self.row_dual,  # OUT
            ),
        )
        cp.minimum(self.row_dual, self.limit, out=self.row_dual)
        self.row_dual[self.row_dual == _NEVER] = 0  # no pair is allowed

    def _reduce_columns(self) -> None:
        self.col_dual.fill(_NEVER)
        blocks = -(-self.ncols // BLOCK)
        shares = max(1, min(self.nrows, blocks_for(2**31) // blocks))
        self.kernels["column_minima<{Cost}>"](
            (blocks, shares),
            (BLOCK,),
            (
                self.struct(),  # IN
                self.col_dual,  # IN, OUT
            ),
        )
        self.col_dual[self.col_dual == _NEVER] = 0
        cp.minimum(self.col_dual, self.units.most_given, out=self.col_dual)


def _fixed_limit(limit: float, units: _Units) -> int:
    return int(limit) if units.is_integer else round(math.ldexp(float(limit), units.bits))


# -- searches --------------------------------------------------------------------------------------


class _Search(ABC):
    """The trees of a search on the device, and its launches."""

    source: Source
    kernel: str

    def __init__(self, problem: _Problem) -> None:
        nrows, ncols = problem.nrows, problem.ncols
        self.problem = problem
        memory.require_memory(self.bytes_needed(nrows, ncols), "the Hungarian algorithm")
        pack = 16 // problem.values.itemsize
        is_aligned = ncols % pack == 0 and problem.values.data.ptr % 16 == 0
        self.kernels = kernels_for(self.source, Cost=problem.values.dtype)
        self._kernel = Cooperative(
            self.kernels,
            self.kernel.format(str(is_aligned).lower()),
            block=_BLOCK,
            most=min(_most_blocks(), nrows * (ncols // _BLOCK + 1)),
        )
        self.rows = cp.empty((2, nrows), np.int32)
        self.cols = cp.empty((2, ncols), np.int32)
        self.members = _members(self.kernels, nrows)
        self.leaves = cp.empty(nrows + ncols, np.int32)
        self.counts = cp.empty(self._kernel.blocks, np.int32)
        self.board = Board(self.kernels.struct("State"), _TRACE)
        self._trees = self.kernels.struct("Trees")(
            members=self.members,  # OUT, then IN
            leaves=self.leaves,
            row_pred=self.rows[0],
            row_next=self.rows[1],
            col_pred=self.cols[0],
            col_next=self.cols[1],
            state=self.board.state,  # IN, OUT
            trace=self.board.trace,  # OUT
            barrier=self.board.barrier,
            counts=self.counts,
        )
        self._started_with = count_matched(problem.col_to_row)
        self.seen["matched"] = self._started_with
        self.seen["least"] = _NEVER
        self.seen["is_stale"] = 1
        self.board.tell()

    @staticmethod
    def bytes_needed(nrows: int, ncols: int) -> int:
        return 28 * nrows + 12 * ncols

    @property
    def seen(self) -> np.void:
        """The state that the host has seen last."""
        return self.board.seen

    @property
    def is_too_fine(self) -> bool:
        return bool(self.seen["at"]["stage"] == _TOO_FINE)

    @abstractmethod
    def own_struct(self) -> np.ndarray:
        """What the kernel takes in addition to problem and trees."""

    def go_on(self) -> None:
        """Make a bounded number of steps."""
        self._kernel(
            *(self.problem.struct(), self._trees, self.own_struct()),  # IN, OUT
            np.int32(_STEPS_A_LAUNCH),  # IN
        )
        self.board.look()

    def finish(self, control: Control, patience: Patience | None = None) -> bool:
        """Go on until the search is done; False if `control` stops it or its patience ends."""
        while self.seen["at"]["stage"] < _DONE:
            if control.tick(int(self.seen["matched"])):
                return False
            steps, wanting = int(self.seen["at"]["step"]), int(self.seen["at"]["roots"])
            if patience is not None and patience.is_out(steps, wanting, self.problem.nrows):
                return False
            self.go_on()
        return True

    def report(self, control: Control) -> None:
        """Tell `control` of the iterations, and of the time that each part took.

        As in the paper's Table 2, what is found before the first dual update is ``initial``.
        """
        matched, is_initial = self._started_with, True
        records = self.board.records(int(self.seen["at"]["phase"]))
        for levels, found, updates, gained, scans in records:
            matched += gained
            is_initial &= updates == 0
            control.phase(
                levels=levels,
                scans=scans,
                found=found,
                initial=found if is_initial else 0,
                matched=matched,
                updates=updates,
            )
        record_seconds(control, _PARTS, self.seen["spent"])


def _most_blocks() -> int:
    """One a multiprocessor, because more make grid barriers slower."""
    return cp.cuda.Device().attributes["MultiProcessorCount"]


def _members(kernels: Kernels, count: int) -> cp.ndarray:
    """Room for so many of the kernels' `Member`."""
    return cp.empty((count, kernels.struct("Member").nbytes), np.uint8)


Kind = Callable[[_Problem], _Search]


class _Tree(_Search):
    source = TREE
    kernel = "hungarian_tree<{{Cost}}, {}>"

    def __init__(self, problem: _Problem) -> None:
        super().__init__(problem)
        self.dist = cp.empty((2, problem.ncols), np.uint64)
        self.col_root = cp.empty(problem.ncols, np.int32)
        self.first_leaf = cp.empty(problem.nrows, np.uint64)
        self.frontier = [_members(self.kernels, problem.nrows) for _ in range(2)]
        made = np.zeros(3, TREE.struct("Level").dtype)
        made["least"] = made["bound"] = _FAR
        self.made = cp.asarray(made.view(np.uint8))
        start = np.zeros(1, TREE.struct("Search").dtype)
        start["spread"] = problem.units.largest
        self.search = cp.asarray(start.view(np.uint8))
        self.ending = _ANYWHERE if problem.all_match else _AT_SECOND_LEAF
        if problem.units.is_patient:
            self.ending = _AT_NEAREST_LEAF

    @staticmethod
    def bytes_needed(nrows: int, ncols: int) -> int:
        return _Search.bytes_needed(nrows, ncols) + 40 * nrows + 20 * ncols

    def own_struct(self) -> np.ndarray:
        return self.kernels.struct("Slacks")(
            dist=self.dist[0],  # OUT, then IN
            joined_at=self.dist[1],
            frontier=self.frontier,
            made=self.made,  # IN, OUT
            search=self.search,
            most=self.problem.units.most_distance,  # IN
            ending=self.ending,
            col_root=self.col_root,  # OUT, then IN
            first_leaf=self.first_leaf,
        )


class _PaperTree(_Search):
    source = TREE_PAPER
    kernel = "hungarian_tree_paper<{{Cost}}, {}>"

    def __init__(self, problem: _Problem) -> None:
        super().__init__(problem)
        self.slack = cp.empty(problem.ncols, np.int64)
        self.row_mark = cp.empty(problem.nrows, np.uint8)
        self.col_mark = cp.empty(problem.ncols, np.uint8)

    @staticmethod
    def bytes_needed(nrows: int, ncols: int) -> int:
        return _Search.bytes_needed(nrows, ncols) + nrows + 9 * ncols

    def own_struct(self) -> np.ndarray:
        return self.kernels.struct("Slacks")(
            slack=self.slack,  # OUT, then IN
            row_mark=self.row_mark,
            col_mark=self.col_mark,
        )


class _Classical(_Search):
    source = CLASSICAL
    kernel = "hungarian_classical<{{Cost}}, {}>"

    def __init__(self, problem: _Problem) -> None:
        super().__init__(problem)
        self.bounds = cp.empty((2, problem.nrows), np.int64)
        self.adjacency = cp.empty(_EDGES_A_ROW * problem.nrows, np.int32)

    @staticmethod
    def bytes_needed(nrows: int, ncols: int) -> int:
        return _Search.bytes_needed(nrows, ncols) + (16 + 4 * _EDGES_A_ROW) * nrows

    def own_struct(self) -> np.ndarray:
        return self.kernels.struct("Adjacency")(
            cols=self.adjacency,  # OUT, then IN
            begin=self.bounds[0],
            end=self.bounds[1],
            room=self.adjacency.size,  # IN
        )

    def go_on(self) -> None:
        super().go_on()
        if self.seen["at"]["stage"] == _FULL:
            self._make_room()

    def _make_room(self) -> None:
        """Room for twice the edges that the compression has counted, and again from the check."""
        room = 3 * int(self.seen["adjacent"])
        del self.adjacency
        memory.require_memory(4 * room, "the adjacency of the Hungarian algorithm")
        self.adjacency = cp.empty(room, np.int32)
        self.seen["at"]["stage"] = _CHECK
        self.board.tell()
