"""Alternating trees of `trees.cu`, which match the rows that are unmatched after other steps."""

from __future__ import annotations

import math
from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Control
from gpumatch.cuda.assignment.sparse.problem import COSTS, Problem
from gpumatch.cuda.assignment.sparse.tuning import FINEST
from gpumatch.cuda.kernels import BLOCK, Source, blocks_for, kernels_for
from gpumatch.cuda.launches import Board, Cooperative, record_seconds

__all__ = ["Trees"]

TREES = Source(
    "assignment/sparse/trees.cu",
    ("grow_trees<{Cost}>", "plant<{Cost}>"),
    {"Cost": COSTS},
    structs=("Rows<{Cost}>", "State", "Trees<Number<{Cost}>>"),
    cooperative=True,
)
_BLOCK = TREES.constant("kBlock")
_NEVER = np.int64(TREES.constant("kNever"))
_DONE = TREES.constant("kDone")
_HELD = TREES.constant("kHeld")
_TRACE = TREES.constant("kTraceLength"), TREES.constant("kTraceWidth")

_PARTS = "collection", "growth", "augmentation"


class Trees:
    """Alternating trees, and the launches that grow them.

    Parameters
    ----------
    problem : Problem
    wanted : int
        The number of paths to find.
    spare : number of the duals, optional
        The dual of the spare rows, which reach all columns. Without it, trees grow from the
        unmatched rows.
    finest : int
        Bits: the first bound is the span of the costs divided by ``2**finest``.
    """

    def __init__(
        self, problem: Problem, wanted: int, spare: Any = None, finest: int = FINEST
    ) -> None:
        self.problem, self.wanted = problem, wanted
        nrows, ncols = problem.full.shape
        self.nrows, self.has_spares = nrows, spare is not None
        self._looks_a_launch = problem.tuning.looks_a_launch
        nroots = 0 if self.has_spares else wanted
        number = problem.col_dual.dtype
        self.kernels = kernels_for(TREES, Cost=number)
        self._launch = Cooperative(self.kernels, "grow_trees<{Cost}>", block=_BLOCK)
        self.board = Board(self.kernels.struct("State"), _TRACE)
        self.columns = cp.empty((ncols, 4), np.int64)
        nplaces = ncols + self._launch.blocks * _BLOCK // 32  # one more for each warp's kStop
        self.arrays = {
            "waiting": cp.empty(ncols, np.int32),
            "frontier": cp.empty((2, ncols + nroots), np.uint64),
            "queue": cp.empty(nplaces, np.uint64),
            "roots": cp.empty((2, nroots), np.int32),
            "nearest": cp.empty(ncols, np.int64),
            "leaf": cp.empty(ncols, np.int32),
        }
        self._struct = self.kernels.struct("Trees")(
            row_dual=problem.row_dual,  # IN, OUT
            row_to_col=problem.mates[0],
            col_to_row=problem.mates[1],
            columns=self.columns,
            nplaces=nplaces,
            **self.arrays,
            state=self.board.state,
            trace=self.board.trace,  # OUT
            barrier=self.board.barrier,
        )
        least = math.ldexp(problem.span, -finest)
        is_integer = number.kind == "i"
        self.least_bound = np.int64(1) if is_integer else np.float64(least).view(np.int64)
        dual = number.type(0 if spare is None else spare)
        seen = self.board.seen
        seen["wanted"][0] = wanted
        seen["bound"], seen["below"] = self.least_bound, -1
        width = problem.tuning.width_of_a_step
        steps = max(problem.rows.lanes * math.sqrt(nrows) / width, 1)
        step = max(problem.reach / steps, 1 if is_integer else least)
        seen["step"] = number.type(step).view(np.int64)
        seen["seen_beyond"] = seen["beyond"][:] = _NEVER
        seen["has_spares"] = self.has_spares
        seen["spare_dual"] = dual.view(np.int64)
        seen["stage"] = TREES.constant("kCollect") if wanted else _DONE
        self.board.tell()
        self.kernels["plant<{Cost}>"](
            (blocks_for(ncols),),
            (BLOCK,),
            (
                self._struct,  # IN, OUT
                *(problem.col_dual, np.int32(nrows), np.int32(ncols)),  # IN
                *(np.int32(self.has_spares), dual),
            ),
        )

    @classmethod
    def of_rows(cls, problem: Problem, finest: int = FINEST) -> Trees:
        """Trees that grow from the unmatched rows."""
        return cls(problem, problem.count_unmatched(), finest=finest)

    @classmethod
    def of_spares(cls, problem: Problem) -> Trees:
        """Trees of spare rows, which take the columns that stay unmatched. All rows are matched."""
        col_to_row, col_dual = problem.mates[1], problem.col_dual
        dearest = col_dual.max()
        is_free = col_to_row < 0
        col_to_row[is_free & (col_dual == dearest)] = _HELD
        wanted = int(cp.count_nonzero(is_free & (col_dual < dearest)))
        return cls(problem, wanted, -dearest.get()[()])

    def grow(self, control: Control, *, looks: int | None = None, most: float = math.inf) -> bool:
        """Grow and augment while unmatched columns are reached; False if stopped or given up.

        If more than `most` rows are unmatched after a launch, the trees are given up. In the first
        launch a warp scans `looks` rows. The problem gets the duals.
        """
        try:
            return self._grow_and_augment(
                control, looks or self.problem.tuning.looks_a_launch, most
            )
        finally:
            self._write_back()

    def _grow_and_augment(self, control: Control, a_launch: int, most: float) -> bool:
        while not self._is_done():
            self._launch(
                self.problem.rows.struct,  # IN
                self._struct,  # IN, OUT
                *(self.least_bound, np.int32(a_launch)),  # IN
            )
            self.board.look()
            left = self._left()
            if (control.tick(self.matched(left)) or left > most) and not self._is_done():
                break
            a_launch = self._looks_a_launch
        record_seconds(control, _PARTS, self.board.seen["nanoseconds"])
        left = self.wanted
        for looks, found in self.board.records(int(self.board.seen["round"])):
            left -= found
            control.phase(found=found, matched=self.matched(left), levels=looks, step="trees")
        return self._is_done()

    def _is_done(self) -> bool:
        return bool(self.board.seen["stage"] == _DONE)

    def matched(self, left: int) -> int:
        """Return the number of matched rows if this many paths are still to find."""
        return self.nrows if self.has_spares else self.nrows - left

    def _left(self) -> int:
        return int(self.board.seen["wanted"][self.board.seen["round"] & 1])

    def _write_back(self) -> None:
        """Write the duals of the columns to the problem, and remove the spare rows."""
        if not self.has_spares:
            self.problem.note_unmatched(self._left())
        else:
            cp.maximum(self.problem.mates[1], -1, out=self.problem.mates[1])
        self.problem.col_dual[:] = self.columns[:, 0].view(self.problem.col_dual.dtype)
