"""Many dense problems at once, each by a warp, a block, or a cluster of blocks: see batched.cu.

Nothing in `run` waits for the device. The problems of a size are one launch, whose blocks begin
with the largest. `run_one` lets a team have one problem, for some time.
"""

from __future__ import annotations

import functools
import math
import threading
from typing import Any, NamedTuple

import cupy as cp
import numpy as np
from cupy.cuda import driver

from gpumatch.contracts import (
    LARGEST,
    LARGEST_INTEGER,
    SOLVED,
    UNFIT,
    AssignmentTask,
    DeviceBatch,
    DeviceResults,
)
from gpumatch.cuda.kernels import COSTS, Kernels, Source, kernels_for
from gpumatch.cuda.memory import require_memory

__all__ = ["largest_side", "run", "run_one"]

SOURCE = Source(
    "assignment/batched.cu",
    (
        "turn<{Cost}>",
        *(f"solve<{{Cost}}, {columns}>" for columns in (1, 2, 4, 8)),
        *(f"solve_alone<{{Cost}}, {columns}>" for columns in (1, 2)),
    ),
    {"Cost": COSTS},
    ("Wish", "Batch<{Cost}>", "Results"),
)
_WARP = 32
_MOST_COLUMNS = 8  # of a thread
_MOST_THREADS = SOURCE.constant("kMostThreads")
_FIXED = 8192  # bytes that a block has besides its arrays, and more
_A_ROW, _A_COLUMN = 20, 16  # bytes of the arrays
_OF_A_WARP = 64  # columns up to which a warp solves a problem
_OF_A_BLOCK = 512  # columns up to which a block does
_TILE = SOURCE.constant("kTile")
_MOST_PARTS = 16  # blocks that turn a problem
_SHARED_AT_ONCE = 40 * 1024  # bytes that a launch may ask for without more
_BIDS = 2  # four are slower on points in the plane, none on uniform costs
_ROWS_AT_ONCE = 8  # with 16, points take up to 40 % longer
_MOST_WARPS = SOURCE.constant("kMostWarps")
_MOST_BLOCKS = SOURCE.constant("kMostBlocks")
_STEPS_BEFORE_A_GUESS = 64
_CLUSTERS = 90  # from this compute capability on
_CLUSTER_DIMENSIONS = 11, 12, 13  # CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, and so on


class _Shape(NamedTuple):
    """A team: its kernel, the threads and bytes of memory of a block, and how many blocks."""

    kernel: str
    threads: int
    shared: int
    blocks: int = 1


@functools.lru_cache(maxsize=1024)
def shape_for(short: int, long: int, most_blocks: int) -> _Shape:
    """The team for a problem of so many rows and at least as many columns."""
    shared = _A_ROW * short + _A_COLUMN * long
    if long <= _OF_A_WARP:
        columns = _power(-(-long // _WARP))
        return _Shape(f"solve_alone<{{Cost}}, {columns}>", _WARP, shared)
    blocks = most_blocks if long > _OF_A_BLOCK else 1
    most_threads = min(_MOST_THREADS * blocks, _WARP * _MOST_WARPS)
    columns = _power(-(-long // most_threads))
    threads = -(-long // (columns * blocks * _WARP)) * _WARP
    return _Shape(f"solve<{{Cost}}, {columns}>", threads, shared, blocks)


def _power(number: int) -> int:
    """The least power of two that is not less."""
    return 1 << (number - 1).bit_length()


def most_blocks(count: int) -> int:
    """The blocks that each of so many problems may have so that all are solved at once."""
    return _most_blocks(count, cp.cuda.Device().id)


@functools.lru_cache(maxsize=1024)
def _most_blocks(count: int, device: int) -> int:
    chosen = cp.cuda.Device(device)
    if int(chosen.compute_capability) < _CLUSTERS:
        return 1
    blocks = min(chosen.attributes["MultiProcessorCount"] // count, _MOST_BLOCKS)
    return 1 << max(0, blocks.bit_length() - 1)  # any other number may need more than kMostWarps


def largest_side() -> int:
    """The most rows and columns of a problem for which a block has room."""
    return _largest_side(cp.cuda.Device().id)


@functools.cache
def _largest_side(device: int) -> int:
    attributes = cp.cuda.Device(device).attributes
    room = attributes["MaxSharedMemoryPerBlockOptin"] - _FIXED
    return int(min(room // (_A_ROW + _A_COLUMN), _MOST_THREADS * _MOST_COLUMNS))


def run(task: DeviceBatch) -> bool:
    """Launch what solves the problems; whether that is all of them.

    The others have too long sides. They are cleared, and UNFIT.
    """
    kernels = kernels_for(SOURCE, Cost=task.dtype)
    results = kernels.struct("Results")(**task.results._asdict())
    solve = _solve_equal if task.apart is not None else _solve_mixed
    return solve(kernels, task, results)


@functools.lru_cache(maxsize=64)
def _wish(
    kernels: Kernels,
    wish: tuple[float, float, float, bool],
    largest: float,
    is_integer: bool,
    most_steps: int,
) -> np.ndarray:
    sign, limit, most, may_lack = wish
    return kernels.struct("Wish")(
        sign=sign, limit=limit, most=most, largest=largest, may_lack=may_lack, whole=is_integer,
        bids=_BIDS, rows_at_once=_ROWS_AT_ONCE, most_steps=most_steps,
        first_steps=min(_STEPS_BEFORE_A_GUESS, most_steps),
    )  # fmt: skip


def _solve_equal(kernels: Kernels, task: DeviceBatch, results: np.ndarray) -> bool:
    """Solve problems of one size."""
    count = len(task.sizes)
    rows, cols = task.sizes[0].tolist()
    if max(rows, cols) > largest_side():
        _clear(task.results, np.arange(count))
        return False
    turned = _room(count * rows * cols, task.dtype) if rows > cols else None
    batch = _batch(
        kernels,
        costs=int(task.addresses[0]), turned=turned,
        apart=task.apart, step=int(task.steps[0]), rows=rows, cols=cols,
    )  # fmt: skip
    _launch(kernels, task, (batch, results), count, (rows, cols), rows > cols)
    return True


def _solve_mixed(kernels: Kernels, task: DeviceBatch, results: np.ndarray) -> bool:
    """Solve problems of several sizes, those of about one size by one launch."""
    sizes = task.sizes
    fits = sizes.max(axis=1) <= largest_side()
    _clear(task.results, (~fits).nonzero()[0])
    classes = _classes(sizes, fits.nonzero()[0])
    order = np.concatenate([np.empty(0, np.int64), *(numbers for numbers, _ in classes)])
    rows, cols = sizes[order].T
    turns = rows > cols
    entries = np.where(turns, rows * cols, 0)
    before = entries.cumsum() - entries
    room = _room(int(entries.sum()), task.dtype)
    places = np.empty((len(order), 6), np.int64)
    places[:, 0] = np.asarray(task.addresses)[order]
    places[:, 1] = np.where(turns, room.data.ptr + before * task.dtype.itemsize, 0)
    places[:, 2] = np.asarray(task.steps)[order]
    places[:, 3], places[:, 4], places[:, 5] = rows, cols, order
    on_device = cp.asarray(places)  # one copy, because each takes time
    first = 0
    for numbers, largest in classes:
        batch = _batch(kernels, places=on_device.data.ptr + first * places.strides[0])
        last = first + len(numbers)
        turns_any = bool(turns[first:last].any())
        _launch(kernels, task, (batch, results), len(numbers), largest, turns_any)
        first = last
    return bool(fits.all())


def run_one(task: AssignmentTask, most_steps: int) -> bool:
    """Whether a team solves this problem in so many steps of its searches.

    If not, the solution stays as it is.
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
        (1.0, math.inf if limit is None else limit, math.inf, False),
        largest,
        is_integer,
        results,
        most_steps,
    )
    if not run(one) or int(results.states[0]) != SOLVED:
        return False
    (mates,), (numbers,) = results.mates, results.numbers
    solution.row_to_col[:], solution.col_to_row[:] = mates[:nrows], mates[nrows:]
    solution.row_dual[:], solution.col_dual[:] = numbers[:nrows], numbers[nrows:both]
    if limit is not None:
        solution.row_dual += number.type(limit)
    pairs = int(results.pairs[0])
    task.control.phase(found=pairs, matched=pairs, step="team")
    return True


def _room(count: int, dtype: np.dtype) -> cp.ndarray:
    """Room for so many costs that are turned."""
    require_memory(count * dtype.itemsize, "turning the problems")
    return cp.empty(count, dtype)


def _clear(results: DeviceResults, left_out: np.ndarray) -> None:
    """No pairs, and zeros, for the problems that are left out."""
    for k in left_out.tolist():
        results.mates[k], results.numbers[k], results.objective[k] = -1, 0, 0
        results.gap[k], results.pairs[k], results.proven[k] = np.inf, 0, False
        results.states[k] = UNFIT


def _classes(sizes: np.ndarray, numbers: np.ndarray) -> list[tuple[np.ndarray, tuple[int, int]]]:
    """These problems by the powers of two of their longer sides, largest first; and their most."""
    longest = np.maximum(sizes[numbers].max(axis=1), _WARP)
    power = np.ceil(np.log2(longest)).astype(int)
    found = []
    for one in np.unique(power)[::-1]:
        own = numbers[power == one]
        work = sizes[own].prod(axis=1)
        rows, cols = sizes[own].max(axis=0).tolist()
        found.append((own[np.argsort(-work, kind="stable")], (rows, cols)))
    return found


def _batch(kernels: Kernels, **known: Any) -> np.ndarray:
    others = dict.fromkeys(("costs", "turned", "places"))
    numbers = dict.fromkeys(("apart", "step", "rows", "cols"), 0)
    return kernels.struct("Batch")(**{**others, **numbers, **known})


def _launch(
    kernels: Kernels,
    task: DeviceBatch,
    structs: tuple[np.ndarray, np.ndarray],
    count: int,
    largest: tuple[int, int],
    turns: bool,
) -> None:
    """Solve so many problems, none of which has more rows or columns than the largest."""
    batch, results = structs
    if turns:
        tiles = -(-largest[0] // _TILE) * -(-largest[1] // _TILE)
        parts = min(tiles, _MOST_PARTS)
        kernels["turn<{Cost}>"]((count * parts,), (_TILE * 8,), (batch, np.int32(parts)))
    shape = shape_for(min(largest), max(largest), most_blocks(count))
    wish = _wish(kernels, task.wish, task.largest, task.is_integer, task.most_steps)
    solve = kernels[shape.kernel]
    arguments = batch, wish, results, np.int32(shape.blocks)
    with _one_launch:
        if shape.shared > _SHARED_AT_ONCE:
            solve.max_dynamic_shared_size_bytes = shape.shared
        if _clusters.get(solve, 1) != shape.blocks:
            _clusters[solve] = shape.blocks
            for dimension, blocks in zip(_CLUSTER_DIMENSIONS, (shape.blocks, 1, 1)):
                driver.funcSetAttribute(solve.kernel.ptr, dimension, blocks)
        solve((count * shape.blocks,), (shape.threads,), arguments, shared_mem=shape.shared)


_one_launch = threading.Lock()  # what a kernel needs is set for all its launches
_clusters: dict[Any, int] = {}  # the blocks of a cluster that are set
