"""Batches of dense problems, each solved by a warp, a block, or a cluster of blocks (batch.cu).

The threads that solve one problem are its team. `run` waits for the device only if it may solve
large problems together that their teams have given up (`stacked`). It has one launch for all
problems of about one size, whose blocks begin with the largest. `run_one` solves one problem by a
team within a limit of steps.
"""

from __future__ import annotations

import functools
import math
import threading
from typing import Any, NamedTuple

import cupy as cp
import numpy as np
from cupy.cuda import driver

from gpumatch.contracts import AssignmentTask
from gpumatch.contracts.batch import (
    LARGEST,
    LARGEST_INTEGER,
    SOLVED,
    UNFIT,
    UNSOLVED,
    DeviceBatch,
    DeviceResults,
)
from gpumatch.cuda.assignment.batched import stacked
from gpumatch.cuda.assignment.batched import tuning as tunings
from gpumatch.cuda.assignment.batched.tuning import Tuning
from gpumatch.cuda.assignment.dense import sorting
from gpumatch.cuda.kernels import COSTS, Kernels, Source, kernels_for
from gpumatch.cuda.memory import require_memory
from gpumatch.numeric.fair_duals import difference_below

__all__ = ["largest_side", "run", "run_one"]

SOURCE = Source(
    "assignment/batched/batch.cu",
    (
        "turn<{Cost}>",
        *(f"solve<{{Cost}}, {columns}>" for columns in (1, 2, 4, 8)),
        *(f"solve_alone<{{Cost}}, {columns}>" for columns in (1, 2)),
    ),
    {"Cost": COSTS},
    ("Wish", "Batch<{Cost}>", "Results"),
    apart=True,
)
_WARP = 32
_MOST_COLUMNS = 8  # the most columns of a thread
_MOST_THREADS = SOURCE.constant("kMostThreads")
_FIXED = 8192  # an upper bound of a block's shared memory besides its arrays, in bytes
_A_ROW, _A_COLUMN = 20, 16  # bytes of a block's arrays for each row and each column
_TEAMS_OF_A_MULTIPROCESSOR = 2
_TILE = SOURCE.constant("kTile")
_SHARED_AT_ONCE = 40 * 1024  # shared memory that a launch may have without a larger limit, in bytes
_MOST_WARPS = SOURCE.constant("kMostWarps")
_MOST_BLOCKS = SOURCE.constant("kMostBlocks")
_CLUSTERS = 90  # the compute capability from which devices have clusters
_CLUSTER_DIMENSIONS = 11, 12, 13  # CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, and so on


class _Shape(NamedTuple):
    """A team: its kernel, the threads and shared memory of a block, and the number of blocks."""

    kernel: str
    threads: int
    shared: int
    blocks: int = 1


@functools.lru_cache(maxsize=1024)
def shape_for(
    short: int,
    long: int,
    most_blocks: int,
    has_room: bool,
    is_alone: bool = False,
    tuning: Tuning = tunings.DEFAULT,
) -> _Shape:
    """The team for a problem of `short` rows and `long` columns, which are no fewer.

    `has_room` is True if teams of kMostThreads threads for all problems fit on the device at once.
    """
    shared = _A_ROW * short + _A_COLUMN * long
    if long <= tuning.of_a_warp:
        columns = _power(-(-long // _WARP))
        return _Shape(f"solve_alone<{{Cost}}, {columns}>", _WARP, shared)
    blocks = most_blocks if long > tuning.of_a_block[is_alone] else 1
    if is_alone and blocks > tuning.small_cluster[0] and long <= tuning.of_a_small_cluster:
        blocks, threads = tuning.small_cluster
        return _Shape("solve<{Cost}, 1>", threads, shared, blocks)
    most_threads = min(_MOST_THREADS * blocks, _WARP * _MOST_WARPS)
    columns = _power(-(-long // most_threads))
    threads = -(-long // (columns * blocks * _WARP)) * _WARP
    if is_alone and blocks > 1:
        threads = max(threads, tuning.least_threads)
    if has_room and blocks == 1 and long >= tuning.wide * short:
        threads = max(threads, tuning.readers if short <= tuning.few_rows else _MOST_THREADS)
    return _Shape(f"solve<{{Cost}}, {columns}>", threads, shared, blocks)


def _power(number: int) -> int:
    """The least power of two that is not below the number."""
    return 1 << (number - 1).bit_length()


def most_blocks(count: int) -> int:
    """The most blocks of each of `count` problems with which all are solved at once."""
    return _most_blocks(count, cp.cuda.Device().id)


@functools.lru_cache(maxsize=1024)
def _most_blocks(count: int, device: int) -> int:
    chosen = cp.cuda.Device(device)
    if int(chosen.compute_capability) < _CLUSTERS:
        return 1
    blocks = min(_multiprocessors(device) // count, _MOST_BLOCKS)
    return 1 << max(0, blocks.bit_length() - 1)  # any other number may need more than kMostWarps


def has_room(count: int) -> bool:
    """True if large teams for `count` problems fit on the device at once, or nearly."""
    return count <= _multiprocessors(cp.cuda.Device().id) * _TEAMS_OF_A_MULTIPROCESSOR


@functools.cache
def _multiprocessors(device: int) -> int:
    return int(cp.cuda.Device(device).attributes["MultiProcessorCount"])


def largest_side() -> int:
    """The most rows or columns of a problem that a block has memory for."""
    return _largest_side(cp.cuda.Device().id)


@functools.cache
def _largest_side(device: int) -> int:
    attributes = cp.cuda.Device(device).attributes
    room = attributes["MaxSharedMemoryPerBlockOptin"] - _FIXED
    return int(min(room // (_A_ROW + _A_COLUMN), _MOST_THREADS * _MOST_COLUMNS))


def run(task: DeviceBatch, tuning: Tuning | None = None) -> bool:
    """Launch the kernels that solve the problems; False if some will not be solved.

    Problems with too long a side get no pairs, and end as UNFIT. If problems are not solved
    together, they end as UNSOLVED.
    """
    batch = _Run(task, tuning or tunings.DEFAULT)
    batch.solve()
    return batch.fits_all and batch.solve_together()


class _Run:
    """The problems of a batch, and their launches.

    Attributes
    ----------
    fits_all : bool
        True if no problem is too large.
    """

    def __init__(self, task: DeviceBatch, tuning: Tuning) -> None:
        self.task, self.tuning = task, tuning
        self.kernels = kernels_for(SOURCE, Cost=task.dtype)
        self.results = self.kernels.struct("Results")(**task.results._asdict())
        self.fits_all = True
        self.may_give_up = False

    def solve(self) -> None:
        """Solve the problems by teams."""
        if self.task.apart is None:
            self._solve_mixed()
        else:
            self._solve_equal()

    def _solve_equal(self) -> None:
        """Solve problems of one size."""
        task = self.task
        count = len(task.sizes)
        rows, cols = task.sizes[0].tolist()
        if max(rows, cols) > largest_side():
            self._leave_out(np.arange(count))
            return
        turned = _room(count * rows * cols, task.dtype) if rows > cols else None
        batch = self._batch(
            costs=int(task.addresses[0]), turned=turned,
            apart=task.apart, step=int(task.steps[0]), rows=rows, cols=cols,
        )  # fmt: skip
        self._launch(batch, count, (rows, cols), rows > cols)

    def _solve_mixed(self) -> None:
        """Solve problems of several sizes, with one launch for those of about one size."""
        fits = self.task.sizes.max(axis=1) <= largest_side()
        self._leave_out((~fits).nonzero()[0])
        self._launch_each(fits.nonzero()[0])

    def _leave_out(self, numbers: np.ndarray) -> None:
        """Write results without pairs for these problems, and mark them UNFIT."""
        results = self.task.results
        self.fits_all &= not numbers.size
        for k in numbers.tolist():
            results.mates[k], results.numbers[k], results.objective[k] = -1, 0, 0
            results.gap[k], results.pairs[k], results.proven[k] = np.inf, 0, False
            results.states[k] = UNFIT

    def _launch_each(self, chosen: np.ndarray, is_given: bool = False) -> None:
        """Solve these problems, with one launch for those of about one size."""
        task = self.task
        addresses, steps = self._places()
        classes = _classes(task.sizes, chosen)
        order = np.concatenate([np.empty(0, np.int64), *(numbers for numbers, _ in classes)])
        rows, cols = task.sizes[order].T
        turns = rows > cols
        entries = np.where(turns, rows * cols, 0)
        before = entries.cumsum() - entries
        room = _room(int(entries.sum()), task.dtype)
        places = np.empty((len(order), 6), np.int64)
        places[:, 0] = addresses[order]
        places[:, 1] = np.where(turns, room.data.ptr + before * task.dtype.itemsize, 0)
        places[:, 2] = steps[order]
        places[:, 3], places[:, 4], places[:, 5] = rows, cols, order
        on_device = cp.asarray(places)  # one copy, because each copy takes time
        first = 0
        for numbers, largest in classes:
            batch = self._batch(places=on_device.data.ptr + first * places.strides[0])
            last = first + len(numbers)
            self._launch(batch, len(numbers), largest, bool(turns[first:last].any()), is_given)
            first = last

    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """The address and the step of each problem."""
        task = self.task
        addresses, steps = np.asarray(task.addresses), np.asarray(task.steps)
        if task.apart is None:
            return addresses, steps
        numbers = np.arange(len(task.sizes))
        return addresses[0] + numbers * (task.apart * task.dtype.itemsize), steps[0] + 0 * numbers

    def _batch(self, **known: Any) -> np.ndarray:
        others = dict.fromkeys(("costs", "turned", "places"))
        numbers = dict.fromkeys(("apart", "step", "rows", "cols"), 0)
        return self.kernels.struct("Batch")(**{**others, **numbers, **known})

    def _launch(
        self,
        batch: np.ndarray,
        count: int,
        largest: tuple[int, int],
        turns: bool,
        is_given: bool = False,
    ) -> None:
        """Solve `count` problems. None has more rows or more columns than `largest`."""
        kernels, task, tuning = self.kernels, self.task, self.tuning
        if turns:
            tiles = -(-largest[0] // _TILE) * -(-largest[1] // _TILE)
            parts = max(1, min(tiles, tuning.most_parts))
            kernels["turn<{Cost}>"]((count * parts,), (_TILE * 8,), (batch, np.int32(parts)))
        is_alone = len(task.sizes) == 1
        shape = shape_for(
            min(largest), max(largest), most_blocks(count), has_room(count), is_alone, tuning
        )
        steps = _Steps(task.most_steps, tuning.steps_before_a_guess, False)
        if task.together and shape.blocks > 1 and not turns and largest[1] >= tuning.together:
            most = tuning.steps_of_core + int(tuning.steps_of_its_rows * count * largest[0])
            steps = _Steps(most, tuning.steps_before_its_guess, True)
            self.may_give_up = True
        fewest = tuning.fewest_bidders[min(largest) > tuning.few_rows]
        pace = _Pace(tuning.bids[is_alone], fewest, tuning.rows_at_once[is_alone])
        asks_order = task.asks_order and min(largest) >= sorting.LEAST
        wish = _wish(
            kernels, task.wish, task.largest, task.is_integer, steps, pace, tuning.steps_a_row,
            asks_order, is_given,
        )  # fmt: skip
        solve = kernels[shape.kernel]
        arguments = batch, wish, self.results, np.int32(shape.blocks)
        with _one_launch:
            if shape.shared > _SHARED_AT_ONCE:
                solve.max_dynamic_shared_size_bytes = shape.shared
            if _clusters.get(solve, 1) != shape.blocks:
                _clusters[solve] = shape.blocks
                for dimension, blocks in zip(_CLUSTER_DIMENSIONS, (shape.blocks, 1, 1)):
                    driver.funcSetAttribute(solve.kernel.ptr, dimension, blocks)
            solve((count * shape.blocks,), (shape.threads,), arguments, shared_mem=shape.shared)

    # -- together --------------------------------------------------------------------------------

    def solve_together(self) -> bool:
        """Solve the problems that teams have given up as one; True if all are solved."""
        task = self.task
        if not (self.may_give_up and task.together):
            return True
        unsolved = (task.results.states.get() == UNSOLVED).nonzero()[0]
        if not unsolved.size:
            return True
        sign = task.wish[0]
        matrices = [stacked.signed(self._matrix(k), sign) for k in unsolved.tolist()]
        solved = stacked.solve(matrices, task.is_integer, task.together)
        if solved is None:
            return False
        most_rows = task.results.most_rows
        for k, solution in zip(unsolved.tolist(), solved):
            rows, cols = task.sizes[k].tolist()
            mates, numbers = task.results.mates[k], task.results.numbers[k]
            mates[:rows], mates[most_rows : most_rows + cols] = solution.mates
            numbers[most_rows : most_rows + cols] = sign * solution.col_dual
        self._launch_each(unsolved, is_given=True)
        return True

    def _matrix(self, k: int) -> Any:
        """The costs of a problem, without a copy."""
        task, itemsize = self.task, self.task.dtype.itemsize
        rows, cols = task.sizes[k].tolist()
        address, step = (int(values[k]) for values in self._places())
        memory = cp.cuda.UnownedMemory(address, ((rows - 1) * step + cols) * itemsize, task)
        begin = cp.cuda.MemoryPointer(memory, 0)
        return cp.ndarray((rows, cols), task.dtype, begin, strides=(step * itemsize, itemsize))


class _Steps(NamedTuple):
    """The limits of a team's searches.

    Attributes
    ----------
    most : int
        The most steps.
    first : int
        The steps before the team estimates the others.
    lengthen : bool
        True if the estimate assumes that later paths take longer.
    """

    most: int
    first: int
    lengthen: bool


class _Pace(NamedTuple):
    """Mean bids of a row, bidders at which bids end, and the most rows of a step of a search."""

    bids: int
    fewest: int
    rows_at_once: int


@functools.lru_cache(maxsize=64)
def _wish(
    kernels: Kernels,
    wish: tuple[float, float, bool, float, bool],
    largest: float,
    is_integer: bool,
    steps: _Steps,
    pace: _Pace,
    steps_a_row: tuple[int, int],
    asks_order: bool,
    is_given: bool,
) -> np.ndarray:
    sign, limit, takes_equal, most, may_lack = wish
    return kernels.struct("Wish")(
        sign=sign, limit=limit, takes_equal=takes_equal, most=most, largest=largest,
        may_lack=may_lack, whole=is_integer, bids=pace.bids, fewest=pace.fewest,
        rows_at_once=pace.rows_at_once, most_steps=steps.most,
        first_steps=min(steps.first, steps.most), lengthens=steps.lengthen,
        steps_a_row=steps_a_row[0], steps_a_row_of_some=steps_a_row[1],
        asks_order=asks_order, is_given=is_given,
    )  # fmt: skip


def run_one(task: AssignmentTask, most_steps: int) -> bool:
    """Solve a problem by a team, in at most `most_steps` steps of its searches; False if it fails.

    Then the solution is unchanged.
    """
    costs, solution, limit = task.costs, task.solution, task.limit
    (nrows, ncols), values, number = costs.shape, costs.dense(), solution.row_dual.dtype
    if ncols > largest_side():
        return False
    is_integer = number.kind == "i"
    largest = LARGEST_INTEGER if is_integer else LARGEST
    if limit is not None and abs(limit) > largest:
        return False
    both = nrows + ncols
    results = DeviceResults(
        mates=cp.empty((1, both), np.int32),
        numbers=cp.empty((1, both + nrows), number),
        objective=cp.empty(1, number),
        gap=cp.empty(1),
        pairs=cp.empty(1, np.int64),
        states=cp.empty(1, np.int64),
        proven=cp.empty(1, bool),
        most_rows=nrows,
        most_cols=ncols,
    )
    one = DeviceBatch(
        values.dtype,
        np.array([values.data.ptr]),
        np.array([values.strides[0] // values.itemsize]),
        np.array([costs.shape]),
        0,
        (1.0, math.inf if limit is None else limit, False, math.inf, False),
        largest,
        is_integer,
        results,
        most_steps,
    )
    if not run(one) or int(results.states[0]) != SOLVED:
        return False
    (mates,), (numbers,) = results.mates, results.numbers
    solution.has_duals = False
    solution.row_to_col[:], solution.col_to_row[:] = mates[:nrows], mates[nrows:]
    solution.row_dual[:], solution.col_dual[:] = numbers[:nrows], numbers[nrows:both]
    if limit is not None and is_integer:
        solution.row_dual += number.type(limit)
    elif limit is not None:
        solution.row_dual[:] = difference_below(solution.row_dual, -limit)
    solution.has_duals = solution.are_fair = True
    pairs = int(results.pairs[0])
    task.control.phase(found=pairs, matched=pairs, step="team")
    return True


def _room(count: int, dtype: np.dtype) -> cp.ndarray:
    """An array for `count` transposed costs, whose address is not 0 even if there are none.

    The address marks a transposed problem in kernels, and CuPy's empty arrays have the address 0.
    """
    require_memory(count * dtype.itemsize, "turning the problems")
    return cp.empty(max(count, 1), dtype)


def _classes(sizes: np.ndarray, numbers: np.ndarray) -> list[tuple[np.ndarray, tuple[int, int]]]:
    """The problems by powers of two of their longer sides, largest first, with their most rows and
    columns."""
    longest = np.maximum(sizes[numbers].max(axis=1), _WARP)
    power = np.ceil(np.log2(longest)).astype(int)
    found = []
    for one in np.unique(power)[::-1]:
        own = numbers[power == one]
        work = sizes[own].prod(axis=1)
        rows, cols = sizes[own].max(axis=0).tolist()
        found.append((own[np.argsort(-work, kind="stable")], (rows, cols)))
    return found


_one_launch = threading.Lock()  # a kernel's attributes are set for all its launches


_clusters: dict[Any, int] = {}  # the blocks of a cluster that are set for each kernel
