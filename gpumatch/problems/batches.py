"""Small dense problems: one, or many at once, in compiled calls on the host or on a device.

Results of a device stay there. Nothing waits for them, unless an error is to be raised at once, or
a problem may be one that the kernels do not take: integers of 64 bits, cardinality "maximum", and
long sides. Then the problems that the kernels left are solved one by one. Few problems of 3,000
columns or more are waited for as well, because they may be solved together.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpumatch.batch_contracts import (
    LARGEST,
    LARGEST_INTEGER,
    LARGEST_PATH,
    SOLVED,
    UNSOLVED,
    BatchTask,
    DeviceBatch,
    DeviceResults,
    Together,
)
from gpumatch.costs import CostBatch, SparseCosts, native
from gpumatch.dispatch.arguments import check_one_of
from gpumatch.dispatch.backends import check_backend
from gpumatch.dispatch.registry import BATCHES, ONE_OF_A_BATCH, load
from gpumatch.numeric.arrays import array_of, has_length
from gpumatch.problems.cardinality import CARDINALITIES, InfeasibleError, checked_limit
from gpumatch.results.assignment import Assignment, BatchAssignment
from gpumatch.running import compile_time
from gpumatch.running.control import Callback, Control, Progress, attach_result

__all__ = ["Asked", "assign_batch", "assign_even", "assign_small"]

ON_ERROR = ("raise", "mark")
MOST = 2**18
"""Costs of a problem up to which a compiled call ends soon enough for Ctrl-C."""
ROUNDED = 2.0**53
"""A magnitude beyond which integers may not be floats."""

_INT32, _INT64, _FLOAT64, _BOOL = map(np.dtype, ("i4", "i8", "f8", "?"))
_ALIGNED = 256  # bytes: as far as memory of its own would be
_SHORT = 1024  # rows and columns for which each device has room in a block
_EVEN = frozenset(map(np.dtype, ("i4", "f4", "f8")))


_NO_MARKS = np.empty((1, 0), _BOOL)


class Wish(NamedTuple):
    """What is wanted of each problem, as numbers for kernels; `gpumatch.contracts` says of each."""

    sign: float
    limit: float
    takes_equal: bool
    most: float
    wants_maximum: bool

    @classmethod
    def of(cls, maximize: bool, cardinality: str, cost_limit: float | None) -> Wish:
        sign = -1.0 if maximize else 1.0
        if cardinality == "maximum":
            most = math.inf if cost_limit is None else sign * cost_limit
            return cls(sign, math.inf, False, most, True)
        if cost_limit is not None:
            return cls(sign, sign * cost_limit, True, math.inf, False)
        return cls(sign, 0.0 if cardinality == "any" else math.inf, False, math.inf, False)


def _numbers_for(
    is_integer: bool, cardinality: str, limit: float | None, side: int
) -> tuple[bool, float]:
    """Whether results are integers, and the greatest magnitude that is taken.

    No problem has more than ``side`` vertices on its smaller side.
    """
    if not is_integer:
        return False, LARGEST
    if cardinality == "maximum" and limit is not None:  # which forbids pairs
        return True, min(LARGEST_INTEGER, LARGEST_PATH / max(side, 1))
    return (False, ROUNDED) if isinstance(limit, float) else (True, LARGEST_INTEGER)


def assign_small(
    values: np.ndarray, maximize: bool, cardinality: str, cost_limit: Any
) -> Assignment | None:
    """The assignment of a matrix, by one compiled call; None if it is not for this, or infeasible.

    It is not if there is nothing to assign, an argument or a number is not valid, or numbers are so
    large that floats would not hold their sums.
    """
    began, compiled = time.perf_counter(), compile_time.spent()
    if cardinality not in CARDINALITIES or type(maximize) is not bool or values.size == 0:
        return None
    is_integer = values.dtype.kind != "f"
    is_taken = values.dtype == _INT64 and values.flags.c_contiguous
    costs = values if is_taken else native(values)
    if costs is None or has_length(cost_limit):
        return None
    limit = None if cost_limit is None else checked_limit(cost_limit, is_integer, maximize)
    nrows, ncols = costs.shape
    is_integer, largest = _numbers_for(is_integer, cardinality, limit, min(nrows, ncols))
    if limit is not None and abs(limit) > largest:
        return None
    wish = Wish.of(maximize, cardinality, limit)
    both = nrows + ncols
    mates, numbers = np.empty((1, both), _INT32), np.empty((1, both + nrows), _FLOAT64)
    totals, ends = np.empty((2, 1), _FLOAT64), np.empty((2, 1), _INT64)
    marks = np.zeros((1, both), _BOOL) if wish.wants_maximum else _NO_MARKS
    load(ONE_OF_A_BATCH)(
        costs.reshape(-1), _place(nrows, ncols),  # IN
        *wish[:-1], wish.wants_maximum or None, largest,  # IN
        mates, numbers, totals, marks, ends,  # OUT
    )  # fmt: skip
    compiled = compile_time.spent() - compiled
    end, size = ends[:, 0].tolist()
    if end != SOLVED:
        return None
    number = _INT64 if is_integer else _FLOAT64
    numbers, objective = numbers.view(number), totals.view(number).item(0)
    gap = totals.item(1)
    row_to_col, paid = mates[0, :nrows], numbers[0, both:]
    cover = None
    if wish.wants_maximum:
        cover = marks[0, :nrows].nonzero()[0], marks[0, nrows:].nonzero()[0]
    stats = {
        "algorithm": "engine",
        "backend": "cpu",
        "phases": 1,
        "levels": 0,
        "seconds": {
            "compilation": compiled,
            "costs": 0.0,
            "search": time.perf_counter() - began - compiled,
        },
        "trace": [{"levels": 0, "found": size, "matched": size, "step": "paths"}],
    }
    return Assignment(
        row_to_col,
        mates[0, nrows:],
        numbers[0, :nrows],
        numbers[0, nrows:both],
        pair_costs=paid if size == nrows else paid[row_to_col >= 0],
        objective=objective,
        gap=int(gap) if is_integer else gap,
        proven=True,
        maximize=maximize,
        cardinality=cardinality,
        cost_limit=limit,
        cover=cover,
        size=size,
        stats=stats,
    )


@functools.lru_cache(maxsize=1024)
def _place(nrows: int, ncols: int) -> np.ndarray:
    """The place of the one problem in an array."""
    return np.array(((0, ncols, nrows, ncols),), np.int64)


class Alone(Protocol):
    """Solves one problem by the general way, with a callback."""

    def __call__(self, problem: Any, callback: Callback) -> Assignment: ...


class Asked(NamedTuple):
    """What a caller asks of a batch."""

    maximize: bool
    cardinality: str
    cost_limit: Any
    on_error: str

    def check(self) -> None:
        check_one_of("on_error", self.on_error, ON_ERROR)
        check_one_of("cardinality", self.cardinality, CARDINALITIES)


def assign_even(costs: Any, asked: Asked, alone: Alone, control: Control) -> BatchAssignment | None:
    """The assignments of an array of problems on a device, by one launch; None if it is not for it.

    It is not if any problem may need more than the kernels, or its error is to be raised.
    """
    maximize, cardinality, cost_limit, on_error = asked
    dtype = costs.dtype
    if (
        dtype not in _EVEN or costs.size == 0 or max(costs.shape[1:]) > _SHORT
        or not costs.flags.c_contiguous
        or type(maximize) is not bool
        or cardinality not in ("full", "any") or on_error not in ON_ERROR
    ):  # fmt: skip
        return None
    count, nrows, ncols = costs.shape
    is_integer = dtype.kind == "i"
    limit = checked_limit(cost_limit, is_integer, maximize)
    is_integer, largest = _numbers_for(is_integer, cardinality, limit, min(nrows, ncols))
    if limit is not None and abs(limit) > largest:
        return None
    room = _Room(count, nrows, ncols, _INT64 if is_integer else _FLOAT64)
    sizes = _even_sizes(count, nrows, ncols)
    task = DeviceBatch(
        dtype, (costs.data.ptr,), (ncols,), sizes, nrows * ncols,
        Wish.of(maximize, cardinality, limit), largest, is_integer, room.addresses(),
    )  # fmt: skip
    with control.part("search"):
        if not load(BATCHES["cuda"])(task):
            return None
    if on_error == "raise" and not room.array("proven").get().all():
        return None

    def errors() -> dict[int, Exception]:
        batch = _Batch(CostBatch(costs), alone, asked, control)
        return batch._errors_of((room.array("states").get() != SOLVED).nonzero()[0].tolist())

    return BatchAssignment(
        room.read,
        maximize=maximize,
        cardinality=cardinality,
        cost_limit=limit,
        stats={"algorithm": "engine", "backend": "cuda", **control.statistics()},
        sizes=sizes,
        marks=None,
        errors={} if on_error == "raise" else errors,
    )


@functools.lru_cache(maxsize=64)
def _even_sizes(count: int, nrows: int, ncols: int) -> np.ndarray:
    return np.broadcast_to(np.array((nrows, ncols), np.int64), (count, 2))


def assign_batch(
    problems: CostBatch,
    alone: Alone,
    asked: Asked,
    *,
    backend: str,
    is_compiled: bool,
    control: Control,
    threads: int,
) -> BatchAssignment:
    """The assignments of all problems: by compiled calls for many, or else by ``alone``.

    With ``is_compiled`` False, all are solved alone.
    """
    asked.check()
    if backend != "auto":
        check_backend(backend)
    batch = _Batch(problems, alone, asked, control)
    control.total = int(problems.sizes.min(axis=1).sum())
    try:
        return _solved(batch, backend, threads, is_compiled=is_compiled)
    finally:
        if control.shows_bar:  # the number of pairs may be on a device
            control.close(0 if batch.size is None else int(batch.size.sum()))


def _solved(batch: _Batch, backend: str, threads: int, *, is_compiled: bool) -> BatchAssignment:
    problems, on_device = batch.problems, batch.problems.on_device
    if is_compiled and len(problems):
        if backend == "cuda" or (backend == "auto" and on_device):
            dense = problems.on_one_device()
            if dense is not None:
                return batch.solve_on_device(*dense)
        elif backend in ("auto", "cpu") and not on_device:
            places = problems.places()
            if places is not None:
                return batch.solve_on_host(*places, threads)
    return batch.solve_alone()


class _Batch:
    """A batch while it is worked on: its problems, what is asked, and the arrays of the result."""

    def __init__(self, problems: CostBatch, alone: Alone, asked: Asked, control: Control) -> None:
        self.problems, self.alone, self.asked, self.control = problems, alone, asked, control
        self.xp = problems.xp
        self.cost_limit: float | None = asked.cost_limit
        self.errors: dict[int, Exception] = {}
        self.names: dict[str, str] = {"algorithm": "engine", "backend": "cpu"}
        count, (nrows, ncols) = len(problems), problems.shape
        self.nrows, self.both = nrows, nrows + ncols
        self.mates: Any = None
        self.numbers: Any = None
        self.objective: Any = None
        self.gap: Any = None
        self.size: Any = None
        self.proven: Any = None
        self.marks: Any = np.zeros(
            (count, self.both if asked.cardinality == "maximum" else 0), bool
        )

    # -- on the host -----------------------------------------------------------------------------

    def solve_on_host(self, places: np.ndarray, total: int, threads: int) -> BatchAssignment:
        asked, count = self.asked, len(self.problems)
        is_integer = self.problems.is_integer
        limit = checked_limit(asked.cost_limit, is_integer, asked.maximize)
        self.cost_limit = limit
        rows, cols = self.problems.sizes.T
        is_small = rows * cols <= MOST
        side = int(np.minimum(rows, cols)[is_small].max(initial=0))
        is_integer, largest = _numbers_for(is_integer, asked.cardinality, limit, side)
        if limit is not None and abs(limit) > largest:
            is_small[:] = False
        # The kernels clear these, in their threads.
        self.mates = np.empty((count, self.both), np.int32)
        self.numbers = np.empty((count, self.both + self.nrows))
        totals, ends = np.zeros((2, count)), np.zeros((2, count), np.int64)
        totals[1], ends[0] = np.inf, UNSOLVED
        task = BatchTask(
            self.problems.read,
            self.problems.in_place,
            places,
            total,
            is_small,
            Wish.of(asked.maximize, asked.cardinality, limit),
            largest,
            (self.mates, self.numbers, totals, self.marks, ends),
            self.control,
            threads,
        )

        def take() -> None:
            number = _INT64 if is_integer else _FLOAT64
            left = ends[0] == UNSOLVED
            self.mates[left], self.numbers[left] = -1, 0
            self.numbers = self.numbers.view(number)
            self.objective, self.gap = totals[0].view(number), totals[1]
            self.proven, self.size = ends[0] == SOLVED, ends[1]

        try:
            with self.control.part("search"):
                ended = load(BATCHES["cpu"])(task)
        except KeyboardInterrupt as exc:
            take()
            attach_result(exc, self.result())
            raise
        take()
        if ended:
            self._serve((~self.proven).nonzero()[0].tolist())
        return self.result()

    # -- on a device -----------------------------------------------------------------------------

    def solve_on_device(self, arrays: Any, dtype: np.dtype) -> BatchAssignment:
        """With dense problems of this dtype: one array, or one for each."""
        import cupy

        asked, problems = self.asked, self.problems
        count, nrows, both = len(problems), self.nrows, self.both
        limit = checked_limit(asked.cost_limit, problems.is_integer, asked.maximize)
        side = int(problems.sizes.min(axis=1).max(initial=0))
        is_integer, largest = _numbers_for(problems.is_integer, asked.cardinality, limit, side)
        if limit is not None and abs(limit) > largest:
            return self.solve_alone()
        self.cost_limit, self.xp = limit, cupy
        number = _INT64 if is_integer else _FLOAT64
        results = _Room(count, nrows, both - nrows, number).arrays()
        self.mates, self.numbers, self.objective, self.gap = results[:4]
        self.size, self.proven = results.pairs, results.proven
        self.names["backend"] = "cuda"
        task = DeviceBatch(
            dtype,
            *_places(arrays, problems, dtype),
            Wish.of(asked.maximize, asked.cardinality, limit),
            largest,
            is_integer,
            results,
        )
        if asked.cardinality == "full" and limit is None:
            task.together = Together(SparseCosts.of_csr, self.control)
        try:
            with self.control.part("search"):
                waits = not load(BATCHES["cuda"])(task)
        except KeyboardInterrupt as exc:
            attach_result(exc, self.result())
            raise
        waits |= asked.on_error == "raise" or asked.cardinality == "maximum"
        waits |= problems.is_integer and dtype.itemsize == 8

        def left() -> list[int]:
            return (results.states.get() != SOLVED).nonzero()[0].tolist()

        if asked.cardinality == "maximum":
            self._mark_shorter_sides()
        if waits:
            self._serve((~results.proven.get()).nonzero()[0].tolist())
            return self.result()
        return self.result(lambda: self._errors_of(left()))

    def _mark_shorter_sides(self) -> None:
        """The covers of assignments of all of a side."""
        for k, (rows, cols) in enumerate(self.problems.sizes.tolist()):
            if rows <= cols:
                self.marks[k, :rows] = True
            else:
                self.marks[k, self.nrows : self.nrows + cols] = True

    def _errors_of(self, numbers: list[int]) -> dict[int, Exception]:
        """Why the kernels have not solved these problems."""
        found: dict[int, Exception] = {}
        for k in numbers:
            try:
                self.alone(self.problems[k], _go_on)
            except (ValueError, TypeError) as exc:
                found[k] = _named(exc, k)
            else:
                found[k] = ValueError(f"problem {k}: its numbers are too large for a batch")
        return found

    # -- one by one ------------------------------------------------------------------------------

    def solve_alone(self) -> BatchAssignment:
        count = len(self.problems)
        self.mates = np.full((count, self.both), -1, np.int32)
        self.numbers = np.zeros((count, self.both + self.nrows))
        self.objective, self.gap = np.zeros(count), np.full(count, np.inf)
        self.size, self.proven = np.zeros(count, np.int64), np.zeros(count, bool)
        self._serve(range(count), is_all=True)
        return self.result()

    def _serve(self, numbers: Iterable[int], is_all: bool = False) -> None:
        """Solve these problems one by one, or find why they cannot be solved."""
        errors: dict[int, Exception] = {}
        self.errors = errors
        done = int(self.size.sum())
        integers = True

        def tell(progress: Progress) -> bool:
            return self.control.tick(done + progress.matched)

        for k in numbers:
            if self.control.tick(done):
                break
            try:
                a = self.alone(self.problems[k], tell)
            except (ValueError, TypeError) as exc:
                error = _named(exc, k)
                if self.asked.on_error == "raise":
                    raise error from None
                errors[k] = error
                continue
            except KeyboardInterrupt as exc:
                attach_result(exc, self.result())
                raise
            if is_all:
                integers &= isinstance(a.objective, int)
                if integers and self.numbers.dtype.kind == "f":
                    self._count_in(np.int64)
                elif not integers and self.numbers.dtype.kind == "i":
                    self._count_in(np.float64)
                self.names = {name: a.stats[name] for name in self.names}
                self.cost_limit = a.cost_limit
            self._put(k, a)
            done += a.size
        if is_all and self.problems.is_integer and not len(self.problems):
            self._count_in(np.int64)

    def _count_in(self, number: type) -> None:
        self.numbers = self.numbers.astype(number)
        self.objective = self.objective.astype(number)

    def _put(self, k: int, a: Assignment) -> None:
        """Write what one problem has given."""
        xp = np if isinstance(self.mates, np.ndarray) else self.xp
        nrows, both = self.nrows, self.both
        rows, cols = self.problems.sizes[k].tolist()
        row_to_col = array_of(xp, a.row_to_col)
        self.mates[k, :rows] = row_to_col
        self.mates[k, nrows : nrows + cols] = array_of(xp, a.col_to_row)
        self.numbers[k, :rows] = array_of(xp, a.row_dual)
        self.numbers[k, nrows : nrows + cols] = array_of(xp, a.col_dual)
        self.numbers[k, both : both + rows][row_to_col >= 0] = array_of(xp, a.pair_costs)
        self.objective[k], self.gap[k] = a.objective, a.gap
        self.size[k], self.proven[k] = a.size, a.proven
        if self.marks.size and a.proven:
            in_rows, in_cols = (array_of(np, part) for part in a.vertex_cover())
            self.marks[k] = False
            self.marks[k, in_rows] = True
            self.marks[k, nrows + in_cols] = True

    def result(self, errors: Callable[[], dict[int, Exception]] | None = None) -> BatchAssignment:
        nrows, both = self.nrows, self.both
        home = self.problems.xp
        arrays = self.mates, self.numbers, self.objective, self.gap, self.proven, self.size
        if home is not self.xp or isinstance(self.mates, np.ndarray):
            arrays = tuple(array_of(home, array) for array in arrays)
        mates, numbers, objective, gap, proven, size = arrays
        marks = array_of(home, self.marks) if self.marks.size else self.marks
        found = {
            "row_to_col": mates[:, :nrows],
            "col_to_row": mates[:, nrows:],
            "row_dual": numbers[:, :nrows],
            "col_dual": numbers[:, nrows:both],
            "pair_costs": numbers[:, both:],
            "objective": objective,
            "gap": gap,
            "proven": proven,
            "size": size,
        }
        return BatchAssignment(
            found.__getitem__,
            maximize=self.asked.maximize,
            cardinality=self.asked.cardinality,
            cost_limit=self.cost_limit,
            stats={**self.names, **self.control.statistics()},
            sizes=self.problems.sizes,
            marks=(marks[:, :nrows], marks[:, nrows:]),
            errors=errors or self.errors,
        )


class _Room:
    """Memory for the results on a device: one piece, because it takes time to ask for each.

    Arrays are made when they are asked for, by the names of `DeviceResults`.
    """

    def __init__(self, count: int, nrows: int, ncols: int, number: np.dtype) -> None:
        import cupy

        self._parts, nbytes = _layout(count, nrows, ncols, number)
        self._memory, self._nrows, self._both = cupy.cuda.alloc(nbytes), nrows, nrows + ncols

    def addresses(self) -> DeviceResults:
        """Where the arrays are."""
        first, nrows = self._memory.ptr, self._nrows
        begins = [first + begin for _, _, begin in self._parts.values()]
        return DeviceResults._make([*begins, nrows, self._both - nrows])

    def array(self, name: str) -> Any:
        import cupy

        shape, dtype, begin = self._parts[name]
        return cupy.ndarray(shape, dtype, self._memory + begin)

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
    arrays: Any, problems: CostBatch, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int | None]:
    """Addresses, steps and sizes of problems, and how far they are apart if all are of one size."""
    count, sizes = len(problems), problems.sizes
    if isinstance(arrays, list):
        addresses = np.array([part.data.ptr for part in arrays], np.int64)
        steps = np.array([part.strides[0] // dtype.itemsize for part in arrays], np.int64)
        return addresses, steps, sizes, None
    _, nrows, ncols = arrays.shape
    apart, first = nrows * ncols, arrays.data.ptr
    if problems.is_even:
        return np.array([first]), np.array([ncols]), sizes, apart
    begins = np.arange(count, dtype=np.int64) * apart + problems.begins
    return first + begins * dtype.itemsize, np.full(count, ncols), sizes, None


def _go_on(_: Progress) -> bool:
    return False


def _named(error: Exception, k: int) -> Exception:
    """The error with the number of its problem."""
    if isinstance(error, InfeasibleError):
        return InfeasibleError(error.rows, error.cols, problem=k)
    return type(error)(f"problem {k}: {error}")
