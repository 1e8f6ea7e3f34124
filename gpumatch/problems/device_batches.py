"""Batches of dense problems on a device, in launches for many problems each; and small single ones.

The results stay on the device. A call waits for them only if an error must be raised at once, or if
kernels may leave a problem unsolved: integers of 64 bits, cardinality ``"maximum"``, and long
sides. Unsolved problems are then solved one by one. A call waits for few problems of 3,000 columns
or more as well, because it may solve them together. A single problem gets one launch, too, after
which the call waits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from gpumatch.contracts.batch import ORDERED, SOLVED, UNSOLVED, DeviceBatch, DeviceResults, Together
from gpumatch.costs import CostBatch, SparseCosts
from gpumatch.dispatch.registry import BATCHES, SEEMS_SORTED, TEAM, load
from gpumatch.numeric.arrays import has_length
from gpumatch.problems.one_by_one import Batch
from gpumatch.problems.request import ON_ERROR, Request, checked_limit, wish_for
from gpumatch.problems.small_problems import numbers_for
from gpumatch.results.assignment import Assignment, BatchAssignment
from gpumatch.running.control import Control, attach_result

__all__ = ["SHORT", "Room", "assign_alone", "assign_even", "solve_even", "solve_on_device"]

_INT32, _INT64, _FLOAT64, _BOOL = map(np.dtype, ("i4", "i8", "f8", "?"))
_ALIGNED = 256
"""Bytes between the beginnings of two arrays, as separate allocations would have them."""
SHORT = 1024
"""Rows and columns of a problem for which a block has room on each device."""
MOST = 2**24
"""Pairs of a problem of points up to which it is solved as a matrix, with the others of a batch."""
MADE_AT_ONCE = 2**28
"""Entries of matrices that are made at a time: 2 GiB."""
NOTHING_GIVEN: Mapping[str, int] = {}
_EVEN = frozenset(map(np.dtype, ("i4", "f4", "f8")))
"""The dtypes that kernels take in one launch."""


def assign_even(
    costs: Any, maximize: bool, cardinality: str, cost_limit: Any, on_error: str
) -> BatchAssignment | None:
    """The assignments of an array of problems on a device by one launch.

    None if another way must answer: a problem may need more than the kernels, or its error must be
    raised now.
    """
    control = Control()
    if not costs.flags.c_contiguous or on_error not in ON_ERROR:
        return None
    with control.part("search"):
        room = solve_even(
            costs.data.ptr, costs.shape, costs.dtype, maximize, cardinality, cost_limit
        )
    if room is None or (on_error == "raise" and not room.array("proven").get().all()):
        return None

    def errors() -> dict[int, Exception]:
        request = Request.of(
            control,
            maximize=maximize,
            cardinality=cardinality,
            cost_limit=cost_limit,
            on_error=on_error,
        )
        return Batch(CostBatch(costs), request).errors_of(_unsolved(room.array("states")))

    return BatchAssignment(
        room.read,
        maximize=maximize,
        cardinality=cardinality,
        cost_limit=checked_limit(cost_limit, costs.dtype.kind == "i", maximize),
        stats={"algorithm": "engine", "backend": "cuda", **control.statistics()},
        sizes=_even_sizes(*costs.shape),
        marks=None,
        errors={} if on_error == "raise" else errors,
    )


def solve_even(
    address: int,
    shape: tuple[int, ...],
    dtype: np.dtype,
    maximize: bool,
    cardinality: str,
    cost_limit: Any,
    given: Mapping[str, int] = NOTHING_GIVEN,
) -> Room | None:
    """Launch the kernel for an array of problems at this address on the current device.

    The results are in the room that is returned, or at the addresses that are `given` for some of
    the names of `DeviceResults`. None if another way must answer.
    """
    count, nrows, ncols = shape
    if (
        dtype not in _EVEN or not count * nrows * ncols or max(nrows, ncols) > SHORT
        or has_length(cost_limit) or type(maximize) is not bool
        or cardinality not in ("full", "any")
    ):  # fmt: skip
        return None
    is_integer = dtype.kind == "i"
    limit = checked_limit(cost_limit, is_integer, maximize)
    is_integer, largest = numbers_for(is_integer, cardinality, limit, min(nrows, ncols))
    if limit is not None and abs(limit) > largest:
        return None
    room = Room(count, nrows, ncols, _INT64 if is_integer else _FLOAT64, given)
    task = DeviceBatch(
        dtype, (address,), (ncols,), _even_sizes(count, nrows, ncols), nrows * ncols,
        wish_for(maximize, cardinality, limit), largest, is_integer, room.addresses(),
    )  # fmt: skip
    return room if load(BATCHES["cuda"])(task) else None


def assign_alone(
    costs: Any, maximize: bool, cardinality: str, cost_limit: Any
) -> Assignment | bool | None:
    """The assignment of a matrix on a device by one launch of a team of threads.

    False if the team has given up after its most steps. None if another way must answer:
    the problem may need more than the kernel, it has no full assignment, or an argument or a cost
    is not valid.
    """
    control, dtype = Control(), costs.dtype
    if (
        dtype not in _EVEN or costs.size == 0 or max(costs.shape) > SHORT
        or not costs.flags.c_contiguous
        or type(maximize) is not bool
        or cardinality not in ("full", "any") or has_length(cost_limit)
    ):  # fmt: skip
        return None
    with control.part("costs"):
        nrows, ncols = costs.shape
        is_integer = dtype.kind == "i"
        limit = checked_limit(cost_limit, is_integer, maximize)
        must_match_all = nrows == ncols and limit is None and cardinality == "full"
        most_steps = load(TEAM)(max(nrows, ncols), must_match_all)
        is_integer, largest = numbers_for(is_integer, cardinality, limit, min(nrows, ncols))
        if not most_steps or (limit is not None and abs(limit) > largest):
            return None
        room = Room(1, nrows, ncols, _INT64 if is_integer else _FLOAT64)
        task = DeviceBatch(
            dtype, (costs.data.ptr,), (ncols,), _even_sizes(1, nrows, ncols), nrows * ncols,
            wish_for(maximize, cardinality, limit), largest, is_integer, room.addresses(),
            most_steps, asks_order=must_match_all,
        )  # fmt: skip
    with control.part("search"):
        found = _found_alone(task, room)
        if found and found["states"].item() == ORDERED and not load(SEEMS_SORTED)(costs):
            task.asks_order = False
            found = _found_alone(task, room)
    if not found:
        return None
    if found["states"].item() != SOLVED or not found["proven"].item():
        return False if found["states"].item() == UNSOLVED else None
    (mates,), (numbers,) = room.array("mates"), room.array("numbers")
    both, size, gap = nrows + ncols, found["pairs"].item(), found["gap"].item()
    control.phase(found=size, matched=size, step="team")
    pair_costs, objective = numbers[both:], found["objective"].item()
    are_matched = found["mates"][0, :nrows] >= 0
    if not is_integer:
        objective = math.fsum(found["numbers"][0, both:][are_matched].tolist())
    return Assignment(
        mates[:nrows],
        mates[nrows:],
        numbers[:nrows],
        numbers[nrows:both],
        pair_costs=pair_costs if size == nrows else pair_costs[mates[:nrows] >= 0],
        objective=objective,
        gap=int(gap) if is_integer else gap,
        proven=True,
        maximize=maximize,
        cardinality=cardinality,
        cost_limit=limit,
        size=size,
        stats={"algorithm": "engine", "backend": "cuda", **control.statistics()},
    )


def _found_alone(task: DeviceBatch, room: Room) -> dict[str, np.ndarray] | None:
    """The results of one launch, on the host; None if it cannot solve the problem."""
    return room.on_host() if load(BATCHES["cuda"])(task) else None


@functools.lru_cache(maxsize=64)
def _even_sizes(count: int, nrows: int, ncols: int) -> np.ndarray:
    return np.broadcast_to(np.array((nrows, ncols), np.int64), (count, 2))


def solve_on_device(batch: Batch, arrays: Any, dtype: np.dtype) -> BatchAssignment:
    """The assignments of dense problems, whose costs are one array of this dtype, or one each."""
    return _solve(batch, dtype, [(0, len(batch.problems), arrays)])


def fit_together(problems: CostBatch) -> bool:
    """True if no problem has so many pairs that its matrix would take more time than its points."""
    return int(problems.sizes.prod(axis=1).max(initial=0)) <= MOST


def solve_points_on_device(batch: Batch) -> BatchAssignment:
    """The assignments of distances of points. The matrices of some problems are made at a time."""
    problems = batch.problems
    ranges = _parts_of(problems.sizes.prod(axis=1).tolist(), MADE_AT_ONCE)
    parts = ((first, last, problems.made_on_device(first, last)) for first, last in ranges)
    return _solve(batch, _FLOAT64, parts, batch.add_roundings)


def _parts_of(entries: list[int], most: int) -> Iterator[tuple[int, int]]:
    """Ranges of problems with at most so many entries in all, or of one problem."""
    first = total = 0
    for k, count in enumerate(entries):
        if k > first and total + count > most:
            yield first, k
            first, total = k, 0
        total += count
    if first < len(entries):
        yield first, len(entries)


def _solve(
    batch: Batch,
    dtype: np.dtype,
    parts: Iterable[tuple[int, int, Any]],
    finish: Callable[[], None] = lambda: None,
) -> BatchAssignment:
    """The assignments of dense problems, some at a time.

    A part is the number of its first problem, the one after its last, and the costs of these: one
    array of this dtype, or one each. `finish` is called when the kernels have been launched.
    """
    import cupy

    request, problems = batch.request, batch.problems
    count, nrows, both = len(problems), batch.nrows, batch.both
    limit = checked_limit(request.cost_limit, problems.is_integer, request.maximize)
    side = int(problems.sizes.min(axis=1).max(initial=0))
    is_integer, largest = numbers_for(problems.is_integer, request.cardinality, limit, side)
    if limit is not None and abs(limit) > largest:
        return batch.solve_all()
    batch.cost_limit, batch.xp = limit, cupy
    number = _INT64 if is_integer else _FLOAT64
    results = Room(count, nrows, both - nrows, number).arrays()
    batch.mates, batch.numbers, batch.objective, batch.gap = results[:4]
    batch.size, batch.proven = results.pairs, results.proven
    batch.names["backend"] = "cuda"
    wish = wish_for(request.maximize, request.cardinality, limit)
    together = None
    if request.cardinality == "full" and limit is None:
        together = Together(SparseCosts.of_csr, request.control)
    waits = False
    try:
        with request.control.part("search"):
            for first, last, arrays in parts:
                part = results
                if last - first < count:
                    if first == 0:
                        _clear(results)
                    elif request.control.tick(0):
                        waits = True
                        break
                    part = _part(results, first, last)
                places = _places(arrays, problems, dtype, slice(first, last))
                task = DeviceBatch(
                    dtype, *places, wish, largest, is_integer, part, together=together
                )
                waits |= not load(BATCHES["cuda"])(task)
                del arrays  # before the next ones are made
    except KeyboardInterrupt as exc:
        attach_result(exc, batch.result())
        raise
    finish()
    waits |= request.on_error == "raise" or request.cardinality == "maximum"
    waits |= problems.is_integer and dtype.itemsize == 8
    if request.cardinality == "maximum":
        _mark_shorter_sides(batch)
    if waits:
        batch.solve_these((~results.proven.get()).nonzero()[0].tolist())
        return batch.result()
    return batch.result(lambda: batch.errors_of(_unsolved(results.states)))


def _part(results: DeviceResults, first: int, last: int) -> DeviceResults:
    """The results of some problems, in the same arrays."""
    parts = [part[first:last] for part in results[:-2]]
    return DeviceResults._make([*parts, results.most_rows, results.most_cols])


def _clear(results: DeviceResults) -> None:
    """Write that no problem is solved, for a run that may stop between its parts."""
    for part, value in zip(results[:-2], (-1, 0, 0, math.inf, 0, UNSOLVED, False)):
        part.fill(value)


def _unsolved(states: Any) -> list[int]:
    """The numbers of the problems that the kernels have not solved."""
    return (states.get() != SOLVED).nonzero()[0].tolist()


def _mark_shorter_sides(batch: Batch) -> None:
    """Let the shorter side of each problem be its cover, as that of a full assignment is."""
    for k, (rows, cols) in enumerate(batch.problems.sizes.tolist()):
        if rows <= cols:
            batch.marks[k, :rows] = True
        else:
            batch.marks[k, batch.nrows : batch.nrows + cols] = True


class Room:
    """Memory for the results on a device, in one piece, because each allocation takes time.

    It makes arrays on demand, by the names of `DeviceResults`. Some may be `given` elsewhere, by
    their addresses; then there are none of these here.
    """

    def __init__(
        self,
        count: int,
        nrows: int,
        ncols: int,
        number: np.dtype,
        given: Mapping[str, int] = NOTHING_GIVEN,
    ) -> None:
        import cupy

        self._given = given
        self._parts, nbytes = _layout(count, nrows, ncols, number)
        self._memory, self._nrows, self._both = cupy.cuda.alloc(nbytes), nrows, nrows + ncols

    def addresses(self) -> DeviceResults:
        """The addresses of the arrays."""
        first, nrows = self._memory.ptr, self._nrows
        begins = [
            self._given.get(name, first + begin) for name, (_, _, begin) in self._parts.items()
        ]
        return DeviceResults._make([*begins, nrows, self._both - nrows])

    def array(self, name: str) -> Any:
        import cupy

        shape, dtype, begin = self._parts[name]
        return cupy.ndarray(shape, dtype, self._memory + begin)

    def on_host(self) -> dict[str, np.ndarray]:
        """Copies of all arrays, by one copy of the memory, which waits for the device."""
        import cupy

        (shape, dtype, begin) = self._parts["proven"]  # the last one
        size = begin + math.prod(shape) * dtype.itemsize
        memory = cupy.ndarray((size,), np.uint8, self._memory).get()
        return {
            name: np.ndarray(shape, dtype, memory, begin)
            for name, (shape, dtype, begin) in self._parts.items()
        }

    def arrays(self) -> DeviceResults:
        found = [self.array(name) for name in self._parts]
        return DeviceResults._make([*found, self._nrows, self._both - self._nrows])

    def read(self, name: str) -> Any:
        """An array by its name in the result."""
        nrows, both = self._nrows, self._both
        if name in ("row_to_col", "col_to_row"):
            mates = self.array("mates")
            return mates[:, :nrows] if name == "row_to_col" else mates[:, nrows:]
        if name in _SIDES:
            begin, end = {"row_dual": (0, nrows), "col_dual": (nrows, both)}.get(name, (both, None))
            return self.array("numbers")[:, begin:end]
        return self.array("pairs" if name == "size" else name)


_SIDES = ("row_dual", "col_dual", "pair_costs")


@functools.lru_cache(maxsize=64)
def _layout(
    count: int, nrows: int, ncols: int, number: np.dtype
) -> tuple[dict[str, tuple[tuple[int, ...], np.dtype, int]], int]:
    """Shapes, dtypes and first bytes of the arrays of `DeviceResults`, and their bytes in all."""
    both, parts, end = nrows + ncols, {}, 0
    kinds: tuple[tuple[tuple[int, ...], np.dtype], ...] = (
        ((count, both), _INT32), ((count, both + nrows), number), ((count,), number),
        ((count,), _FLOAT64), ((count,), _INT64), ((count,), _INT64), ((count,), _BOOL),
    )  # fmt: skip
    for name, (shape, dtype) in zip(DeviceResults._fields, kinds):
        begin = -(-end // _ALIGNED) * _ALIGNED
        parts[name] = shape, dtype, begin
        end = begin + math.prod(shape) * dtype.itemsize
    return parts, end


def _places(
    arrays: Any, problems: CostBatch, dtype: np.dtype, part: slice = slice(None)
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int | None]:
    """Addresses, steps and sizes of problems, and the step between them if they have one size."""
    sizes = problems.sizes[part]
    if isinstance(arrays, list):
        addresses = np.array([part.data.ptr for part in arrays], np.int64)
        steps = np.array([part.strides[0] // dtype.itemsize for part in arrays], np.int64)
        return addresses, steps, sizes, None
    count, nrows, ncols = arrays.shape
    apart, start = nrows * ncols, arrays.data.ptr
    if problems.is_even or (sizes == (nrows, ncols)).all():
        return np.array([start]), np.array([ncols]), sizes, apart
    begins = np.arange(count, dtype=np.int64) * apart + problems.begins
    return start + begins * dtype.itemsize, np.full(count, ncols), sizes, None
