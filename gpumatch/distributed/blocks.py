"""The rows that each rank holds, in rank order: as given, made by a function, or from a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import Costs
from gpumatch.distributed.communicator import Communicator, even_starts
from gpumatch.io.slices import is_matrix_market, matrix_market_rows
from gpumatch.numeric.arrays import array_module, array_of

__all__ = ["Split", "agree_on_columns", "columns_of", "split_of", "taken"]

MAX_VERTICES = 2**31 - 2**20
"""Rows or columns of all ranks: their numbers are int32, as those of one rank."""


class Split(NamedTuple):
    """How the things of one side, rows or columns, are divided among the ranks, in rank order."""

    starts: np.ndarray  # ``starts[r]`` is the first of rank r's; the last is how many there are
    rank: int

    @property
    def total(self) -> int:
        """How many there are."""
        return int(self.starts[-1])

    @property
    def first(self) -> int:
        """The first of this rank's."""
        return int(self.starts[self.rank])

    @property
    def own(self) -> int:
        """How many this rank has."""
        return int(self.starts[self.rank + 1]) - self.first

    @property
    def slice(self) -> slice:
        """This rank's."""
        return slice(self.first, self.first + self.own)

    def owners(self, numbers: Any) -> Any:
        """The rank that has each of these, where they are."""
        xp = array_module(numbers)
        return xp.searchsorted(array_of(xp, self.starts), numbers, side="right") - 1

    def sorted_out(self, numbers: Any, *columns: Any) -> list[Any]:
        """One array for each rank: the numbers that it has, and beside each what stands beside it.

        In int32, in which all numbers of vertices are, and where the numbers are.
        """
        xp = array_module(numbers)
        table = xp.column_stack([numbers, *columns]).astype(np.int32)
        if self.starts.size == 2:
            return [table]
        owners = self.owners(numbers)
        order = xp.argsort(owners, kind="stable")
        bounds = xp.searchsorted(owners[order], xp.arange(1, self.starts.size - 1))
        return list(xp.split(table[order], bounds.tolist()))

    @classmethod
    def even(cls, total: int, world: Communicator) -> Split:
        return cls(even_starts(total, world.size), world.rank)


def taken(block: Any, world: Communicator) -> Any:
    """This rank's rows as an array or a matrix, whichever way the block gives them.

    Parameters
    ----------
    block : array, sparse matrix or tuple of CSR arrays; ``(function, shape)``; path of a file
        The function is called as ``function(begin, end)``, and gives these rows of a matrix of the
        shape. A .npy file is mapped into memory. Of a Matrix Market file in coordinates, only the
        rows that this rank has are kept. Rows are divided evenly.
    world : Communicator
    """
    if isinstance(block, (str, os.PathLike)):
        path = Path(block)
        if is_matrix_market(path):
            return matrix_market_rows(path, lambda nrows: Split.even(nrows, world).slice)
        if path.suffix != ".npy":
            raise ValueError(
                f"block: a path must be that of a .npy or .mtx file; got {path.name!r}"
            )
        whole = np.load(path, mmap_mode="r", allow_pickle=False)
        if whole.ndim != 2:
            raise ValueError(f"block: {path.name} must have 2 dimensions; got {whole.ndim}")
        return np.asarray(whole[Split.even(whole.shape[0], world).slice])
    if isinstance(block, tuple) and len(block) == 2 and callable(block[0]):
        function, shape = block
        nrows, ncols = _checked_shape(shape)
        own = Split.even(nrows, world)
        rows = function(own.first, own.first + own.own)
        given = getattr(rows, "shape", None)
        if given is None and isinstance(rows, tuple):
            given = rows[-1]
        if given is None:
            rows = np.asarray(rows)
            given = rows.shape
        if tuple(given) != (own.own, ncols):
            raise ValueError(
                f"block: for rows {own.first} to {own.first + own.own} the function must give "
                f"shape {(own.own, ncols)}; got {tuple(given)}"
            )
        return rows
    return block


def split_of(nrows: int, world: Communicator) -> Split:
    """How the rows are divided, if this rank has so many."""
    counts = [int(part[0]) for part in world.allgather(np.array([nrows], np.int64))]
    if sum(counts) > MAX_VERTICES:
        raise world.agreed(ValueError(_too_many(sum(counts))))
    return Split(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), world.rank)


def agree_on_columns(ncols: int, world: Communicator) -> None:
    """Raise ValueError on all ranks unless their blocks have as many columns."""
    every = [int(part[0]) for part in world.allgather(np.array([ncols], np.int64))]
    for rank, other in enumerate(every):
        if other != every[0]:
            raise world.agreed(
                ValueError(
                    f"block: rank {rank} has {other} columns, but rank 0 has {every[0]}: "
                    "each block must have all columns of its rows"
                )
            )


def columns_of(costs: Costs, rows: Split, cols: Split, world: Communicator) -> np.ndarray:
    """This rank's columns of a dense matrix of which each rank has rows, all rows of them."""
    values = costs.dense()
    dtype = np.result_type(*world.share(values.dtype))
    values = values.astype(dtype, copy=False)
    bounds = zip(cols.starts[:-1], cols.starts[1:])
    parts = [np.ascontiguousarray(values[:, begin:end]).ravel() for begin, end in bounds]
    return np.concatenate(world.exchange(parts)).reshape(rows.total, cols.own)


def _checked_shape(shape: Any) -> tuple[int, int]:
    try:
        nrows, ncols = (int(length) for length in shape)
    except (TypeError, ValueError):
        raise ValueError(
            f"block: beside a function must be a shape (rows, columns); got {shape!r}"
        ) from None
    if nrows < 0 or ncols < 0:
        raise ValueError(f"block: a shape cannot be negative; got {shape!r}")
    if max(nrows, ncols) > MAX_VERTICES:
        raise ValueError(_too_many(max(nrows, ncols)))
    return nrows, ncols


def _too_many(count: int) -> str:
    return f"block: {count} rows or columns are more than {MAX_VERTICES}"
