"""The searches of the Hungarian algorithm on the GPU: their common part, and their launches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import cupy as cp
import numpy as np

from gpumatch.contracts import AssignmentTask, Control
from gpumatch.cuda import memory
from gpumatch.cuda.assignment.hungarian.problem import Problem, attempts
from gpumatch.cuda.assignment.hungarian.sources import BLOCK, DONE, NEVER, TOO_FINE, TRACE
from gpumatch.cuda.kernels import Kernels, Source, kernels_for
from gpumatch.cuda.launches import Board, Cooperative, record_seconds
from gpumatch.cuda.surveys import count_matched

__all__ = ["Patience", "Search", "members_for", "solve"]

_STEPS_A_LAUNCH = 256  # between launches the host checks progress, time limit and Ctrl-C
_PARTS = ("compression", "forward", "reverse and augmentation", "dual update")


class Patience(NamedTuple):
    """The most steps of a search: until nine rows in ten are matched, and in all."""

    for_most: int
    in_all: int

    def is_out(self, steps: int, wanting: int, rows: int) -> bool:
        """True if it is exceeded after these steps, with `wanting` rows still to be matched."""
        return steps > self.in_all or (steps > self.for_most and 10 * wanting > rows)


def solve(
    kind: Callable[[Problem], Search], task: AssignmentTask, patience: Patience | None = None
) -> bool:
    costs, solution, control = task.costs, task.solution, task.control
    if costs.shape[0] == 0:
        solution.col_dual[:] = 0
        solution.has_duals = True
        return True
    values = costs.dense()
    units_to_try = attempts(costs, task.limit)
    for units in units_to_try:
        problem = Problem(values, units, task.limit, solution)
        with control.part("initial reduction"):
            problem.reduce()
        search = kind(problem)
        is_last = units is units_to_try[-1]  # then a dual above its bound shows infeasibility
        try:
            ended = search.finish(control, patience)
        finally:
            if is_last or not search.is_too_fine:
                problem.write(solution)
                search.report(control)
        if not search.is_too_fine:
            return ended
    return True


class Search(ABC):
    """The trees of a search on the device, and its launches."""

    source: Source
    kernel: str

    def __init__(self, problem: Problem) -> None:
        nrows, ncols = problem.nrows, problem.ncols
        self.problem = problem
        memory.require_memory(self.bytes_needed(nrows, ncols), "the Hungarian algorithm")
        pack = 16 // problem.values.itemsize
        is_aligned = ncols % pack == 0 and problem.values.data.ptr % 16 == 0
        self.kernels = kernels_for(self.source, Cost=problem.values.dtype)
        self._kernel = Cooperative(
            self.kernels,
            self.kernel.format(str(is_aligned).lower()),
            block=BLOCK,
            most=min(_most_blocks(), nrows * (ncols // BLOCK + 1)),
        )
        self.rows = cp.empty((2, nrows), np.int32)
        self.cols = cp.empty((2, ncols), np.int32)
        self.members = members_for(self.kernels, nrows)
        self.leaves = cp.empty(nrows + ncols, np.int32)
        self.counts = cp.empty(self._kernel.blocks, np.int32)
        self.board = Board(self.kernels.struct("State"), TRACE)
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
        self.seen["least"] = NEVER
        self.seen["is_stale"] = 1
        self.board.tell()

    @staticmethod
    def bytes_needed(nrows: int, ncols: int) -> int:
        return 28 * nrows + 12 * ncols

    @property
    def seen(self) -> np.void:
        """The state that the host has read last."""
        return self.board.seen

    @property
    def is_too_fine(self) -> bool:
        return bool(self.seen["at"]["stage"] == TOO_FINE)

    @abstractmethod
    def own_struct(self) -> np.ndarray:
        """Return the struct that the kernel takes in addition to problem and trees."""

    def go_on(self) -> None:
        """Make a bounded number of steps."""
        self._kernel(
            *(self.problem.struct(), self._trees, self.own_struct()),  # IN, OUT
            np.int32(_STEPS_A_LAUNCH),  # IN
        )
        self.board.look()

    def finish(self, control: Control, patience: Patience | None = None) -> bool:
        """Continue until the search has ended; False if stopped or out of patience."""
        while self.seen["at"]["stage"] < DONE:
            if control.tick(int(self.seen["matched"])):
                return False
            steps, wanting = int(self.seen["at"]["step"]), int(self.seen["at"]["roots"])
            if patience is not None and patience.is_out(steps, wanting, self.problem.nrows):
                return False
            self.go_on()
        return True

    def report(self, control: Control) -> None:
        """Report the iterations, and the time of each part, to `control`.

        As in the paper's Table 2, ``initial`` counts the paths before the first dual update.
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
    """Return the most blocks: one a multiprocessor, because more make grid barriers slower."""
    return cp.cuda.Device().attributes["MultiProcessorCount"]


def members_for(kernels: Kernels, count: int) -> cp.ndarray:
    """Return an array for `count` of the kernels' `Member`."""
    return cp.empty((count, kernels.struct("Member").nbytes), np.uint8)
