"""What every kind of costs can do, and the checks that all kinds share.

A kind defines the abstract methods below. The others follow from these. Where nothing better is
known, they go by way of the stored costs. A kind that knows better overrides them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gpumatch.bipartite import BipartiteGraph
from gpumatch.contracts import Entries, Points, Rounding, Tile
from gpumatch.dispatch.by_device import require_device_memory
from gpumatch.numeric.arrays import first_true, hint_of_type

__all__ = [
    "TOO_LARGE",
    "Costs",
    "Extent",
    "check_extent",
    "check_sums",
    "extent_of",
    "overflow_of_sums",
    "row_tiles",
    "sum_dtype",
]

TOO_LARGE = 2**62
HOST_TILE, DEVICE_TILE = 2**20, 2**22  # entries of a tile
DEVICE_EXTENT = 2**28  # of one of which nothing but a few numbers is kept


class Extent(NamedTuple):
    """What is known of the values of an array: Python numbers that turn with them.

    Attributes
    ----------
    low, high : int or float
        Least and greatest value, infinities too.
    largest : int or float
        Greatest finite magnitude.
    """

    low: Any
    high: Any
    largest: Any

    def negated(self) -> Extent:
        """The extent of the values with their signs turned."""
        return Extent(-self.high, -self.low, self.largest)

    def divided(self, power: int) -> Extent:
        """The extent of the values as float64, divided by a power of 2."""
        return Extent(*(math.ldexp(float(part), -power) for part in self))

    def as_float(self) -> Extent:
        """The extent of the values as float64."""
        return Extent(*map(float, self))


class Costs(ABC):
    """The cost of every pair of a row and a column, or that the pair is forbidden.

    Attributes
    ----------
    low, high : int or float
        Least and greatest cost, infinities too. A kind sets them when it is made.
    largest : int or float
        Greatest finite magnitude. A kind sets it when it is made.
    rounding : Rounding
        How far costs may be from the exact ones. Only a kind whose costs are rounded sets it.
    """

    low: float
    high: float
    largest: float
    rounding: Rounding = Rounding()

    # -- what a kind defines ---------------------------------------------------------------------

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    @property
    @abstractmethod
    def dtype(self) -> Any:
        """The dtype of the costs as given."""

    @property
    @abstractmethod
    def xp(self) -> Any:
        """The library of the arrays: NumPy or CuPy."""

    @abstractmethod
    def tile(self, rows: slice) -> Tile:
        """Rows, columns and costs of the pairs in a range of rows, in arrays that broadcast.

        A pair that is left out is forbidden, and a pair of cost inf too. Costs that are computed
        must be computed in int64 or float64: algorithms and `verify` trust them.
        """

    @abstractmethod
    def at(self, rows: Any, cols: Any) -> Any:
        """The costs of these pairs, none of which is left out: the numbers of `tile`, bit for bit.

        `rows` and `cols` may be arrays of the host or of the device; `array_of(self.xp, rows)`
        brings them to this one.
        """

    @abstractmethod
    def stored(self) -> Costs:
        """The same costs of a kind that holds them all in memory; themselves if that is theirs."""

    # -- what follows from it --------------------------------------------------------------------

    @property
    def extent(self) -> Extent:
        """Least and greatest cost, and the greatest finite magnitude."""
        return Extent(self.low, self.high, self.largest)

    @property
    def nnz(self) -> int:
        """The number of pairs that are not left out."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that hold the costs."""
        return 0

    @property
    def on_device(self) -> bool:
        """True if the costs are on a GPU."""
        return self.xp is not np

    @property
    def labels(self) -> tuple[list[Hashable] | None, list[Hashable] | None]:
        """The networkx nodes behind the rows and the columns."""
        return None, None

    @property
    def is_integer(self) -> bool:
        return self.dtype.kind in "biu"

    @property
    def problem_dtype(self) -> Any:
        """The dtype of the costs in a problem."""
        return sum_dtype(self.dtype)

    @property
    def itemsize(self) -> int:
        """Bytes of a cost in a problem."""
        return np.dtype(self.problem_dtype).itemsize

    @property
    def is_finite(self) -> bool:
        """True if no cost is infinite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def is_complete(self) -> bool:
        """True if no pair is forbidden."""
        return self.is_finite and self.nnz == math.prod(self.shape)

    @property
    def has_matrix(self) -> bool:
        """True if the matrix is there already, so that `dense` costs nothing."""
        return False

    @property
    def is_sparse(self) -> bool:
        """True if CSR is there already, so that `entries` costs nothing."""
        return False

    @property
    def power(self) -> int:
        """The power of 2 by which costs are to be divided before they are solved; mostly 0."""
        return 0

    @property
    def points(self) -> Points | None:
        """The points whose distances the costs are; None if they are no such costs."""
        return None

    @property
    def device_function(self) -> Any:
        """The caller's function that kernels of a GPU call for these costs; None without one."""
        return None

    @property
    def is_computed(self) -> bool:
        """True if there is no matrix, so that each call of `tile` computes the costs."""
        return False

    @property
    def unfolding_bytes(self) -> int:
        """Bytes that a GPU needs in addition to the matrix while `dense` makes it."""
        return 0

    @property
    def far(self) -> Any:
        """What `dense` holds for a forbidden pair: inf, or the greatest int64."""
        return np.int64(2**63 - 1) if self.is_integer else np.float64(math.inf)

    def __repr__(self) -> str:
        where = "GPU" if self.on_device else "host"
        nrows, ncols = self.shape
        name = type(self).__name__
        return f"{name}({nrows} rows, {ncols} columns, {self._what_is_held()}, {where})"

    def tiles(self) -> Iterator[slice]:
        """Ranges of rows. Each holds so few pairs that they may be copied several times."""
        nrows, ncols = self.shape
        step = max(1, tile_size(on_device=self.on_device) // max(1, ncols))
        for begin in range(0, nrows, step):
            yield slice(begin, min(begin + step, nrows))

    def dense(self, out: Any = None) -> Any:
        """The costs as a matrix, with `far` for forbidden pairs. It may be shared: read it only.

        Parameters
        ----------
        out : array of shape (nrows, ncols), optional
            Where to put it, so that it is the caller's own.

        Raises
        ------
        MemoryError
            If the device has no room for it.
        """
        if out is None:
            out = self._room_for_matrix("the matrix of computed costs")
        out.fill(self.far)
        for tile in self.tiles():
            rows, cols, costs = self.tile(tile)
            out[rows, cols] = costs
        return out

    def entries(self) -> Entries:
        """The costs as kernels read them: a matrix, or CSR as (indptr, indices, weights).

        Unless a kind of costs overrides this, each call makes the whole matrix.
        """
        return self.dense()

    def of_mates(self, row_to_col: Any, threads: int = 1) -> Any:
        """The costs of the pairs of a matching, by row, given the column of each row or -1."""
        rows = (row_to_col >= 0).nonzero()[0]
        return self.at(rows, row_to_col[rows])

    def allows(self, rows: Any, cols: Any) -> Any:
        """Which of these pairs are not forbidden, as a bool array."""
        return abs(self.at(rows, cols)) < math.inf

    def to_host(self) -> Costs:
        """The same costs on the host: a copy, or themselves if they are there already."""
        return self.stored().to_host() if self.on_device else self

    def to_device(self) -> Costs:
        """The same costs on the current GPU: a copy, or themselves when they are there already.

        Raises
        ------
        MemoryError
            If the device has no room for it.
        """
        return self if self.on_device else self.stored().to_device()

    def problem(self, maximize: bool, transposed: bool) -> Costs:
        """The costs as an algorithm takes them: to be minimised, with no more rows than columns.

        Raises
        ------
        ValueError
            If there is an infinity that asks for a pair instead of forbidding it.
        """
        self.check_sign(maximize)
        if maximize or transposed:
            return self.stored().problem(maximize, transposed)
        return self

    def readable(self) -> Costs:
        """The costs for algorithms that read a matrix or CSR.

        It is the matrix of computed costs, if that fits; all other costs are readable already.
        """
        return self

    def as_float(self) -> Costs:
        return self.stored().as_float()

    def divided(self, power: int) -> Costs:
        """The costs as float64, divided by a power of 2: exactly, but for the smallest numbers."""
        return self.stored().divided(power)

    def transpose(self) -> Costs:
        return self.stored().transpose()

    def restricted(self, rows: Any, cols: Any) -> Costs:
        """The costs between some rows and some columns."""
        return self.stored().restricted(rows, cols)

    def of_pairs(self, indptr: Any, indices: Any, weights: Any) -> Costs:
        """The costs of some pairs only, which are given in CSR, their columns in order."""
        return self.stored().of_pairs(indptr, indices, weights)

    def of_points(self, points: Points) -> Costs:
        """The distances of other points. Only distances have them."""
        raise TypeError(f"{type(self).__name__} holds no distances of points")

    def up_to(self, limit: float) -> Costs:
        """The pairs that cost no more than `limit`, as a problem."""
        return self.stored().up_to(limit)

    def near(self, limit: float, rows: Any, cols: Any) -> tuple[Any, Any] | None:
        """For each of these rows with a pair up to the limit, it and the cheapest of these columns.

        None if there is no quicker way than to look at all pairs.
        """
        return None

    def below(self, limits: Any) -> Costs:
        """By how much each pair costs more than the limit of its row."""
        return self.stored().below(limits)

    def within(self, limits: Any, maximize: bool) -> Costs:
        """The pairs that cost no more than the limit of their row; to be maximised, no less."""
        return self.stored().within(limits, maximize)

    def pattern(self) -> BipartiteGraph:
        """The graph of the pairs that are not forbidden."""
        return self.stored().pattern()

    # -- inside ----------------------------------------------------------------------------------

    def _check_room_for_copy(self) -> None:
        """Check that the current GPU has memory for a copy."""
        require_device_memory(self.nbytes, "a copy of the costs")

    def _room_for_matrix(self, what: str) -> Any:
        """A new array for what `dense` makes."""
        self._require_room(self.shape, self.problem_dtype, what, self.unfolding_bytes)
        return self.xp.empty(self.shape, self.problem_dtype)

    def _what_is_held(self) -> str:
        return str(self.dtype)

    def check_sign(self, maximize: bool) -> None:
        """Check that every infinity forbids."""
        if maximize and self.high == math.inf:
            raise ValueError("the costs hold inf, but to be maximised: -inf forbids a pair")
        if not maximize and self.low == -math.inf:
            raise ValueError("the costs hold -inf: inf forbids a pair")

    def _require_room(
        self, shape: tuple[int, int], dtype: Any, what: str = "a copy of the costs", extra: int = 0
    ) -> None:
        """Check, on a GPU, that it has memory for a matrix and some bytes more."""
        if self.on_device:
            nbytes = math.prod(shape) * np.dtype(dtype).itemsize + extra
            require_device_memory(nbytes, what)


# -- checks ----------------------------------------------------------------------------------------


def extent_of(values: Any) -> Extent:
    """The extent of numbers, which are checked to be real, and none NaN."""
    kind = values.dtype.kind
    if kind not in "biuf":
        hint = hint_of_type(values.dtype)
        if kind in "OU":
            hint = "; for pairs of labels, see LabelledArray.from_pairs"
        raise TypeError(f"the costs must be real numbers; got dtype {values.dtype}{hint}")
    number = float if kind == "f" else int
    if values.size == 0:
        return Extent(number(0), number(0), number(0))
    tiles = list(row_tiles(values, DEVICE_EXTENT))
    lows = [number(values[tile].min()) for tile in tiles]
    highs = [number(values[tile].max()) for tile in tiles]
    if any(map(math.isnan, lows)):
        raise ValueError(f"the costs hold NaN, first {_first_nan(values)}")
    low, high = min(lows), max(highs)
    largest = max(abs(low), abs(high))
    if kind == "f" and math.isinf(largest):
        largest = max(_largest_finite(values[tile]) for tile in row_tiles(values))
    return Extent(low, high, largest)


def _first_nan(values: Any) -> str:
    """The place of the first NaN: in a matrix, or in the data of a sparse one."""
    tiles = ((tile.start, values[tile]) for tile in row_tiles(values))
    found = ((begin, first_true((part != part).ravel())) for begin, part in tiles)
    begin, at = next((begin, at) for begin, at in found if at is not None)
    if values.ndim == 1:
        return f"at entry {begin + at} of the data"
    row, col = divmod(at, values.shape[1])
    return f"at row {begin + row}, column {col}"


def _largest_finite(values: Any) -> float:
    magnitudes = abs(values)
    magnitudes[magnitudes == math.inf] = 0
    return float(magnitudes.max())


def check_extent(extent: Extent, n: int, *, summed: bool) -> None:
    """Check that n costs can be summed, or else that they can be compared."""
    if summed:
        check_sums(extent.largest, n)
    elif isinstance(extent.largest, int):
        if extent.largest >= TOO_LARGE:
            raise ValueError(f"integer costs up to {extent.largest} are too large, 2**62 at least")
    elif not math.isfinite(extent.largest):
        raise ValueError("the costs are beyond the range of float64")


def overflow_of_sums(extent: Extent, n: int, limit: float = 0) -> int:
    """The least power of 2 by which floats and a limit must be divided before n of them are summed.

    It is 0 but for numbers from about 1e307 / n on.
    """
    largest = max(float(extent.largest), abs(limit))
    if math.isfinite(8.0 * (n + 1) * largest):
        return 0
    return (8 * (n + 1)).bit_length() + 1


def check_sums(largest: float, n: int) -> None:
    """Check that sums of n numbers up to `largest` do not overflow."""
    if isinstance(largest, int):
        if (n + 1) * largest >= TOO_LARGE:
            raise ValueError(
                f"integer costs up to {largest} are too large for {n} rows or columns: "
                "(n + 1) * max |cost| must be below 2**62"
            )
    elif not math.isfinite(8.0 * (n + 1) * largest):
        raise ValueError(f"costs up to {largest} overflow when {n} of them are summed")


# -- forms -----------------------------------------------------------------------------------------


def sum_dtype(dtype: Any) -> Any:
    """The widest type of a cost's kind: that of sums."""
    return np.float64 if dtype.kind == "f" else np.int64


def tile_size(*, on_device: bool) -> int:
    """Entries of a tile."""
    return DEVICE_TILE if on_device else HOST_TILE


def row_tiles(values: Any, on_device: int | None = None) -> Iterator[slice]:
    """Ranges of an array's rows, each of so few entries that they may be copied several times.

    `on_device` is how many there may be on a GPU instead.
    """
    is_there = not isinstance(values, np.ndarray)
    entries = on_device if is_there and on_device else tile_size(on_device=is_there)
    step = max(1, entries // max(1, math.prod(values.shape[1:])))
    for begin in range(0, values.shape[0], step):
        yield slice(begin, min(begin + step, values.shape[0]))
