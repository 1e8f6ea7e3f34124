"""The levels of divided alternating trees on a rank's GPU: the host code of trees.cu.

`DeviceLevels` has the methods of the levels in `gpumatch.distributed.trees`, for rows in an
`ArrayRows` on the GPU. All data of a level are on the GPU, and the host reads nothing before
`look`. The reductions of levels carry no messages between the hosts. So before some levels the
hosts exchange messages. Otherwise a rank that has failed would leave the others waiting on their
GPUs.
"""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from gpumatch.cuda import memory
from gpumatch.cuda.kernels import COSTS, Source, kernels_for
from gpumatch.cuda.launches import Board, Cooperative

__all__ = ["DeviceLevels"]

_STATE, _TREES = "State<{Cost}>", "Trees<{Cost}>"
_KERNELS = _PLANT, _OFFER, _ADVANCE, _AUGMENT = tuple(
    f"{name}<{{Cost}}>" for name in ("plant", "offer", "advance", "augment")
)
SOURCE = Source(
    "distributed/trees.cu", _KERNELS, {"Cost": COSTS}, (_STATE, _TREES), cooperative=True
)
_BLOCK = SOURCE.constant("kBlock")
_BLOCKS = 128  # few blocks wait less at grid barriers, and a level reads few numbers
_SHARED = "row_to_col", "col_to_row", "row_dual", "col_dual"


class DeviceLevels:
    """The steps of a search of `gpumatch.distributed.trees.Trees`, by kernels."""

    name = "trees on GPUs"
    most = 8

    def __init__(self, problem: Any) -> None:
        own, number = problem.own, problem.col_dual.dtype
        nrows, ncols, real = problem.row_to_col.size, problem.col_to_row.size, problem.real
        memory.require_memory(28 * nrows + 41 * ncols, "trees on GPUs")
        self.problem, self.world = problem, problem.world
        self._arrays = {
            **{name: cp.asarray(getattr(problem, name)) for name in _SHARED},
            **{name: cp.empty(nrows, kind) for name, kind in (("time", number), ("end", np.int32))},
            "near": cp.empty(real, number),
            "before": cp.empty(real, np.int32),
            "slack": cp.empty(ncols, number),
            "has_joined": cp.empty(ncols, bool),
            "pred": cp.empty(real, np.int32),
            "frontier": cp.empty(own.count, np.int32),
            "leaves": cp.empty(ncols, np.int32),
        }
        self._reduced = self._arrays["slack"][:real]
        kernels = kernels_for(SOURCE, Cost=own.values.dtype)
        self.board = Board(kernels.struct("State"))
        self._trees = kernels.struct("Trees")(
            values=own.values,
            first=problem.rows.first,
            count=own.count,
            nrows=nrows,
            real=real,
            ncols=ncols,
            limit=problem.far if problem.limit is None else problem.limit,
            **self._arrays,
            state=self.board.state,
            barrier=self.board.barrier,
        )
        self._launch = {
            name: Cooperative(
                *(kernels, name), block=_BLOCK, most=None if name == _OFFER else _BLOCKS
            )
            for name in _KERNELS
        }

    def plant(self) -> int:
        """Begin a search with all unmatched rows as roots, and return their number."""
        self.board.clear()
        self._launch[_PLANT](self._trees)  # OUT
        self.board.look()
        self.problem.matched = int(self.board.seen["matched"])
        self._hear()
        return int(self.board.seen["roots"])

    def expand(self) -> None:
        """Lower the times of all columns by this rank's rows of the frontier."""
        self._launch[_OFFER](self._trees)  # IN, OUT

    def reduce(self) -> None:
        """Set ``slack`` to the least time of all ranks."""
        self.world.allreduce_into(self._reduced, self._arrays["near"], "min")

    def advance(self) -> None:
        """Add tight columns and their mates to the trees; raise the duals if none is tight."""
        self._launch[_ADVANCE](self._trees)  # IN, OUT

    def look(self) -> int:
        """Wait for the launched levels, and return the stage of the search."""
        self.world.catch_up()
        self.board.look()
        self._hear()
        return int(self.board.seen["stage"])

    def augment(self) -> None:
        """Write the duals, and augment one path a tree that has a leaf."""
        pred = self._arrays["pred"]
        pred[...] = self.world.allreduce(pred, "min")
        self._launch[_AUGMENT](self._trees)  # IN, OUT

    def counts(self) -> dict[str, int]:
        """The numbers of levels and dual updates of the search, and of rows in its trees."""
        seen = self.board.seen
        return {
            "levels": int(seen["levels"]),
            "updates": int(seen["updates"]),
            "rows": int(seen["roots"] + seen["rows"]),
        }

    def violator(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and the real columns in trees."""
        rows = self._arrays["time"] < self.problem.far
        cols = self._arrays["has_joined"][: self.problem.real]
        return cp.flatnonzero(rows).get(), cp.flatnonzero(cols).get()

    def write(self) -> None:
        """Write the mates and duals to the problem."""
        for name in _SHARED:
            getattr(self.problem, name)[:] = self._arrays[name].get()

    def _hear(self) -> None:
        self.problem.beat()
        self.world.settle()
