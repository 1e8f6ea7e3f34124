"""The classical Hungarian algorithm on the GPU: the host code of classical.cu.

Device memory in addition to the costs: 56 bytes a row, 24 a column, and 4 for each edge of the
adjacency's room.
"""

from __future__ import annotations

import cupy as cp
import numpy as np

from gpumatch.contracts import AssignmentTask
from gpumatch.cuda import memory
from gpumatch.cuda.assignment.hungarian.problem import Problem
from gpumatch.cuda.assignment.hungarian.search import Search, solve
from gpumatch.cuda.assignment.hungarian.sources import CHECK, CLASSICAL, FULL

__all__ = ["run"]

# Not measured. Few pairs of a row are tight, and 64 edges are little beside a row of thousands of
# costs. The room grows when necessary.
_EDGES_A_ROW = 64  # the first room of the adjacency, in edges for each row


def run(task: AssignmentTask) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped.

    The order in which the device runs its threads decides which of several optimal assignments is
    found. `task.seed` and `task.threads` do not influence it.
    """
    return solve(Classical, task)


class Classical(Search):
    source = CLASSICAL
    kernel = "hungarian_classical<{{Cost}}, {}>"

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.bounds = cp.empty((2, problem.nrows), np.int64)
        self.adjacency = cp.empty(_EDGES_A_ROW * problem.nrows, np.int32)

    @staticmethod
    def bytes_needed(nrows: int, ncols: int) -> int:
        return Search.bytes_needed(nrows, ncols) + (16 + 4 * _EDGES_A_ROW) * nrows

    def own_struct(self) -> np.ndarray:
        return self.kernels.struct("Adjacency")(
            cols=self.adjacency,  # OUT, then IN
            begin=self.bounds[0],
            end=self.bounds[1],
            room=self.adjacency.size,  # IN
        )

    def go_on(self) -> None:
        super().go_on()
        if self.seen["at"]["stage"] == FULL:
            self._make_room()

    def _make_room(self) -> None:
        """Make room for twice the edges that the compression has counted, and restart the check."""
        room = 3 * int(self.seen["adjacent"])
        del self.adjacency
        memory.require_memory(4 * room, "the adjacency of the Hungarian algorithm")
        self.adjacency = cp.empty(room, np.int32)
        self.seen["at"]["stage"] = CHECK
        self.board.tell()
