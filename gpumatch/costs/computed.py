"""What all kinds of costs share that compute their tiles, instead of a matrix that holds them."""

from __future__ import annotations

import contextlib
import math
import os
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.bipartite import BipartiteGraph
from gpumatch.contracts import Rounding
from gpumatch.costs.base import Costs, sum_dtype
from gpumatch.costs.dense import DenseCosts
from gpumatch.costs.sparse import SparseCosts

__all__ = ["ComputedCosts"]


class ComputedCosts(Costs):
    """Costs that are computed in tiles. What keeps few pairs needs no matrix."""

    @property
    def is_computed(self) -> bool:
        return True

    @abstractmethod
    def _turned(self, maximize: bool, transposed: bool) -> Costs:
        """The costs with another sign, or with rows and columns changed."""

    def problem(self, maximize: bool, transposed: bool) -> Any:
        self.check_sign(maximize)
        return self._turned(maximize, transposed)

    def readable(self) -> Any:
        with contextlib.suppress(MemoryError):
            return self.stored()
        return self

    def stored(self) -> DenseCosts:
        return DenseCosts._of(self.dense(), self.extent)

    def dense(self, out: Any = None) -> Any:
        if out is None and not self.on_device:
            hint = "algorithm 'engine' on the CPU needs no matrix"
            require_host_memory(math.prod(self.shape) * self.itemsize, self, hint)
        return super().dense(out)

    def up_to(self, limit: float) -> Costs:
        if self.is_complete and limit >= self.high:
            return self
        return self._kept(lambda rows, values: values <= limit)

    def within(self, limits: Any, maximize: bool) -> Costs:
        self.check_sign(maximize)
        turned = self.xp.asarray(limits)
        if maximize:
            return self._kept(lambda rows, values: values >= turned[rows])
        return self._kept(lambda rows, values: values <= turned[rows])

    def pattern(self) -> BipartiteGraph:
        return self._kept(lambda rows, values: abs(values) < math.inf).graph

    def divided(self, power: int) -> Costs:
        costs, (share, pair, added) = self.stored().divided(power), self.rounding
        costs.rounding = Rounding(share, math.ldexp(pair, -power), math.ldexp(added, -power))
        return costs

    def _kept(self, keeps: Callable[[Any, Any], Any]) -> SparseCosts:
        """The pairs that are to be kept, by their rows and costs, in CSR."""
        xp, number = self.xp, sum_dtype(self.dtype)
        counts, indices, weights = [], [], []
        for tile in self.tiles():
            rows, cols, values = self.tile(tile)
            marks = keeps(rows, values) & (abs(values) < math.inf)
            of_rows, of_cols = marks.nonzero()
            counts.append(xp.bincount(of_rows, minlength=tile.stop - tile.start))
            indices.append(cols.ravel()[of_cols].astype(np.int32))
            weights.append(values[marks].astype(number))
        indptr = xp.zeros(self.shape[0] + 1, np.int64)
        if counts:
            indptr[1:] = xp.cumsum(xp.concatenate(counts))
        kept = SparseCosts.of_csr(
            self.shape,
            indptr,
            xp.concatenate(indices) if indices else xp.zeros(0, np.int32),
            xp.concatenate(weights) if weights else xp.zeros(0, number),
        )
        kept.rounding = self.rounding
        return kept


def require_host_memory(nbytes: int, costs: Costs, hint: str) -> None:
    """Raise MemoryError if the host has too little memory for the matrix of computed costs."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # another system: its allocation decides
        return
    if nbytes > max(free, whole // 2):
        nrows, ncols = costs.shape
        raise MemoryError(
            f"the matrix of {nrows} x {ncols} computed costs needs {nbytes} bytes, and the host "
            f"has {free} free; {hint}"
        )
